/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A manifest of 1 KB fits into one block with all that is parsed from it. */
enum { BLOCK_SIZE = 4096 };

struct hob__arena_block {
    struct hob__arena_block *next;
    size_t used;
    size_t size;
    alignas(max_align_t) unsigned char data[];
};

void *hob__arena_alloc(struct hob__arena *arena, size_t size)
{
    struct hob__arena_block *block = arena->blocks;
    size_t rounded, capacity;
    void *memory;

    if (size > SIZE_MAX / 2)
        return NULL;
    rounded =
        (size + alignof(max_align_t) - 1) & ~(size_t)(alignof(max_align_t) - 1);
    if (!block || block->size - block->used < rounded) {
        capacity = rounded > BLOCK_SIZE ? rounded : BLOCK_SIZE;
        block = calloc(1, sizeof(*block) + capacity);
        if (!block)
            return NULL;
        block->size = capacity;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    memory = block->data + block->used;
    block->used += rounded;
    return memory;
}

void *hob__arena_array(struct hob__arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return hob__arena_alloc(arena, count * size);
}

char *hob__arena_strndup(struct hob__arena *arena, const char *text,
                         size_t length)
{
    char *copy;

    if (length == SIZE_MAX)
        return NULL;
    copy = hob__arena_alloc(arena, length + 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

char *hob__arena_strdup(struct hob__arena *arena, const char *text)
{
    return hob__arena_strndup(arena, text, strlen(text));
}

char *hob__arena_vprintf(struct hob__arena *arena, const char *format,
                         va_list args)
{
    va_list copy;
    char *text;
    int length;

    va_copy(copy, args);
    length = vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    if (length < 0)
        return NULL;
    text = hob__arena_alloc(arena, (size_t)length + 1);
    if (text)
        (void)vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *hob__arena_printf(struct hob__arena *arena, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = hob__arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

void hob__arena_release(struct hob__arena *arena)
{
    struct hob__arena_block *block = arena->blocks;

    arena->blocks = NULL;
    while (block) {
        struct hob__arena_block *next = block->next;

        free(block);
        block = next;
    }
}

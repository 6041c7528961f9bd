/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory that lives and dies together.
 *
 * A manifest, a config and a loader consist of hundreds of small strings that
 * end at the same moment. They are cut from an arena, so an error half-way
 * through needs one release and nothing is ever freed singly. An arena is
 * used by one thread at a time. All functions return NULL when out of memory.
 */
#ifndef HOB__ARENA_H
#define HOB__ARENA_H

#include <hob/common.h>

#include <stdarg.h>
#include <stddef.h>

struct hob__arena_block;

/* Start as HOB__ARENA_INIT or all zero. */
struct hob__arena {
    struct hob__arena_block *blocks;
};

#define HOB__ARENA_INIT                                                        \
    {                                                                          \
        NULL                                                                   \
    }

/* Return SIZE zeroed bytes, aligned for any object. */
void *hob__arena_alloc(struct hob__arena *arena, size_t size);

/* Return COUNT * SIZE zeroed bytes; NULL too when the product overflows. */
void *hob__arena_array(struct hob__arena *arena, size_t count, size_t size);

/* Return a copy of TEXT, or of its first LENGTH bytes plus a NUL. */
char *hob__arena_strdup(struct hob__arena *arena, const char *text);
char *hob__arena_strndup(struct hob__arena *arena, const char *text,
                         size_t length);

/* Return the formatted text. */
char *hob__arena_printf(struct hob__arena *arena, const char *format, ...)
    HOB_PRINTF(2, 3);
char *hob__arena_vprintf(struct hob__arena *arena, const char *format,
                         va_list args) HOB_PRINTF(2, 0);

/* Free everything that was cut from ARENA; it can be used again. */
void hob__arena_release(struct hob__arena *arena);

#endif

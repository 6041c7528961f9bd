/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 63 };

/* Make room for MORE bytes and a NUL. */
static bool reserve(struct hob__text *text, size_t more)
{
    size_t capacity = text->capacity ? text->capacity : 64;
    char *data;

    if (text->failed)
        return false;
    if (more < SIZE_MAX / 4 && text->length < SIZE_MAX / 4) {
        while (capacity < text->length + more + 1)
            capacity *= 2;
        if (capacity == text->capacity)
            return true;
        data = realloc(text->data, capacity);
        if (data) {
            text->data = data;
            text->capacity = capacity;
            return true;
        }
    }
    text->failed = true;
    return false;
}

void hob__text_append(struct hob__text *text, const char *data, size_t length)
{
    if (!reserve(text, length))
        return;
    memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void hob__text_puts(struct hob__text *text, const char *string)
{
    hob__text_append(text, string, strlen(string));
}

void hob__text_vprintf(struct hob__text *text, const char *format, va_list args)
{
    va_list copy;
    int length;

    va_copy(copy, args);
    length = vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    if (length < 0 || !reserve(text, (size_t)length)) {
        text->failed = true;
        return;
    }
    (void)vsnprintf(text->data + text->length, (size_t)length + 1, format,
                    args);
    text->length += (size_t)length;
}

void hob__text_printf(struct hob__text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    hob__text_vprintf(text, format, args);
    va_end(args);
}

void hob__text_json(struct hob__text *text, const char *string)
{
    const unsigned char *p = (const unsigned char *)string;

    hob__text_puts(text, "\"");
    for (; *p; p++) {
        if (*p == '"' || *p == '\\')
            hob__text_printf(text, "\\%c", *p);
        else if (*p == '\n')
            hob__text_puts(text, "\\n");
        else if (*p < 0x20)
            hob__text_printf(text, "\\u%04x", (unsigned)*p);
        else
            hob__text_append(text, (const char *)p, 1);
    }
    hob__text_puts(text, "\"");
}

void hob__text_plain(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p; p++)
        if ((*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f)
            *p = '?';
        else if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) /* in UTF-8 */
            *p = p[1] = '?';
}

char *hob__text_take(struct hob__text *text)
{
    char *data;

    if (!reserve(text, 0)) {
        hob__text_release(text);
        return NULL;
    }
    text->data[text->length] = '\0';
    data = text->data;
    *text = (struct hob__text)HOB__TEXT_INIT;
    return data;
}

void hob__text_release(struct hob__text *text)
{
    free(text->data);
    *text = (struct hob__text)HOB__TEXT_INIT;
}

/* Greedy with one point to fall back to: linear for one star, no recursion. */
bool hob__pattern_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *mark = NULL;

    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            mark = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++mark;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static unsigned min2(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Edits from A to B, a swap of neighbours counting as one; case is ignored. */
static unsigned distance(const char *a, const char *b)
{
    unsigned rows[3][NAME_MAX_LENGTH + 2];
    size_t i, j, a_length = strlen(a), b_length = strlen(b);

    for (j = 0; j <= b_length; j++)
        rows[0][j] = (unsigned)j;
    for (i = 1; i <= a_length; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3];

        row[0] = (unsigned)i;
        for (j = 1; j <= b_length; j++) {
            unsigned differ = lower(a[i - 1]) != lower(b[j - 1]);

            row[j] =
                min2(min2(above[j], row[j - 1]) + 1, above[j - 1] + differ);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = min2(row[j], rows[(i + 1) % 3][j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *hob__nearest_name(const char *name, const char *const *names,
                              size_t count)
{
    size_t i, length = strlen(name);
    unsigned best = (unsigned)(length / 3) + 2;
    const char *nearest = NULL;

    if (length > NAME_MAX_LENGTH)
        return NULL;
    for (i = 0; i < count; i++) {
        unsigned d;

        if (strlen(names[i]) > NAME_MAX_LENGTH)
            continue;
        d = distance(name, names[i]);
        if (d < best && d < strlen(names[i])) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest;
}

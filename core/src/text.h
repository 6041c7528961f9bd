/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - growing strings, name patterns and the nearest name.
 *
 * A text remembers that memory ran out, so appends need no checks in between:
 * hob__text_take() answers NULL then.
 */
#ifndef HOB__TEXT_H
#define HOB__TEXT_H

#include <hob/common.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Start as HOB__TEXT_INIT. */
struct hob__text {
    char *data; /* owned; NULL while empty */
    size_t length;
    size_t capacity;
    bool failed;
};

#define HOB__TEXT_INIT                                                         \
    {                                                                          \
        NULL, 0, 0, false                                                      \
    }

void hob__text_append(struct hob__text *text, const char *data, size_t length);
void hob__text_puts(struct hob__text *text, const char *string);
void hob__text_printf(struct hob__text *text, const char *format, ...)
    HOB_PRINTF(2, 3);
void hob__text_vprintf(struct hob__text *text, const char *format, va_list args)
    HOB_PRINTF(2, 0);

/* Append STRING as a JSON string with its quotes. */
void hob__text_json(struct hob__text *text, const char *string);

/* Return the string, which is the caller's, and empty TEXT; NULL on failure. */
char *hob__text_take(struct hob__text *text);
void hob__text_release(struct hob__text *text);

/* Say whether NAME matches PATTERN, in which "*" stands for any run. */
bool hob__pattern_matches(const char *pattern, const char *name);

/*
 * Return the one of the COUNT names that a person most likely meant by NAME,
 * or NULL if none is near. Names of more than 63 bytes are never near.
 */
const char *hob__nearest_name(const char *name, const char *const *names,
                              size_t count);

/* Put '?' for characters of TEXT that steer a terminal: all control characters
 * but tabs and ends of lines. Names of files and texts of manifests are
 * anybody's. */
void hob__text_plain(char *text);

#endif

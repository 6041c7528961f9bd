/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "json_scan.h"

#include <stdlib.h>
#include <string.h>

/* cJSON cuts longer numbers into two. */
enum { NUMBER_MAX_LENGTH = 63 };

/* Where the scan is and what may come next. */
struct cursor {
    struct hob__json_scan *scan;
    size_t at;
    uint32_t parent; /* the open container, or HOB__JSON_NONE */
    uint32_t depth;
    uint32_t key_offset;
    uint32_t key_length;
};

static bool in_range(unsigned char c, unsigned char low, unsigned char high)
{
    return c >= low && c <= high;
}

/* The table of well-formed sequences in Unicode 15, table 3-7. */
size_t hob__utf8_length(const unsigned char *text, size_t size)
{
    unsigned char c = size ? text[0] : 0xff;
    unsigned char low = 0x80, high = 0xbf;
    size_t length, i;

    if (c < 0x80)
        return 1;
    if (in_range(c, 0xc2, 0xdf))
        length = 2;
    else if (in_range(c, 0xe0, 0xef))
        length = 3;
    else if (in_range(c, 0xf0, 0xf4))
        length = 4;
    else
        return 0;
    if (c == 0xe0)
        low = 0xa0; /* else overlong */
    else if (c == 0xed)
        high = 0x9f; /* else a surrogate */
    else if (c == 0xf0)
        low = 0x90; /* else overlong */
    else if (c == 0xf4)
        high = 0x8f; /* else past U+10FFFF */
    if (size < length || !in_range(text[1], low, high))
        return 0;
    for (i = 2; i < length; i++) {
        if (!in_range(text[i], 0x80, 0xbf))
            return 0;
    }
    return length;
}

static hob_status fail(struct cursor *cursor, size_t offset,
                       enum hob__reason reason, const char *message)
{
    cursor->scan->error_offset = offset;
    cursor->scan->error_parent = cursor->parent;
    cursor->scan->reason = reason;
    cursor->scan->message = message;
    return HOB_ERR_FORMAT;
}

static hob_status fail_syntax(struct cursor *cursor, const char *message)
{
    return fail(cursor, cursor->at, HOB__REASON_JSON_SYNTAX, message);
}

/* The byte at the cursor, or -1 at the end. */
static int peek(const struct cursor *cursor)
{
    return cursor->at < cursor->scan->size ? cursor->scan->text[cursor->at]
                                           : -1;
}

static void skip_blanks(struct cursor *cursor)
{
    int c;

    while ((c = peek(cursor)) == ' ' || c == '\t' || c == '\n' || c == '\r')
        cursor->at++;
}

static int hex_digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Read the four digits after "\u"; -1 if they are not there. */
static long read_hex4(struct cursor *cursor)
{
    long value = 0;
    int i;

    for (i = 0; i < 4; i++) {
        int digit = hex_digit(peek(cursor));

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
        cursor->at++;
    }
    return value;
}

/* The cursor stands behind "\u" of the escape that began at START. */
static hob_status scan_unicode_escape(struct cursor *cursor, size_t start)
{
    const unsigned char *text = cursor->scan->text;
    long value = read_hex4(cursor);

    if (value < 0)
        return fail_syntax(cursor, "\\u needs four hexadecimal digits");
    if (value == 0)
        return fail(cursor, start, HOB__REASON_JSON_SYNTAX,
                    "\\u0000 is not allowed");
    if (value >= 0xdc00 && value <= 0xdfff)
        return fail(cursor, start, HOB__REASON_JSON_ENCODING,
                    "lone low surrogate");
    if (value < 0xd800 || value > 0xdbff)
        return HOB_OK;
    if (cursor->scan->size - cursor->at >= 2 && text[cursor->at] == '\\' &&
        text[cursor->at + 1] == 'u') {
        cursor->at += 2;
        value = read_hex4(cursor);
        if (value >= 0xdc00 && value <= 0xdfff)
            return HOB_OK;
    }
    return fail(cursor, start, HOB__REASON_JSON_ENCODING,
                "lone high surrogate");
}

/* The cursor stands on a backslash. */
static hob_status scan_escape(struct cursor *cursor)
{
    size_t start = cursor->at++;
    int c = peek(cursor);

    if (c == 'u') {
        cursor->at++;
        return scan_unicode_escape(cursor, start);
    }
    if (c <= 0 || !strchr("\"\\/bfnrt", c))
        return fail(cursor, start, HOB__REASON_JSON_SYNTAX,
                    "unknown escape sequence");
    cursor->at++;
    return HOB_OK;
}

/* The cursor stands on a quote; it ends behind the closing one. */
static hob_status scan_string(struct cursor *cursor)
{
    size_t start = cursor->at++;

    for (;;) {
        int c = peek(cursor);
        hob_status st = HOB_OK;
        size_t length;

        if (c < 0)
            return fail(cursor, start, HOB__REASON_JSON_SYNTAX,
                        "unterminated string");
        if (c == '"')
            break;
        if (c < 0x20)
            return fail_syntax(cursor, "control character in a string");
        if (c == '\\') {
            st = scan_escape(cursor);
        } else if (c < 0x80) {
            cursor->at++;
        } else {
            length = hob__utf8_length(cursor->scan->text + cursor->at,
                                      cursor->scan->size - cursor->at);
            if (!length)
                return fail(cursor, cursor->at, HOB__REASON_JSON_ENCODING,
                            "invalid UTF-8");
            cursor->at += length;
        }
        if (st)
            return st;
    }
    cursor->at++;
    return HOB_OK;
}

static bool skip_digits(struct cursor *cursor)
{
    size_t start = cursor->at;

    while (peek(cursor) >= '0' && peek(cursor) <= '9')
        cursor->at++;
    return cursor->at > start;
}

static hob_status scan_number(struct cursor *cursor, bool *out_is_integer)
{
    size_t start = cursor->at;

    *out_is_integer = true;
    if (peek(cursor) == '-')
        cursor->at++;
    if (peek(cursor) == '0') {
        cursor->at++;
        if (peek(cursor) >= '0' && peek(cursor) <= '9')
            return fail_syntax(cursor, "number with a leading zero");
    } else if (!skip_digits(cursor)) {
        return fail_syntax(cursor, "digit expected");
    }
    if (peek(cursor) == '.') {
        *out_is_integer = false;
        cursor->at++;
        if (!skip_digits(cursor))
            return fail_syntax(cursor, "digit expected after the point");
    }
    if (peek(cursor) == 'e' || peek(cursor) == 'E') {
        *out_is_integer = false;
        cursor->at++;
        if (peek(cursor) == '+' || peek(cursor) == '-')
            cursor->at++;
        if (!skip_digits(cursor))
            return fail_syntax(cursor, "digit expected in the exponent");
    }
    if (cursor->at - start > NUMBER_MAX_LENGTH)
        return fail(cursor, start, HOB__REASON_JSON_SYNTAX,
                    "number of more than 63 characters");
    return HOB_OK;
}

static hob_status scan_word(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);

    if (cursor->scan->size - cursor->at < length ||
        memcmp(cursor->scan->text + cursor->at, word, length) != 0)
        return fail_syntax(cursor, "value expected");
    cursor->at += length;
    return HOB_OK;
}

/* Add a value at the cursor to the open container; NULL without memory. */
static struct hob__json_value *add_value(struct cursor *cursor)
{
    struct hob__json_scan *scan = cursor->scan;
    struct hob__json_value *value, *parent;

    if (scan->count == scan->capacity) {
        size_t capacity = scan->capacity ? (size_t)scan->capacity * 2 : 64;

        value = capacity >= UINT32_MAX
                    ? NULL
                    : realloc(scan->values, capacity * sizeof(*value));
        if (!value)
            return NULL;
        scan->values = value;
        scan->capacity = (uint32_t)capacity;
    }
    value = &scan->values[scan->count];
    memset(value, 0, sizeof(*value));
    value->parent = cursor->parent;
    value->next = value->first = value->last = HOB__JSON_NONE;
    value->offset = (uint32_t)cursor->at;
    value->key_offset = cursor->key_offset;
    value->key_length = cursor->key_length;
    if (cursor->parent != HOB__JSON_NONE) {
        parent = &scan->values[cursor->parent];
        if (parent->count++)
            scan->values[parent->last].next = scan->count;
        else
            parent->first = scan->count;
        parent->last = scan->count;
    }
    scan->count++;
    return value;
}

static hob_status open_container(struct cursor *cursor,
                                 struct hob__json_value *value,
                                 enum hob__json_type type)
{
    value->type = type;
    if (cursor->depth == cursor->scan->max_depth)
        return fail(cursor, cursor->at, HOB__REASON_JSON_DEPTH,
                    "nested too deeply");
    cursor->depth++;
    cursor->parent = (uint32_t)(value - cursor->scan->values);
    cursor->at++;
    return HOB_OK;
}

static void close_container(struct cursor *cursor)
{
    struct hob__json_value *value = &cursor->scan->values[cursor->parent];

    cursor->at++;
    value->length = (uint32_t)cursor->at - value->offset;
    cursor->parent = value->parent;
    cursor->depth--;
}

/* Scan a value, of a container only its opening bracket. */
static hob_status scan_value(struct cursor *cursor)
{
    struct hob__json_value *value = add_value(cursor);
    int c = peek(cursor);
    hob_status st;

    if (!value)
        return HOB_ERR_MEMORY;
    if (c == '{')
        return open_container(cursor, value, HOB__JSON_OBJECT);
    if (c == '[')
        return open_container(cursor, value, HOB__JSON_ARRAY);
    if (c == '"') {
        value->type = HOB__JSON_STRING;
        st = scan_string(cursor);
    } else if (c == 't' || c == 'f') {
        value->type = HOB__JSON_BOOL;
        st = scan_word(cursor, c == 't' ? "true" : "false");
    } else if (c == 'n') {
        value->type = HOB__JSON_NULL;
        st = scan_word(cursor, "null");
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        value->type = HOB__JSON_NUMBER;
        st = scan_number(cursor, &value->is_integer);
    } else {
        return fail_syntax(cursor, c < 0 ? "value expected before the end"
                                         : "value expected");
    }
    value->length = (uint32_t)cursor->at - value->offset;
    return st;
}

/* In an object the cursor is where a member's key must stand. */
static hob_status scan_key(struct cursor *cursor)
{
    hob_status st;

    if (peek(cursor) != '"')
        return fail_syntax(cursor, "key in double quotes expected");
    cursor->key_offset = (uint32_t)cursor->at;
    st = scan_string(cursor);
    if (st)
        return st;
    cursor->key_length = (uint32_t)cursor->at - cursor->key_offset;
    skip_blanks(cursor);
    if (peek(cursor) != ':')
        return fail_syntax(cursor, "':' expected");
    cursor->at++;
    skip_blanks(cursor);
    return HOB_OK;
}

/*
 * A value has ended inside a container, or one was just opened: step over the
 * comma, or close containers until one goes on. *OUT_DONE at the root's end.
 */
static hob_status scan_separator(struct cursor *cursor, bool *out_done)
{
    while (cursor->parent != HOB__JSON_NONE) {
        struct hob__json_value *open = &cursor->scan->values[cursor->parent];
        bool is_object = open->type == HOB__JSON_OBJECT;

        skip_blanks(cursor);
        if (peek(cursor) == (is_object ? '}' : ']')) {
            close_container(cursor);
            continue;
        }
        if (open->count) {
            if (peek(cursor) != ',')
                return fail_syntax(cursor, is_object ? "',' or '}' expected"
                                                     : "',' or ']' expected");
            cursor->at++;
            skip_blanks(cursor);
        }
        cursor->key_length = 0;
        return is_object ? scan_key(cursor) : HOB_OK;
    }
    *out_done = true;
    return HOB_OK;
}

hob_status hob__json_scan(const void *text, size_t size, uint32_t max_depth,
                          struct hob__json_scan *out_scan)
{
    struct cursor cursor = {out_scan, 0, HOB__JSON_NONE, 0, 0, 0};
    bool done = false;
    hob_status st;

    memset(out_scan, 0, sizeof(*out_scan));
    out_scan->text = text;
    out_scan->size = size;
    out_scan->max_depth = max_depth;
    if (size >= UINT32_MAX)
        return fail(&cursor, 0, HOB__REASON_TOO_BIG, "text of 4 GiB or more");
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        cursor.at = out_scan->start = 3;
    skip_blanks(&cursor);
    do {
        st = scan_value(&cursor);
        if (!st)
            st = scan_separator(&cursor, &done);
    } while (!st && !done);
    if (st)
        return st;
    skip_blanks(&cursor);
    if (cursor.at < size)
        return fail_syntax(&cursor, "text after the value");
    return HOB_OK;
}

void hob__json_scan_release(struct hob__json_scan *scan)
{
    free(scan->values);
    memset(scan, 0, sizeof(*scan));
}

void hob__json_position(const unsigned char *text, size_t offset,
                        uint32_t *out_line, uint32_t *out_column)
{
    size_t i;

    *out_line = *out_column = 1;
    for (i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            ++*out_line;
            *out_column = 1;
        } else if ((text[i] & 0xc0) != 0x80) {
            ++*out_column;
        }
    }
    /* A byte order mark takes no column. */
    if (*out_line == 1 && offset >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        --*out_column;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "template.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Parts within parts, one bit each in the masks below. */
enum { DEPTH_MAX = 16 };

struct expansion {
    const char *path;
    unsigned line;
    const struct template_value *values;
    size_t value_count;
    uint32_t depth;
    uint32_t dropped;  /* bit D: the part at depth D is left out */
    uint32_t has_else; /* bit D: its "@else" was there */
    struct hob__text *out;
    hob_error *error;
};

static const char name_characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

static hob_status fail(const struct expansion *expansion, const char *what,
                       const char *name, size_t length)
{
    return hob_error_set(expansion->error, HOB_ERR_FORMAT, "%s:%u: %s%.*s",
                         expansion->path, expansion->line, what, (int)length,
                         name);
}

static const char *find(const struct expansion *expansion, const char *name,
                        size_t length)
{
    for (size_t i = 0; i < expansion->value_count; i++) {
        const struct template_value *value = &expansion->values[i];

        if (strlen(value->name) == length && !memcmp(value->name, name, length))
            return value->value;
    }
    return NULL;
}

static hob_status begin_part(struct expansion *expansion, const char *name,
                             size_t length)
{
    bool negated = length > 0 && *name == '!';
    const char *value = find(expansion, name + negated, length - negated);
    uint32_t bit = UINT32_C(1) << expansion->depth;

    if (!value)
        return fail(expansion, "there is no value ", name, length);
    if (expansion->depth == DEPTH_MAX)
        return fail(expansion, "too many parts within parts", "", 0);
    expansion->depth++;
    expansion->has_else &= ~bit;
    expansion->dropped &= ~bit;
    if ((*value != '\0') == negated)
        expansion->dropped |= bit;
    return HOB_OK;
}

static hob_status end_part(struct expansion *expansion, bool is_else)
{
    uint32_t bit;

    if (!expansion->depth)
        return fail(expansion, "no part begins before this ",
                    is_else ? "@else" : "@end", 5);
    bit = UINT32_C(1) << (expansion->depth - 1);
    if (!is_else) {
        expansion->dropped &= ~bit;
        expansion->depth--;
    } else if (expansion->has_else & bit) {
        return fail(expansion, "a second @else", "", 0);
    } else {
        expansion->has_else |= bit;
        expansion->dropped ^= bit;
    }
    return HOB_OK;
}

/* LINE of LENGTH characters, its newline among them. */
static hob_status expand_text(struct expansion *expansion, const char *line,
                              size_t length)
{
    const char *end = line + length, *at;

    while ((at = memchr(line, '@', (size_t)(end - line))) != NULL) {
        size_t size = 0;
        const char *value;

        while (at + 1 + size < end && strchr(name_characters, at[1 + size]) &&
               at[1 + size])
            size++;
        hob__text_append(expansion->out, line, (size_t)(at - line));
        line = at + size + 1;
        /* A lone "@" is no place to fill in. */
        if (!size || line == end || *line != '@') {
            hob__text_append(expansion->out, at, size + 1);
            continue;
        }
        value = find(expansion, at + 1, size);
        if (!value)
            return fail(expansion, "there is no value ", at + 1, size);
        hob__text_puts(expansion->out, value);
        line++;
    }
    hob__text_append(expansion->out, line, (size_t)(end - line));
    return HOB_OK;
}

static bool is_word(const char *line, size_t length, const char *word)
{
    return length == strlen(word) && !memcmp(line, word, length);
}

static hob_status expand_line(struct expansion *expansion, const char *line,
                              size_t length)
{
    size_t bare = length && line[length - 1] == '\n' ? length - 1 : length;

    if (bare > 4 && !memcmp(line, "@if ", 4))
        return begin_part(expansion, line + 4, bare - 4);
    if (is_word(line, bare, "@else"))
        return end_part(expansion, true);
    if (is_word(line, bare, "@end"))
        return end_part(expansion, false);
    return expansion->dropped ? HOB_OK : expand_text(expansion, line, length);
}

hob_status template_expand(const char *path, const char *text, size_t size,
                           const struct template_value *values,
                           size_t value_count, struct hob__text *out,
                           hob_error *error)
{
    struct expansion expansion = {path, 0, values, value_count, 0,
                                  0,    0, out,    error};
    const char *end = text + size;
    hob_status st = HOB_OK;

    while (text < end && !st) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((newline ? newline + 1 : end) - text);

        expansion.line++;
        st = expand_line(&expansion, text, length);
        text += length;
    }
    if (!st && expansion.depth)
        st = fail(&expansion, "a part has no @end", "", 0);
    if (!st && out->failed)
        st = hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
    return st;
}

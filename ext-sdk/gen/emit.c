/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c - pieces of C that several outputs share.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 80 };

void gen_upper(struct hob__text *out, const char *name)
{
    for (; *name; name++) {
        char c = *name;

        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        hob__text_append(out, &c, 1);
    }
}

char *gen_c_word(const char *name)
{
    char *word = strdup(name);

    for (char *p = word; p && *p; p++) {
        if (*p == '-' || *p == '.')
            *p = '_';
        if (*p == '*')
            *p = 'x';
    }
    return word;
}

void gen_c_string(struct hob__text *out, const char *string)
{
    char before = '\0';

    hob__text_puts(out, "\"");
    for (; *string; before = *string++) {
        unsigned char c = (unsigned char)*string;

        /* "?\?": no trigraphs. */
        if (c == '"' || c == '\\' || (c == '?' && before == '?'))
            hob__text_printf(out, "\\%c", c);
        else if (c == '\n')
            hob__text_puts(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            hob__text_printf(out, "\\%03o", c);
        else
            hob__text_append(out, string, 1);
    }
    hob__text_puts(out, "\"");
}

/* One word of a comment; what would end it is taken apart. */
static void comment_word(struct hob__text *out, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        hob__text_append(out, word + i, 1);
        if (i + 1 < length && ((word[i] == '*' && word[i + 1] == '/') ||
                               (word[i] == '/' && word[i + 1] == '*')))
            hob__text_puts(out, " ");
    }
}

static void comment_lines(struct hob__text *out, const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t length = strcspn(text, " \n\t");

        if (length && column && column + 1 + length > LINE_WIDTH) {
            hob__text_puts(out, "\n");
            column = 0;
        }
        if (length) {
            hob__text_puts(out, column ? " " : " * ");
            comment_word(out, text, length);
            column += (column ? 1 : 3) + length;
        }
        text += length;
        text += *text != '\0';
    }
    hob__text_puts(out, "\n");
}

void gen_comment(struct hob__text *out, const char *text, const char *last_line)
{
    hob__text_puts(out, "/*\n");
    comment_lines(out, text);
    if (last_line) {
        hob__text_puts(out, " *\n");
        comment_lines(out, last_line);
    }
    hob__text_puts(out, " */\n");
}

void gen_wrapped(struct hob__text *out, const char *head, char *const *items,
                 uint32_t count, const char *tail)
{
    size_t start = strlen(head), column = start, longest = 0;
    bool hang;

    for (uint32_t i = 0; i < count; i++) {
        size_t length = items[i] ? strlen(items[i]) + 2 : 0;

        longest = length > longest ? length : longest;
    }
    /* Below the bracket if that is possible, else four spaces in. */
    hang = start + longest > LINE_WIDTH;
    hob__text_puts(out, head);
    if (hang) {
        hob__text_puts(out, "\n    ");
        start = column = 4;
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *item = items[i] ? items[i] : "?";
        bool is_last = i + 1 == count;
        size_t length = strlen(item) + (is_last ? strlen(tail) : 1);

        if (i && column + 1 + length > LINE_WIDTH) {
            hob__text_printf(out, "\n%*s", (int)start, "");
            column = start;
        } else if (i) {
            hob__text_puts(out, " ");
            column++;
        }
        hob__text_printf(out, "%s%s", item, is_last ? "" : ",");
        column += length;
    }
    hob__text_puts(out, tail);
}

/* The length of the word at TEXT: up to a blank outside of strings. */
static size_t word_length(const char *text)
{
    bool in_string = false;
    size_t n = 0;

    for (; text[n] && (in_string || text[n] != ' '); n++) {
        if (text[n] == '\\' && text[n + 1])
            n++;
        else if (text[n] == '"')
            in_string = !in_string;
    }
    return n;
}

void gen_flow(struct hob__text *out, uint32_t margin, const char *text)
{
    size_t column = margin;

    hob__text_printf(out, "%*s", (int)margin, "");
    while (*text) {
        size_t length = word_length(text);

        if (column > margin && column + 1 + length > LINE_WIDTH) {
            hob__text_printf(out, "\n%*s", (int)margin, "");
            column = margin;
        } else if (column > margin) {
            hob__text_puts(out, " ");
            column++;
        }
        hob__text_append(out, text, length);
        column += length;
        text += length;
        text += *text == ' ';
    }
}

void gen_aliases(struct hob__text *out, const struct gen_op *op)
{
    hob__text_puts(out, "{");
    for (uint32_t i = 0; i < op->alias_count; i++)
        hob__text_printf(out, "%s{%u, %u}", i ? ", " : "",
                         op->aliases[i].result, op->aliases[i].param);
    hob__text_puts(out, "}");
}

char *gen_impl_name(const struct gen_op *op, const struct gen_impl *impl,
                    const char *tail)
{
    struct hob__text text = HOB__TEXT_INIT;
    char *word = gen_c_word(impl->selector);

    /* "*" cannot stand in a name. */
    hob__text_printf(&text, "%s_%s%s", op->c_name,
                     !strcmp(impl->selector, "*") ? "any"
                     : word                       ? word
                                                  : "?",
                     tail);
    free(word);
    return hob__text_take(&text);
}

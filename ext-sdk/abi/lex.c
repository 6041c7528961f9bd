/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "abi.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
    struct hob__arena *arena;
    struct abi_file *file;
    const char *at;
    const char *line_start;
    uint32_t line;
    uint32_t capacity;
    struct abi_token next; /* what comments say about the token to come */
};

hob_status abi_fail(const struct abi_file *file, const struct abi_token *token,
                    hob_error *error, const char *format, ...)
{
    struct hob__text text = HOB__TEXT_INIT;
    va_list args;

    va_start(args, format);
    hob__text_vprintf(&text, format, args);
    va_end(args);
    (void)hob_error_set(error, HOB_ERR_FORMAT, "%s:%u:%u: %s", file->path,
                        token->line, token->column,
                        text.data ? text.data : "out of memory");
    hob__text_release(&text);
    return HOB_ERR_FORMAT;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Does the comment BEGIN..END have the word "required"? */
static bool says_required(const char *begin, const char *end)
{
    static const char word[] = "equired";
    const size_t length = sizeof(word) - 1;
    const char *at;

    for (at = begin + 3; at + length < end; at++) {
        if (!memcmp(at, word, length) && (at[-1] == 'r' || at[-1] == 'R') &&
            !is_word(at[-2]) && !is_word(at[length]))
            return true;
    }
    return false;
}

/* "Since 0.3." of the comment BEGIN..END as 3; 0 if it says nothing. */
static uint32_t since_of(const char *begin, const char *end)
{
    const char *at;
    char *stop;

    for (at = begin; at + 10 < end; at++) {
        unsigned long major, minor;

        if (memcmp(at, "Since ", 6) != 0 || !isdigit((unsigned char)at[6]))
            continue;
        major = strtoul(at + 6, &stop, 10);
        if (*stop != '.' || !isdigit((unsigned char)stop[1]))
            continue;
        minor = strtoul(stop + 1, &stop, 10);
        if (major <= UINT16_MAX && minor <= UINT16_MAX)
            return (uint32_t)(major << 16 | minor);
    }
    return 0;
}

static void newline(struct lexer *lexer)
{
    lexer->line++;
    lexer->line_start = lexer->at + 1;
}

/* A comment on the line of a token speaks of that one, another of the next. */
static void comment(struct lexer *lexer)
{
    struct abi_file *file = lexer->file;
    struct abi_token *last =
        file->token_count ? &file->tokens[file->token_count - 1] : NULL;
    const bool follows = last && last->line == lexer->line;
    const char *begin = lexer->at;
    uint32_t since;

    for (lexer->at += 2; *lexer->at; lexer->at++) {
        if (lexer->at[0] == '*' && lexer->at[1] == '/')
            break;
        if (*lexer->at == '\n')
            newline(lexer);
    }
    if (*lexer->at)
        lexer->at += 2;
    since = since_of(begin, lexer->at);
    if (since)
        lexer->next.since = since;
    if (says_required(begin, lexer->at)) {
        if (follows)
            last->ends_in_required = true;
        else
            lexer->next.says_required = true;
    }
}

/* To the end of a line with #, which a backslash continues. Comments in it
 * may span lines. */
static void directive(struct lexer *lexer)
{
    lexer->next.after_directive = true;
    while (*lexer->at && *lexer->at != '\n') {
        if (lexer->at[0] == '/' && lexer->at[1] == '*') {
            comment(lexer);
            continue;
        }
        if (lexer->at[0] == '\\' && lexer->at[1] == '\n') {
            lexer->at++;
            newline(lexer);
        }
        lexer->at++;
    }
}

static hob_status add(struct lexer *lexer, enum abi_token_kind kind,
                      size_t length)
{
    struct abi_file *file = lexer->file;
    struct abi_token *token;

    if (file->token_count == lexer->capacity) {
        uint32_t capacity = lexer->capacity ? 2 * lexer->capacity : 1024;
        struct abi_token *grown =
            hob__arena_array(lexer->arena, capacity, sizeof(*grown));

        if (!grown)
            return HOB_ERR_MEMORY;
        if (file->token_count)
            memcpy(grown, file->tokens, file->token_count * sizeof(*grown));
        file->tokens = grown;
        lexer->capacity = capacity;
    }
    token = &file->tokens[file->token_count++];
    *token = lexer->next;
    token->kind = kind;
    token->text = lexer->at;
    token->length = (uint32_t)length;
    token->line = lexer->line;
    token->column = (uint32_t)(lexer->at - lexer->line_start) + 1;
    memset(&lexer->next, 0, sizeof(lexer->next));
    lexer->at += length;
    return HOB_OK;
}

/* Strings and characters stand in inline functions, which nobody reads. */
static size_t quoted(const char *at)
{
    const char quote = *at;
    size_t length = 1;

    while (at[length] && at[length] != quote && at[length] != '\n')
        length += at[length] == '\\' && at[length + 1] ? 2 : 1;
    return at[length] == quote ? length + 1 : length;
}

static hob_status one(struct lexer *lexer)
{
    const char *at = lexer->at;
    size_t length = 1;

    if (is_word(*at)) {
        while (is_word(at[length]))
            length++;
        return add(lexer, isdigit((unsigned char)*at) ? ABI_NUMBER : ABI_WORD,
                   length);
    }
    if (*at == '"' || *at == '\'')
        length = quoted(at);
    else if (!strncmp(at, "...", 3))
        length = 3;
    return add(lexer, ABI_MARK, length);
}

hob_status abi_lex(struct hob__arena *arena, struct abi_file *file,
                   hob_error *error)
{
    struct lexer lexer = {arena, file, file->text, file->text, 1, 0, {0}};
    hob_status st = HOB_OK;

    file->token_count = 0;
    while (!st && *lexer.at) {
        if (*lexer.at == '\n') {
            newline(&lexer);
            lexer.at++;
        } else if (isspace((unsigned char)*lexer.at)) {
            lexer.at++;
        } else if (lexer.at[0] == '/' && lexer.at[1] == '*') {
            comment(&lexer);
        } else if (*lexer.at == '#') {
            directive(&lexer);
        } else {
            st = one(&lexer);
        }
    }
    if (!st)
        st = add(&lexer, ABI_END, 0);
    return st ? hob_error_set(error, st, "%s: out of memory", file->path) : st;
}

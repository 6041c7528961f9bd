/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "signature_scan.h"

#include "text.h"
#include "type_defs.h"

#include <stdlib.h>
#include <string.h>
/* Names longer than this are a mistake, not a name. */
enum { NAME_MAX_BYTES = 63 };

static const struct {
    const char *name;
    uint32_t mask;
} kinds[] = {
    {"Float", HOB_MASK_FLOAT}, {"Int", HOB_MASK_INT},
    {"Bool", HOB_MASK_BOOL},   {"Quantized", HOB_DTYPE_BIT(HOB_DTYPE_QUANT)},
    {"Num", HOB_MASK_NUM},     {"Any", HOB_MASK_ANY}};

enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

/* Characters of the C locale, whatever the program's is. */

int hob__scan_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int hob__scan_is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int hob__scan_is_word(char c)
{
    return hob__scan_is_alpha(c) || hob__scan_is_digit(c) || c == '_';
}

hob_status hob__scan_fail(struct hob__cursor *c, size_t at, const char *message)
{
    if (!c->message) {
        c->error_at = at;
        c->message = message;
        c->status = HOB_ERR_FORMAT;
    }
    return c->status;
}

hob_status hob__scan_no_memory(struct hob__cursor *c)
{
    (void)hob__scan_fail(c, c->at, "out of memory");
    c->status = HOB_ERR_MEMORY;
    return c->status;
}

char hob__scan_peek(struct hob__cursor *c)
{
    while (c->text[c->at] == ' ' || c->text[c->at] == '\t' ||
           c->text[c->at] == '\n')
        c->at++;
    return c->text[c->at];
}

int hob__scan_accept(struct hob__cursor *c, const char *punctuation)
{
    size_t length = strlen(punctuation);

    (void)hob__scan_peek(c);
    if (strncmp(c->text + c->at, punctuation, length) != 0)
        return 0;
    c->at += length;
    return 1;
}

hob_status hob__scan_expect(struct hob__cursor *c, const char *punctuation,
                            const char *message)
{
    return hob__scan_accept(c, punctuation) ? HOB_OK
                                            : hob__scan_fail(c, c->at, message);
}

hob_status hob__scan_word(struct hob__cursor *c, int may_be_number,
                          char **out_word, const char *message)
{
    char first = hob__scan_peek(c);
    size_t from = c->at, length = 0;

    *out_word = NULL;
    if (!hob__scan_is_alpha(first) && first != '_' &&
        !(may_be_number && hob__scan_is_digit(first)))
        return hob__scan_fail(c, from, message);
    while (hob__scan_is_word(c->text[from + length]))
        length++;
    if (length > NAME_MAX_BYTES)
        return hob__scan_fail(c, from, "a name of more than 63 characters");
    *out_word = malloc(length + 1);
    if (!*out_word)
        return hob__scan_no_memory(c);
    memcpy(*out_word, c->text + from, length);
    (*out_word)[length] = '\0';
    c->at += length;
    return HOB_OK;
}

hob_status hob__scan_name(struct hob__cursor *c, int may_be_number,
                          char **out_name, const char *message)
{
    hob_status st = hob__scan_word(c, may_be_number, out_name, message);

    while (!st && c->text[c->at] == '.' &&
           hob__scan_is_alpha(c->text[c->at + 1])) {
        char *head = *out_name, *tail;
        size_t length = strlen(head);
        char *grown;

        c->at++;
        st = hob__scan_word(c, 0, &tail, message);
        grown = st ? NULL : realloc(head, length + strlen(tail) + 2);
        if (!st && !grown)
            st = hob__scan_no_memory(c);
        if (grown) {
            grown[length] = '.';
            memcpy(grown + length + 1, tail, strlen(tail) + 1);
            *out_name = grown;
        }
        free(tail);
    }
    if (st) {
        free(*out_name);
        *out_name = NULL;
    }
    return st;
}

const char *hob__scan_kind(const char *word, uint32_t *out_mask)
{
    for (int i = 0; i < KIND_COUNT; i++) {
        if (!strcmp(kinds[i].name, word)) {
            *out_mask = kinds[i].mask;
            return kinds[i].name;
        }
    }
    return NULL;
}

uint32_t hob__scan_dtype(const char *word)
{
    for (uint32_t i = 1; i < HOB_DTYPE_COUNT_; i++) {
        if (!strcmp(hob_dtype_name(i), word))
            return i;
    }
    return HOB_DTYPE_NONE;
}

int hob__scan_find_param(const struct hob__signature *signature,
                         const char *name)
{
    for (int i = 0; i < signature->param_count; i++) {
        if (!strcmp(signature->params[i].name, name))
            return i;
    }
    return -1;
}

struct hob__item *hob__scan_add_item(struct hob__item *items, uint16_t *count,
                                     uint32_t first)
{
    struct hob__item *item = &items[(*count)++];

    memset(item, 0, sizeof(*item));
    item->first = (uint8_t)first;
    return item;
}

const char *hob__scan_no_type(const char *name)
{
    static const char *const meant[] = {"no such type; \"Float\" is meant?",
                                        "no such type; \"Int\" is meant?",
                                        "no such type; \"Bool\" is meant?",
                                        "no such type; \"Quantized\" is meant?",
                                        "no such type; \"Num\" is meant?",
                                        "no such type; \"Any\" is meant?"};
    static const char *const names[] = {"Float",     "Int", "Bool",
                                        "Quantized", "Num", "Any"};
    const size_t count = sizeof(names) / sizeof(names[0]);
    const char *near = hob__nearest_name(name, names, count);

    for (size_t i = 0; near && i < count; i++)
        if (near == names[i])
            return meant[i];
    return "no such type: Float Int Bool Quantized Num Any are the kinds of "
           "tensors, and \"types\" of the manifest declares others";
}

const struct hob__type_def *hob__scan_def(struct hob__cursor *c, size_t at,
                                          const char *name)
{
    for (uint32_t i = 0; c->types && i < c->types->count; i++)
        if (!strcmp(c->types->defs[i]->name, name))
            return c->types->defs[i];
    (void)hob__scan_fail(c, at, hob__scan_no_type(name));
    return NULL;
}

hob_status hob__scan_type_failed(struct hob__cursor *c, size_t at,
                                 const char *message)
{
    if (!strcmp(message, "out of memory"))
        return hob__scan_no_memory(c);
    return hob__scan_fail(c, at, message);
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "signature.h"

#include "signature_scan.h"
#include "type_defs.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t type; /* enum hob__type */
} attributes[] = {{"scalar", HOB__TYPE_SCALAR}, {"f64", HOB__TYPE_F64},
                  {"i64", HOB__TYPE_I64},       {"bool", HOB__TYPE_BOOL},
                  {"str", HOB__TYPE_STR},       {"dtype", HOB__TYPE_DTYPE},
                  {"shape", HOB__TYPE_SHAPE},   {"device", HOB__TYPE_DEVICE}};

enum { ATTRIBUTE_COUNT = sizeof(attributes) / sizeof(attributes[0]) };

/* ---- types ---- */

static hob_status add_enumerator(struct hob__cursor *c,
                                 struct hob__param *param, size_t at,
                                 char *name)
{
    uint32_t count = param->enumerator_count;
    char **grown;

    for (uint32_t i = 0; i < count; i++) {
        if (!strcmp(param->enumerators[i], name)) {
            free(name);
            return hob__scan_fail(c, at, "this enumerator stands twice");
        }
    }
    grown = realloc(param->enumerators, (count + 1) * sizeof(*grown));
    if (!grown || count == UINT16_MAX) {
        free(name);
        param->enumerators = grown ? grown : param->enumerators;
        return hob__scan_no_memory(c);
    }
    grown[count] = name;
    param->enumerators = grown;
    param->enumerator_count = (uint16_t)(count + 1);
    return HOB_OK;
}

static hob_status parse_enumerators(struct hob__cursor *c,
                                    struct hob__param *param)
{
    hob_status st = hob__scan_expect(c, "(", "'(' expected after enum");

    param->type = HOB__TYPE_ENUM;
    while (!st) {
        char *name;
        size_t at = (hob__scan_peek(c), c->at);

        st = hob__scan_word(c, 0, &name, "the name of an enumerator expected");
        if (!st)
            st = add_enumerator(c, param, at, name);
        if (!st && !hob__scan_accept(c, ","))
            return hob__scan_expect(c, ")", "',' or ')' expected in enum");
    }
    return st;
}

/* Set the type that WORD names; takes ownership of WORD. */
static hob_status set_type(struct hob__cursor *c, struct hob__param *param,
                           size_t at, char *word)
{
    hob_status st = HOB_OK;

    param->kind = hob__scan_kind(word, &param->mask);
    param->type = param->kind ? HOB__TYPE_TENSOR : 0;
    for (int i = 0; i < ATTRIBUTE_COUNT && !param->type; i++) {
        if (!strcmp(attributes[i].name, word))
            param->type = attributes[i].type;
    }
    if (!param->type && !strcmp(word, "enum")) {
        st = parse_enumerators(c, param);
    } else if (!param->type && word[0] >= 'A' && word[0] <= 'Z') {
        param->type = HOB__TYPE_NAMED;
        param->kind = word;
        return HOB_OK;
    } else if (!param->type) {
        st = hob__scan_fail(
            c, at,
            "no such type; there are Float Int Bool Quantized Num "
            "Any, [T] of them, scalar f64 i64 bool str dtype shape "
            "device [i64] [f64] enum(..) and the types of an "
            "extension, which begin with a capital");
    }
    free(word);
    return st;
}

/* The type between '[' and ']' becomes the list of it. */
static hob_status make_list(struct hob__cursor *c, struct hob__param *param,
                            size_t at)
{
    if (param->type == HOB__TYPE_TENSOR)
        param->type = HOB__TYPE_TENSORS;
    else if (param->type == HOB__TYPE_I64)
        param->type = HOB__TYPE_I64S;
    else if (param->type == HOB__TYPE_F64)
        param->type = HOB__TYPE_F64S;
    else
        return hob__scan_fail(c, at, "only tensors, i64 and f64 come in lists");
    return hob__scan_expect(c, "]", "']' expected");
}

hob_status hob__scan_type(struct hob__cursor *c, struct hob__param *param)
{
    int is_list = hob__scan_accept(c, "[");
    size_t at = (hob__scan_peek(c), c->at);
    char *word;
    hob_status st = hob__scan_word(c, 0, &word, "a type expected");

    if (!st)
        st = set_type(c, param, at, word);
    if (!st && is_list)
        st = make_list(c, param, at);
    if (!st && hob__scan_accept(c, "?"))
        param->flags |= HOB__PARAM_OPTIONAL;
    return st;
}

/* ---- parameters ---- */

static const struct hob__item *find_item(const struct hob__signature *out,
                                         const char *name)
{
    for (uint32_t i = 0; i < out->item_count; i++)
        if (!strcmp(out->items[i].name, name))
            return &out->items[i];
    return NULL;
}

/* What the core fills in comes last and may be left out by the caller. */
static const char follows_hidden_text[] =
    "only hidden parameters may follow a hidden one";

static int follows_hidden(const struct hob__signature *signature)
{
    uint32_t count = signature->param_count;

    return count && (signature->params[count - 1].flags & HOB__PARAM_HIDDEN);
}

static hob_status check_hidden(struct hob__cursor *c, size_t at,
                               const struct hob__signature *signature,
                               struct hob__param *param)
{
    if (param->name[0] == '_') {
        param->flags |= HOB__PARAM_HIDDEN;
        if (!(param->flags & (HOB__PARAM_OPTIONAL | HOB__PARAM_DEFAULT)))
            return hob__scan_fail(c, at,
                                  "a hidden parameter must be optional or "
                                  "have a default");
    } else if (follows_hidden(signature)) {
        return hob__scan_fail(c, at, follows_hidden_text);
    }
    return HOB_OK;
}

/* Parameter NAME of the type that PARAM names: its fields instead of it. */
static hob_status add_typed(struct hob__cursor *c, size_t at,
                            struct hob__signature *out, char *name,
                            const struct hob__param *param)
{
    const struct hob__type_def *def = hob__scan_def(c, at, param->kind);
    const char *message = NULL;
    struct hob__item *item;

    if (def && param->flags)
        (void)hob__scan_fail(
            c, at,
            "an argument of an extension type is always there: for "
            "an optional one use an enum with a variant that is "
            "null");
    if (def && name[0] == '_')
        (void)hob__scan_fail(c, at,
                             "a hidden parameter cannot be of such a type");
    else if (def && follows_hidden(out))
        (void)hob__scan_fail(c, at, follows_hidden_text);
    if (def && hob__scan_peek(c) == '=')
        (void)hob__scan_fail(c, c->at,
                             "a parameter of this type has no default");
    if (def && !c->message) {
        item =
            hob__scan_add_item(out->items, &out->item_count, out->param_count);
        item->name = name;
        item->def = def;
        message = hob__type_add_params(out, name, def);
        if (message)
            return hob__scan_type_failed(c, at, message);
        return HOB_OK;
    }
    free(name);
    return c->status;
}

static hob_status parse_param(struct hob__cursor *c, struct hob__signature *out)
{
    size_t at = (hob__scan_peek(c), c->at), type_at;
    struct hob__param *param;
    char *name;
    hob_status st;

    if (out->param_count == HOB_MAX_PARAMS || out->item_count == HOB_MAX_PARAMS)
        return hob__scan_fail(c, at, "more than 32 parameters");
    st = hob__scan_name(c, 0, &name, "the name of a parameter expected");
    if (st)
        return st;
    if (find_item(out, name) || hob__scan_find_param(out, name) >= 0) {
        free(name);
        return hob__scan_fail(c, at, "a parameter of this name stands before");
    }
    /* From here hob__signature_release() knows it. */
    param = &out->params[out->param_count];
    param->name = name;
    param->tag_param = HOB__NO_TAG;
    st = hob__scan_expect(c, ":", "':' and a type expected");
    type_at = (hob__scan_peek(c), c->at);
    if (!st)
        st = hob__scan_type(c, param);
    if (!st && param->type == HOB__TYPE_NAMED) {
        struct hob__param named = *param;

        memset(param, 0, sizeof(*param));
        st = add_typed(c, type_at, out, name, &named);
        named.name = NULL;
        hob__param_release(&named);
        return st;
    }
    if (!st)
        st = hob__scan_default(c, param);
    if (!st)
        st = check_hidden(c, at, out, param);
    hob__scan_add_item(out->items, &out->item_count, out->param_count)->name =
        param->name;
    out->param_count++;
    if (st)
        return st;
    if (param->type == HOB__TYPE_TENSOR || param->type == HOB__TYPE_TENSORS)
        out->tensor_count++;
    if (!(param->flags & (HOB__PARAM_OPTIONAL | HOB__PARAM_DEFAULT)))
        out->required_count = out->param_count;
    return HOB_OK;
}

static hob_status parse_params(struct hob__cursor *c,
                               struct hob__signature *out)
{
    hob_status st = hob__scan_expect(c, "(", "'(' expected");

    if (!st && hob__scan_accept(c, ")"))
        return HOB_OK;
    while (!st) {
        st = parse_param(c, out);
        if (!st && !hob__scan_accept(c, ","))
            return hob__scan_expect(c, ")", "',' or ')' expected");
    }
    return st;
}

/* ---- the module's functions ---- */

void hob__value_release(const hob_value *value)
{
    if (value->tag == HOB_TAG_STR)
        free((void *)(uintptr_t)value->u.str);
    else if (value->tag == HOB_TAG_I64S || value->tag == HOB_TAG_F64S)
        free((void *)(uintptr_t)value->u.i64s);
}

void hob__param_release(struct hob__param *param)
{
    for (uint32_t i = 0; i < param->enumerator_count; i++)
        free(param->enumerators[i]);
    free(param->enumerators);
    if (param->type == HOB__TYPE_NAMED)
        free((void *)(uintptr_t)param->kind);
    hob__value_release(&param->value);
    free(param->default_text);
    free(param->name);
    memset(param, 0, sizeof(*param));
}

/* Where a signature is written while it is parsed: all that there may be. */
struct room {
    struct hob__param params[HOB_MAX_PARAMS];
    struct hob__result results[HOB_MAX_RESULTS];
    struct hob__param plains[HOB_MAX_RESULTS];
    struct hob__item items[HOB_MAX_PARAMS];
    struct hob__item result_items[HOB_MAX_RESULTS];
};

/* Free what SIGNATURE names, of its first PARAM_COUNT parameters. */
static void release_names(struct hob__signature *signature,
                          uint32_t param_count)
{
    /* A plain item has its parameter's or result's name; a type its own. */
    for (uint32_t i = 0; i < signature->item_count; i++)
        if (signature->items[i].def)
            free((void *)(uintptr_t)signature->items[i].name);
    for (uint32_t i = 0; i < signature->result_item_count; i++)
        if (signature->result_items[i].def)
            free((void *)(uintptr_t)signature->result_items[i].name);
    for (uint32_t i = 0; i < param_count; i++)
        if (signature->params[i].name)
            hob__param_release(&signature->params[i]);
    for (uint32_t i = 0; i < signature->result_count; i++) {
        free(signature->results[i].text);
        free(signature->results[i].name);
    }
    for (uint32_t i = 0; i < signature->plain_count; i++)
        hob__param_release(&signature->plains[i]);
}

/* Copy COUNT elements of SIZE bytes from FROM to *AT, and move it behind. */
static void *pack(char **at, const void *from, uint32_t count, size_t size)
{
    void *to = *at;

    memcpy(to, from, count * size);
    *at += count * size;
    return to;
}

/* SIGNATURE lies in a room: a runtime has hundreds, and most have three
 * parameters of 32. Let it lie in a block of its size. */
static hob_status leave_room(struct hob__cursor *c,
                             struct hob__signature *signature)
{
    uint32_t results = signature->result_count ? signature->result_count : 1;
    char *at = malloc((signature->param_count + signature->plain_count) *
                          sizeof(struct hob__param) +
                      results * sizeof(struct hob__result) +
                      (signature->item_count + signature->result_item_count) *
                          sizeof(struct hob__item));

    if (!at)
        return hob__scan_no_memory(c);
    signature->params = pack(&at, signature->params, signature->param_count,
                             sizeof(struct hob__param));
    signature->plains = pack(&at, signature->plains, signature->plain_count,
                             sizeof(struct hob__param));
    signature->items = pack(&at, signature->items, signature->item_count,
                            sizeof(struct hob__item));
    signature->result_items =
        pack(&at, signature->result_items, signature->result_item_count,
             sizeof(struct hob__item));
    signature->results =
        pack(&at, signature->results, results, sizeof(struct hob__result));
    return HOB_OK;
}

/* Say where and what, as the functions of this module do. */
static hob_status finish(const struct hob__cursor *c, hob_status st,
                         int *out_column, const char **out_message)
{
    *out_column = st ? (int)c->error_at + 1 : 0;
    *out_message = st ? c->message : NULL;
    return st;
}

hob_status hob__signature_parse_with(const char *text,
                                     const struct hob__types *types,
                                     struct hob__signature *out,
                                     int *out_column, const char **out_message)
{
    struct hob__cursor c = {text, types, 0, 0, NULL, HOB_OK, 0};
    struct room room;
    hob_status st;

    memset(out, 0, sizeof(*out));
    memset(&room, 0, sizeof(room));
    out->params = room.params;
    out->results = room.results;
    out->plains = room.plains;
    out->items = room.items;
    out->result_items = room.result_items;
    st = parse_params(&c, out);
    if (!st)
        st = hob__scan_results(&c, out);
    if (!st && hob__scan_peek(&c))
        st = hob__scan_fail(&c, c.at, "nothing expected after the results");
    if (!st)
        st = leave_room(&c, out);
    if (st) { /* one more may be begun */
        release_names(out, HOB_MAX_PARAMS);
        memset(out, 0, sizeof(*out));
    }
    return finish(&c, st, out_column, out_message);
}

hob_status hob__signature_parse(const char *text, struct hob__signature *out,
                                int *out_column, const char **out_message)
{
    return hob__signature_parse_with(text, NULL, out, out_column, out_message);
}

hob_status hob__signature_parse_type(const char *text, struct hob__param *out,
                                     int *out_column, const char **out_message)
{
    struct hob__cursor c = {text, NULL, 0, 0, NULL, HOB_OK, 0};
    hob_status st;

    memset(out, 0, sizeof(*out));
    out->tag_param = HOB__NO_TAG;
    st = hob__scan_type(&c, out);
    if (!st && hob__scan_peek(&c))
        st = hob__scan_fail(&c, c.at, "nothing expected after the type");
    if (st)
        hob__param_release(out);
    return finish(&c, st, out_column, out_message);
}

void hob__signature_release(struct hob__signature *signature)
{
    release_names(signature, signature->param_count);
    free(signature->params);
    memset(signature, 0, sizeof(*signature));
}

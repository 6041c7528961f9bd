/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature_result.c - what stands behind the arrow.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "signature_scan.h"

#include "type_defs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static hob_status resolve_result(struct hob__cursor *c, size_t at,
                                 const struct hob__signature *signature,
                                 struct hob__result *result)
{
    int index = hob__scan_find_param(signature, result->text);
    uint32_t mask;
    const struct hob__param *param =
        index >= 0 ? &signature->params[index] : NULL;

    if (param && (param->flags & (HOB__PARAM_OPTIONAL | HOB__PARAM_HIDDEN)))
        return hob__scan_fail(c, at,
                              "a result takes its dtype from a parameter that "
                              "is always there");
    if (param) {
        result->param = (uint8_t)index;
        if (param->type == HOB__TYPE_TENSOR || param->type == HOB__TYPE_TENSORS)
            result->source = HOB__RESULT_PARAM;
        else if (param->type == HOB__TYPE_DTYPE)
            result->source = HOB__RESULT_ATTRIBUTE;
        else
            return hob__scan_fail(
                c, at,
                "a result is named after a tensor or a dtype "
                "parameter, and this is neither: is its type spelt "
                "right?");
        return HOB_OK;
    }
    result->dtype = (uint8_t)hob__scan_dtype(result->text);
    if (!strcmp(result->text, "Bool"))
        result->dtype = HOB_DTYPE_BOOL;
    if (result->dtype)
        result->source = HOB__RESULT_DTYPE;
    else if (hob__scan_kind(result->text, &mask))
        result->source = HOB__RESULT_INFERRED;
    else
        return hob__scan_fail(c, at,
                              "no parameter, dtype or kind of this name");
    return HOB_OK;
}

static int has_result_name(const struct hob__signature *out, const char *name)
{
    for (uint32_t i = 0; i < out->result_item_count; i++)
        if (out->result_items[i].name &&
            !strcmp(out->result_items[i].name, name))
            return 1;
    for (uint32_t i = 0; i < out->result_count; i++)
        if (out->results[i].name && !strcmp(out->results[i].name, name))
            return 1;
    for (uint32_t i = 0; i < out->plain_count; i++)
        if (out->plains[i].name && !strcmp(out->plains[i].name, name))
            return 1;
    return 0;
}

/* A tensor: TEXT, which is taken over, says what its dtype is. */
static hob_status add_tensor_result(struct hob__cursor *c, size_t at,
                                    struct hob__signature *out, char *text,
                                    int is_list)
{
    struct hob__result *result = &out->results[out->result_count];

    if (out->result_count == HOB_MAX_RESULTS ||
        out->result_item_count == HOB_MAX_RESULTS) {
        free(text);
        return hob__scan_fail(c, at, "more than 16 results");
    }
    (void)hob__scan_add_item(out->result_items, &out->result_item_count,
                             out->result_count);
    result->text = text;
    result->tag_plain = HOB__NO_TAG;
    result->is_list = (uint8_t)is_list;
    out->result_count++;
    if (!is_list && hob__scan_accept(c, "?"))
        result->flags |= HOB__PARAM_OPTIONAL;
    return resolve_result(c, at, out, result);
}

static const char plain_types[] =
    "a plain result is value(f64), value(i64), value(bool), value(dtype) or "
    "value(enum(..))";

/* Whether a dtype follows that tensors have and plain results do not: f32. */
static int is_narrow(struct hob__cursor *c)
{
    char word[8] = "";
    size_t length = 0;

    (void)hob__scan_peek(c);
    while (length + 1 < sizeof(word) &&
           hob__scan_is_word(c->text[c->at + length])) {
        word[length] = c->text[c->at + length];
        length++;
    }
    return hob__scan_dtype(word) && strcmp(word, "f64") != 0 &&
           strcmp(word, "i64") != 0 && strcmp(word, "bool") != 0;
}

/* What stands in value(..): a number or the like beside the tensors. */
static hob_status add_plain_result(struct hob__cursor *c, size_t at,
                                   struct hob__signature *out)
{
    struct hob__param *plain = &out->plains[out->plain_count];
    struct hob__item *item;
    hob_status st = hob__scan_expect(c, "(", "'(' expected after value");

    if (st)
        return st;
    if (out->plain_count == HOB_MAX_RESULTS ||
        out->result_item_count == HOB_MAX_RESULTS)
        return hob__scan_fail(c, at, "more than 16 plain results");
    item = hob__scan_add_item(out->result_items, &out->result_item_count,
                              out->result_count);
    item->is_plain = 1;
    item->first_plain = (uint8_t)out->plain_count++;
    plain->tag_param = HOB__NO_TAG;
    if (is_narrow(c))
        return hob__scan_fail(c, at, plain_types);
    st = hob__scan_type(c, plain);
    if (!st && plain->type != HOB__TYPE_F64 && plain->type != HOB__TYPE_I64 &&
        plain->type != HOB__TYPE_BOOL && plain->type != HOB__TYPE_DTYPE &&
        plain->type != HOB__TYPE_ENUM)
        st = hob__scan_fail(c, at, plain_types);
    return st ? st : hob__scan_expect(c, ")", "')' expected after the type");
}

/*
 * The fields of a type: "boxes.coords" if it has the name "boxes", else
 * "0.coords" of several results and "coords" if it is all there is. NAME is
 * taken over.
 */
static hob_status add_typed_result(struct hob__cursor *c, size_t name_at,
                                   size_t at, struct hob__signature *out,
                                   char *name, const char *type)
{
    const struct hob__type_def *def = hob__scan_def(c, at, type);
    struct hob__item *item;
    const char *message;
    char number[16];

    (void)snprintf(number, sizeof(number), "%u",
                   (unsigned)out->result_item_count);
    if (def && name && has_result_name(out, name))
        (void)hob__scan_fail(c, name_at, "a result of this name stands before");
    else if (def && name && name[0] == '_')
        (void)hob__scan_fail(c, at, "a hidden result is a tensor");
    else if (out->result_item_count == HOB_MAX_RESULTS)
        (void)hob__scan_fail(c, at, "more than 16 results");
    if (c->message) {
        free(name);
        return c->status;
    }
    item = hob__scan_add_item(out->result_items, &out->result_item_count,
                              out->result_count);
    item->first_plain = (uint8_t)out->plain_count;
    item->name = name;
    item->def = def;
    message = hob__type_add_results(out,
                                    name          ? name
                                    : c->in_tuple ? number
                                                  : "",
                                    def);
    return message ? hob__scan_type_failed(c, at, message) : HOB_OK;
}

/* Give the item that was written last the NAME, which is taken over. */
static hob_status name_result(struct hob__cursor *c, size_t at,
                              struct hob__signature *out, char *name)
{
    struct hob__item *item = &out->result_items[out->result_item_count - 1];

    if (has_result_name(out, name)) {
        free(name);
        return hob__scan_fail(c, at, "a result of this name stands before");
    }
    item->name = name;
    if (item->is_plain)
        out->plains[item->first_plain].name = name;
    else
        out->results[item->first].name = name;
    if (name[0] == '_' && item->is_plain)
        return hob__scan_fail(c, at, "a plain result cannot be hidden");
    if (name[0] == '_')
        out->results[item->first].flags |= HOB__PARAM_HIDDEN;
    return HOB_OK;
}

static hob_status parse_item(struct hob__cursor *c, struct hob__signature *out,
                             int is_list)
{
    size_t at = (hob__scan_peek(c), c->at), type_at = at;
    char *name = NULL, *text;
    uint32_t mask;
    /* Flat texts name the fields of a second struct "1.coords". */
    hob_status st = hob__scan_name(c, 1, &text, "a result expected");

    if (!st && !is_list && hob__scan_accept(c, ":")) {
        name = text;
        type_at = (hob__scan_peek(c), c->at);
        st = hob__scan_name(c, 0, &text, "a result expected");
        if (st)
            free(name);
    }
    if (st)
        return st;
    if (!is_list && !strcmp(text, "value") && hob__scan_peek(c) == '(') {
        free(text);
        st = add_plain_result(c, type_at, out);
    } else if (text[0] >= 'A' && text[0] <= 'Z' &&
               !hob__scan_kind(text, &mask) &&
               hob__scan_find_param(out, text) < 0) {
        st = is_list ? hob__scan_fail(c, at, "a list of results holds tensors")
                     : add_typed_result(c, at, type_at, out, name, text);
        free(text);
        return st;
    } else {
        st = add_tensor_result(c, type_at, out, text, is_list);
    }
    if (!name)
        return st;
    if (!st)
        return name_result(c, at, out, name);
    free(name);
    return st;
}

/* Whether what follows '(' has a comma of its own: several results. */
static int is_tuple(const struct hob__cursor *c)
{
    int depth = 0;

    for (size_t i = c->at; c->text[i] && depth >= 0; i++) {
        depth += c->text[i] == '(';
        depth -= c->text[i] == ')';
        if (c->text[i] == ',' && !depth)
            return 1;
    }
    return 0;
}

hob_status hob__scan_results(struct hob__cursor *c, struct hob__signature *out)
{
    hob_status st = hob__scan_expect(c, "->", "'->' and the results expected");

    if (st)
        return st;
    if (hob__scan_accept(c, "[")) {
        st = parse_item(c, out, 1);
        return st ? st : hob__scan_expect(c, "]", "']' expected");
    }
    if (!hob__scan_accept(c, "("))
        return parse_item(c, out, 0);
    c->in_tuple = is_tuple(c);
    while (!st) {
        st = parse_item(c, out, 0);
        if (!st && !hob__scan_accept(c, ","))
            return hob__scan_expect(c, ")",
                                    "',' or ')' expected after a result");
    }
    return st;
}

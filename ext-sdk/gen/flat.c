/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flat.c - flat parameters and results by name: what is saved, consumed and
 * aliased.
 */
#include "gen.h"

#include <inttypes.h>
#include <string.h>

/* Whether FLAT is NAME, or a field of it. */
static bool is_in(const char *flat, const char *name)
{
    size_t length = strlen(name);

    return flat && !strncmp(flat, name, length) &&
           (!flat[length] || flat[length] == '.');
}

hob_status gen_tensor_params(const struct gen_op *op,
                             const struct hob__json_value *value,
                             const char *name, uint32_t *out_bits,
                             hob_error *error)
{
    bool found = false;

    *out_bits = 0;
    for (uint32_t i = 0; i < op->signature.param_count; i++) {
        const struct hob__param *param = &op->signature.params[i];

        if (!is_in(param->name, name))
            continue;
        found = true;
        if (param->mask)
            *out_bits |= UINT32_C(1) << i;
    }
    if (*out_bits)
        return HOB_OK;
    return gen_fail(op->source, value, error,
                    found ? "\"%s\" is no tensor and has none: attributes are "
                            "there anyway"
                          : "there is no parameter \"%s\"",
                    name);
}

hob_status gen_tensor_results(const struct gen_op *op,
                              const struct hob__json_value *value,
                              uint32_t *out_bits, hob_error *error)
{
    const struct hob__json_doc *doc = op->source->doc;
    const struct hob__signature *signature = &op->signature;
    const char *name = NULL;
    int64_t index = 0;
    hob_status st;

    *out_bits = 0;
    if (value->type == HOB__JSON_NUMBER) {
        if (!signature->result_count)
            return gen_fail(op->source, value, error,
                            "no result of this op is a tensor");
        st = hob__json_int(doc, value, 0, signature->result_count - 1, &index,
                           error);
        *out_bits = st ? 0 : UINT32_C(1) << index;
        return st;
    }
    st = hob__json_string(doc, value, &name, error);
    if (st)
        return st;
    for (uint32_t i = 0; i < signature->result_count; i++)
        if (is_in(signature->results[i].name, name))
            *out_bits |= UINT32_C(1) << i;
    return *out_bits ? HOB_OK
                     : gen_fail(op->source, value, error,
                                "no result that is a tensor is called \"%s\"; "
                                "one without a name goes by its number",
                                name);
}

/* ---- memory ---- */

/* The only bit of BITS; *OUT_INDEX is its number. */
static hob_status only(const struct gen_op *op,
                       const struct hob__json_value *value, uint32_t bits,
                       uint8_t *out_index, hob_error *error)
{
    if (bits & (bits - 1))
        return gen_fail(op->source, value, error,
                        "one tensor expected, not all fields of a struct");
    for (*out_index = 0; bits > 1; bits >>= 1)
        ++*out_index;
    return HOB_OK;
}

/* A parameter by flat name or number. */
static hob_status read_param(const struct gen_op *op,
                             const struct hob__json_value *value,
                             uint32_t *out_bits, hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    const char *name = NULL;
    int64_t index = 0;
    hob_status st;

    if (value->type != HOB__JSON_NUMBER) {
        st = hob__json_string(op->source->doc, value, &name, error);
        return st ? st : gen_tensor_params(op, value, name, out_bits, error);
    }
    st = hob__json_int(op->source->doc, value, 0,
                       signature->param_count ? signature->param_count - 1 : 0,
                       &index, error);
    if (st)
        return st;
    if (index >= signature->param_count || !signature->params[index].mask)
        return gen_fail(op->source, value, error, "parameter %d is no tensor",
                        (int)index);
    *out_bits = UINT32_C(1) << index;
    return HOB_OK;
}

/* One [result, param]: the result may take the parameter's memory. */
static hob_status read_alias(struct gen_op *op,
                             const struct hob__json_value *pair,
                             hob_error *error)
{
    const struct hob__json_doc *doc = op->source->doc;
    const struct hob__json_value *item;
    struct gen_alias *alias = &op->aliases[op->alias_count];
    uint32_t bits = 0;
    hob_status st = hob__json_expect(doc, pair, HOB__JSON_ARRAY, error);

    if (st)
        return st;
    if (pair->count != 2 || op->alias_count == HOB_MAX_RESULTS)
        return gen_fail(op->source, pair, error,
                        "[result, parameter] expected, at most 16 of them");
    item = hob__json_first(doc, pair);
    st = gen_tensor_results(op, item, &bits, error);
    if (!st)
        st = only(op, item, bits, &alias->result, error);
    item = hob__json_next(doc, item);
    if (!st)
        st = read_param(op, item, &bits, error);
    if (!st)
        st = only(op, item, bits, &alias->param, error);
    if (!st && op->signature.params[alias->param].type != HOB__TYPE_TENSOR)
        st = gen_fail(op->source, item, error,
                      "\"%s\" is a list: only a tensor's memory becomes a "
                      "result",
                      op->signature.params[alias->param].name);
    op->alias_count++;
    return st;
}

hob_status gen_read_memory(struct gen_op *op, hob_error *error)
{
    const struct gen_source *source = op->source;
    const struct hob__json_value *aliases = NULL, *consumes = NULL, *item;
    uint32_t bits = 0;
    hob_status st = gen_get_member(source, op->place, "aliases",
                                   HOB__JSON_ARRAY, false, &aliases, error);

    for (item = st || !aliases ? NULL : hob__json_first(source->doc, aliases);
         item && !st; item = hob__json_next(source->doc, item))
        st = read_alias(op, item, error);
    if (!st)
        st = gen_get_member(source, op->place, "consumes", HOB__JSON_ARRAY,
                            false, &consumes, error);
    for (item = st || !consumes ? NULL : hob__json_first(source->doc, consumes);
         item && !st; item = hob__json_next(source->doc, item)) {
        st = read_param(op, item, &bits, error);
        op->consumes |= st ? 0 : bits;
    }
    return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * implementation.c - what an author supplies for a selector.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const impl_keys[] = {"kernel",   "prepare", "contiguous",
                                        "in_place", "dtypes",  "layer",
                                        "backward", "keep"};

static const char *const backward_keys[] = {"save", "save_results", "save_for",
                                            "recompute"};

static const struct hob__json_value *first_of(const struct gen_op *op,
                                              const struct hob__json_value *v)
{
    return v ? hob__json_first(op->source->doc, v) : NULL;
}

/* ---- dtypes of a kernel ---- */

static hob_status read_dtype(const struct gen_op *op,
                             const struct hob__json_value *item, uint32_t *mask,
                             hob_error *error)
{
    const char *name = NULL;
    hob_status st = hob__json_string(op->source->doc, item, &name, error);

    for (uint32_t i = 1; i < HOB_DTYPE_COUNT_ && !st; i++) {
        if (!strcmp(hob_dtype_name(i), name)) {
            *mask |= HOB_DTYPE_BIT(i);
            return HOB_OK;
        }
    }
    return st ? st
              : gen_fail(op->source, item, error, "there is no dtype \"%s\"",
                         name);
}

/* The names in LIST, which must be of the kind of tensor parameter TENSOR. */
static hob_status read_mask(const struct gen_op *op, uint32_t tensor,
                            const struct hob__json_value *list, uint32_t *mask,
                            hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    const struct hob__json_value *item;
    uint32_t param = 0, given = 0;
    hob_status st =
        hob__json_expect(op->source->doc, list, HOB__JSON_ARRAY, error);

    for (; param < signature->param_count; param++) {
        if (signature->params[param].mask && tensor-- == 0)
            break;
    }
    for (item = st ? NULL : first_of(op, list); item && !st;
         item = hob__json_next(op->source->doc, item))
        st = read_dtype(op, item, &given, error);
    if (!st && !(given & signature->params[param].mask))
        st = gen_fail(
            op->source, list, error, "none of them is a dtype of \"%s: %s\"",
            signature->params[param].name, signature->params[param].kind);
    *mask = given & signature->params[param].mask;
    return st;
}

static bool is_apart(uint32_t mask)
{
    return mask == HOB_MASK_INT || mask == HOB_MASK_BOOL;
}

/*
 * ["f32", "f64"]: what the tensors that share the first one's dtype may be; or
 * a list a tensor parameter, [["f32"], ["i32", "i64"]].
 */
static hob_status read_dtypes(const struct gen_op *op,
                              const struct hob__json_value *object,
                              struct gen_impl *impl, hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    const struct hob__json_value *list = NULL, *item;
    bool nested;
    hob_status st = gen_get_member(op->source, object, "dtypes",
                                   HOB__JSON_ARRAY, false, &list, error);

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];

        if (param->mask)
            impl->dtypes[impl->dtype_count++] = param->mask;
    }
    if (st || !list)
        return st;
    item = first_of(op, list);
    nested = item && item->type == HOB__JSON_ARRAY;
    if (!item || !impl->dtype_count ||
        (nested && list->count != impl->dtype_count))
        return gen_fail(op->source, list, error,
                        "dtypes expected, or one list of them for each of the "
                        "%" PRIu32 " tensor parameters",
                        impl->dtype_count);
    if (nested) {
        for (uint32_t i = 0; i < impl->dtype_count && !st; i++) {
            st = read_mask(op, i, item, &impl->dtypes[i], error);
            item = hob__json_next(op->source->doc, item);
        }
        return st;
    }
    /* Tensors share the first one's dtype, but for explicit Int and Bool. */
    for (uint32_t i = impl->dtype_count; i-- > 0 && !st;) {
        if (impl->dtypes[i] == impl->dtypes[0] ||
            (!is_apart(impl->dtypes[i]) && !is_apart(impl->dtypes[0])))
            st = read_mask(op, i, list, &impl->dtypes[i], error);
    }
    return st;
}

/* ---- backward ---- */

static hob_status read_params(const struct gen_op *op,
                              const struct hob__json_value *list,
                              uint32_t *mask, hob_error *error)
{
    const struct hob__json_value *item;
    hob_status st =
        hob__json_expect(op->source->doc, list, HOB__JSON_ARRAY, error);

    for (item = st ? NULL : first_of(op, list); item && !st;
         item = hob__json_next(op->source->doc, item)) {
        const char *name = NULL;
        uint32_t bits = 0;

        st = hob__json_string(op->source->doc, item, &name, error);
        if (!st)
            st = gen_tensor_params(op, item, name, &bits, error);
        *mask |= bits;
    }
    return st;
}

/* {"lhs": ["rhs"]}: for the gradient of lhs, rhs is needed. */
static hob_status read_save_for(const struct gen_op *op,
                                const struct hob__json_value *map,
                                struct gen_impl *impl, hob_error *error)
{
    const struct hob__json_value *member;
    hob_status st = HOB_OK;

    impl->has_save_for = true;
    for (member = first_of(op, map); member && !st;
         member = hob__json_next(op->source->doc, member)) {
        uint32_t bits = 0, needed = 0;

        st = gen_tensor_params(
            op, member, hob__json_key(op->source->doc, member), &bits, error);
        if (!st)
            st = read_params(op, member, &needed, error);
        for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
            impl->save_for[i] |= bits >> i & 1 ? needed : 0;
        impl->save_args |= needed;
    }
    return st;
}

static hob_status read_results(const struct gen_op *op,
                               const struct hob__json_value *list,
                               struct gen_impl *impl, hob_error *error)
{
    const struct hob__json_value *item;
    hob_status st = HOB_OK;

    for (item = first_of(op, list); item && !st;
         item = hob__json_next(op->source->doc, item)) {
        uint32_t bits = 0;

        st = gen_tensor_results(op, item, &bits, error);
        impl->save_rets |= bits;
    }
    return st;
}

static hob_status read_backward(const struct gen_op *op,
                                const struct hob__json_value *object,
                                struct gen_impl *impl, hob_error *error)
{
    const struct gen_source *source = op->source;
    const struct hob__json_value *value = NULL, *save = NULL, *save_for = NULL,
                                 *results = NULL;
    hob_status st = gen_get_member(source, object, "backward", HOB__JSON_OBJECT,
                                   false, &value, error);

    if (st || !value)
        return st;
    impl->backward = true;
    st = gen_check_keys(source, value, backward_keys,
                        GEN_COUNT_OF(backward_keys), error);
    if (!st)
        st = gen_get_member(source, value, "save", HOB__JSON_ARRAY, false,
                            &save, error);
    if (!st)
        st = gen_get_member(source, value, "save_for", HOB__JSON_OBJECT, false,
                            &save_for, error);
    if (!st)
        st = gen_get_member(source, value, "save_results", HOB__JSON_ARRAY,
                            false, &results, error);
    if (!st)
        st = gen_get_bool(source, value, "recompute", &impl->recompute, error);
    if (!st && save && save_for)
        st = gen_fail(source, save_for, error,
                      "either \"save\" or \"save_for\", not both");
    if (!st && save)
        st = read_params(op, save, &impl->save_args, error);
    if (!st && save_for)
        st = read_save_for(op, save_for, impl, error);
    if (!st && results)
        st = read_results(op, results, impl, error);
    return st;
}

/* ---- implementations ---- */

static hob_status check_impl(const struct gen_op *op,
                             const struct hob__json_value *object,
                             const struct gen_impl *impl, hob_error *error)
{
    const struct gen_source *source = op->source;
    bool is_autodiff = !strcmp(impl->selector, "autodiff");

    if (!impl->kernel && !impl->backward && !impl->layer)
        return gen_fail(source, object, error,
                        "\"kernel\": true, \"backward\": {..} or \"layer\": "
                        "true expected: what is there for \"%s\"?",
                        impl->selector);
    if (impl->kernel && (impl->backward || impl->layer))
        return gen_fail(source, object, error,
                        "a selector is a backend, with a kernel, or a "
                        "decorator, with a backward or a layer; not both");
    if (impl->kernel && is_autodiff)
        return gen_fail(source, object, error,
                        "autodiff computes nothing: give it a \"backward\"");
    if (impl->backward && !is_autodiff)
        return gen_fail(source, object, error,
                        "a \"backward\" belongs to \"autodiff\"");
    if (!impl->kernel && (impl->prepare || impl->contiguous || impl->in_place))
        return gen_fail(source, object, error,
                        "\"prepare\", \"contiguous\" and \"in_place\" are "
                        "about a kernel");
    if (impl->keep && !impl->prepare)
        return gen_fail(source, hob__json_member(source->doc, object, "keep"),
                        error,
                        "\"keep\" keeps what \"prepare\" returns: add "
                        "\"prepare\": true");
    return HOB_OK;
}

hob_status gen_read_impl(const struct gen_op *op,
                         const struct hob__json_value *object,
                         struct gen_impl *impl, hob_error *error)
{
    const struct gen_source *source = op->source;
    hob_status st =
        gen_get_bool(source, object, "kernel", &impl->kernel, error);

    impl->place = object;
    if (!st)
        st = gen_get_bool(source, object, "prepare", &impl->prepare, error);
    if (!st)
        st = gen_get_bool(source, object, "contiguous", &impl->contiguous,
                          error);
    if (!st)
        st = gen_get_bool(source, object, "in_place", &impl->in_place, error);
    if (!st)
        st = gen_get_bool(source, object, "keep", &impl->keep, error);
    if (!st)
        st = gen_get_bool(source, object, "layer", &impl->layer, error);
    if (!st)
        st = read_backward(op, object, impl, error);
    if (!st)
        st = check_impl(op, object, impl, error);
    if (!st && impl->kernel)
        st = read_dtypes(op, object, impl, error);
    return st;
}

hob_status gen_read_impls(struct gen_op *op, hob_error *error)
{
    const struct hob__json_value *map = NULL, *member;
    hob_status st = gen_get_member(op->source, op->place, "implementations",
                                   HOB__JSON_OBJECT, false, &map, error);

    if (st || !map || !map->count)
        return st;
    op->impls = calloc(map->count, sizeof(*op->impls));
    if (!op->impls)
        return gen_no_memory(error);
    for (member = first_of(op, map); member && !st;
         member = hob__json_next(op->source->doc, member)) {
        struct gen_impl *impl = &op->impls[op->impl_count++];

        impl->selector = hob__json_key(op->source->doc, member);
        st = gen_check_selector(op->source, member, impl->selector, error);
        if (!st)
            st = gen_check_keys(op->source, member, impl_keys,
                                GEN_COUNT_OF(impl_keys), error);
        if (!st)
            st = gen_read_impl(op, member, impl, error);
    }
    return st;
}

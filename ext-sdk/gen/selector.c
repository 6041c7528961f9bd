/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selector.c - where an op runs: "backends", fusion, ops without a tensor.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const selector_keys[] = {"selector", "when"};

static const struct hob__json_value *first_of(const struct gen_op *op,
                                              const struct hob__json_value *v)
{
    return v ? hob__json_first(op->source->doc, v) : NULL;
}

hob_status gen_check_selector(const struct gen_source *source,
                              const struct hob__json_value *place,
                              const char *name, hob_error *error)
{
    const char *p = name;

    if (!strcmp(name, "*"))
        return HOB_OK;
    while ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '-' ||
           *p == '_' || *p == '.')
        p++;
    return *name && !*p ? HOB_OK
                        : gen_fail(source, place, error,
                                   "\"%s\" is no selector: a backend, a "
                                   "family, a decorator or \"*\"",
                                   name);
}

/* "feature:NAME", of those that the manifest has, or "plugin:ID". */
static hob_status check_condition(const struct gen_source *source,
                                  const struct hob__json_value *place,
                                  const char *when, hob_error *error)
{
    const struct hob__json_value *features =
        hob__json_member(source->doc, hob__json_root(source->doc), "features");

    if (!strncmp(when, "plugin:", 7) && when[7])
        return HOB_OK;
    if (strncmp(when, "feature:", 8) != 0 || !when[8])
        return gen_fail(source, place, error,
                        "\"%s\" is no condition: write feature:NAME or "
                        "plugin:ID",
                        when);
    if (hob__json_member(source->doc, features, when + 8))
        return HOB_OK;
    return gen_fail(source, place, error,
                    "there is no feature \"%s\": declare it, as in "
                    "\"features\": {\"%s\": false}",
                    when + 8, when + 8);
}

/* An element of "backends": a name, or {"selector", "when"}. */
static hob_status read_selector(const struct gen_op *op,
                                const struct hob__json_value *item,
                                const char **out_name, hob_error *error)
{
    const struct gen_source *source = op->source;
    const char *when = NULL;
    hob_status st;

    if (item->type == HOB__JSON_STRING) {
        st = hob__json_string(source->doc, item, out_name, error);
        return st ? st : gen_check_selector(source, item, *out_name, error);
    }
    st = gen_check_keys(source, item, selector_keys,
                        GEN_COUNT_OF(selector_keys), error);
    if (!st)
        st = gen_get_string(source, item, "selector", true, out_name, error);
    if (!st)
        st = gen_check_selector(source, item, *out_name, error);
    if (!st)
        st = gen_get_string(source, item, "when", false, &when, error);
    if (!st && when)
        st = check_condition(
            source, hob__json_member(source->doc, item, "when"), when, error);
    return st;
}

static bool has_impl(const struct gen_op *op, const char *selector)
{
    for (uint32_t i = 0; i < op->impl_count; i++) {
        if (!strcmp(op->impls[i].selector, selector))
            return true;
    }
    return false;
}

/* Whether SELECTOR is listed before ITEM, or at all if ITEM is NULL. */
static bool is_listed(const struct gen_op *op, const char *selector,
                      const struct hob__json_value *end)
{
    const struct hob__json_value *item =
        first_of(op, hob__json_member(op->source->doc, op->place, "backends"));

    for (; item && item != end; item = hob__json_next(op->source->doc, item)) {
        const char *name = NULL;

        if (!read_selector(op, item, &name, NULL) && !strcmp(name, selector))
            return true;
    }
    return false;
}

/*
 * MAN-5: what is listed must be served, by an implementation or the body. A
 * decorator that is listed alone follows the body too.
 */
static hob_status check_list(const struct gen_op *op,
                             const struct hob__json_value *list,
                             hob_error *error)
{
    const struct hob__json_value *item;
    hob_status st = HOB_OK;

    if (!list->count)
        return gen_fail(op->source, list, error,
                        "the op lists no backend: it can run nowhere");
    for (item = first_of(op, list); item && !st;
         item = hob__json_next(op->source->doc, item)) {
        const char *name = NULL;

        st = read_selector(op, item, &name, error);
        if (!st && is_listed(op, name, item))
            st = gen_fail(op->source, item, error, "\"%s\" is listed twice",
                          name);
        if (!st && !op->body && !has_impl(op, name))
            st = gen_fail(op->source, item, error,
                          "\"%s\" lists \"%s\", but has no body and no "
                          "implementation for it",
                          op->name, name);
    }
    return st;
}

static hob_status check_impls(const struct gen_op *op, hob_error *error)
{
    for (uint32_t i = 0; i < op->impl_count; i++) {
        /* "*" lists every layer. */
        if (!is_listed(op, op->impls[i].selector, NULL) &&
            !is_listed(op, "*", NULL))
            return gen_fail(op->source, op->impls[i].place, error,
                            "\"%s\" is implemented, but not listed in "
                            "\"backends\"",
                            op->impls[i].selector);
    }
    return HOB_OK;
}

/* ---- fusion: exactly one rule ---- */

static hob_status check_fusion(const struct gen_op *op, hob_error *error)
{
    const struct gen_source *source = op->source;
    const struct hob__json_value *fuse =
        hob__json_member(source->doc, op->place, "fuse");
    const struct gen_impl *layer = NULL;

    for (uint32_t i = 0; i < op->impl_count; i++)
        if (!strcmp(op->impls[i].selector, "fusion"))
            layer = &op->impls[i];
    if (layer && !layer->layer)
        return gen_fail(source, layer->place, error,
                        "fusion is a decorator: its implementation is a "
                        "\"layer\"");
    if (layer && fuse)
        return gen_fail(source, fuse, error,
                        "an op has one rule for fusion: \"fuse\", or the "
                        "layer that \"implementations\" has for \"fusion\"");
    if (op->fuse == GEN_FUSE_INLINE && !op->body)
        return gen_fail(source, fuse, error,
                        "\"inline\" fuses the body, and there is none: add "
                        "\"body\": true, or say \"opaque\"");
    if (fuse && op->fuse != GEN_FUSE_INLINE && op->dynamic && !op->infer &&
        !op->infer_object)
        return gen_fail(source, fuse, error,
                        "\"opaque\" needs to know the sizes of results before "
                        "the call, and this op is \"dynamic\": leave \"fuse\" "
                        "out, and fusion stops before it");
    return HOB_OK;
}

/* ---- ops without a tensor ---- */

/* A family, a decorator or "*": what is no single backend. */
static bool is_many(const struct gen_op *op, const char *selector)
{
    static const char *const known[] = {"*", "cube", "autodiff", "fusion",
                                        "record"};

    for (size_t i = 0; i < GEN_COUNT_OF(known); i++)
        if (!strcmp(known[i], selector))
            return true;
    for (uint32_t i = 0; i < op->impl_count; i++)
        if (!strcmp(op->impls[i].selector, selector) && !op->impls[i].kernel)
            return true;
    return false;
}

/*
 * Nothing says on which device a call without a tensor runs, unless there is
 * a device parameter, or one backend only. That an optional tensor, or those
 * of an enum, are absent shows at run time.
 */
static hob_status check_tensorless(const struct gen_op *op,
                                   const struct hob__json_value *list,
                                   hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    const char *name = NULL;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];

        if (param->mask ||
            (param->type == HOB__TYPE_DEVICE && !gen_is_optional(param)))
            return HOB_OK;
    }
    if (is_listed(op, "autodiff", NULL))
        return gen_fail(op->source, list, error,
                        "\"%s\" has no tensor parameter, so autodiff has "
                        "nothing to track: do not list it, or add a parameter "
                        "\"device: device\"",
                        op->name);
    if (list->count == 1 &&
        !read_selector(op, first_of(op, list), &name, NULL) &&
        !is_many(op, name))
        return HOB_OK;
    return gen_fail(op->source, list, error,
                    "\"%s\" has no tensor parameter, and nothing else says on "
                    "which backend it runs: list exactly one, or add a "
                    "parameter \"device: device\"",
                    op->name);
}

hob_status gen_check_backends(const struct gen_op *op, hob_error *error)
{
    const struct hob__json_value *list = NULL;
    hob_status st = gen_get_member(op->source, op->place, "backends",
                                   HOB__JSON_ARRAY, true, &list, error);

    if (!st)
        st = check_list(op, list, error);
    if (!st)
        st = check_impls(op, error);
    if (!st)
        st = check_fusion(op, error);
    return st ? st : check_tensorless(op, list, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An extension for tests of what looks at calls. demo.pick has attributes of
 * many types and two lists; its result tells each of them: x times one number
 * that all go into. demo.parts has a list of as many results as it is told,
 * demo.fold takes an enum of tensors and demo.spread makes one.
 */
#include "mock.h"

#include <hob/ops.h>

static hob_status pick_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 1);

    out[0].rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        out[0].shape[i] = x->shape[i];
    return HOB_OK;
}

static hob_status pick_body(hob_scope *scope, const struct hob_call *call,
                            hob_tensor **out)
{
    const hob_value *args = call->args;
    double number = args[0].tag == HOB_TAG_TENSORS ? args[0].count : 0;

    number = number * 10 + (args[2].tag == HOB_TAG_TENSORS ? args[2].count : 0);
    number = number * 10 + (double)args[3].u.i64;
    number = number * 10 + args[4].count;
    for (uint32_t i = 0; i < args[5].count; i++)
        number = number * 10 + args[5].u.f64s[i];
    number += (double)(args[6].u.i64 % 1000);
    if (args[7].tag == HOB_TAG_BOOL)
        number = number * 10 + (args[7].u.i64 ? 2 : 1);
    *out = hob_mul_scalar(scope, args[1].u.tensor, hob_f64(number));
    return HOB_OK;
}

static hob_status parts_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    if (!out) {
        call->ret_count = (uint16_t)call->args[1].u.i64;
        return HOB_OK;
    }
    for (uint32_t i = 0; i < call->ret_count; i++) {
        out[i].rank = x->rank;
        for (uint32_t k = 0; k < x->rank; k++)
            out[i].shape[k] = x->shape[k];
    }
    return HOB_OK;
}

static hob_status parts_body(hob_scope *scope, const struct hob_call *call,
                             hob_tensor **out)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        out[i] = hob_add_scalar(scope, call->args[0].u.tensor, hob_f64(i));
    return HOB_OK;
}

/* Where the flat parameters of demo.fold are: the variant, its tensors. */
enum { FOLD_TAG, FOLD_ONE, FOLD_A, FOLD_B, FOLD_LIKE };

static void meta_like(const struct hob_view *view, struct hob_meta *out)
{
    out->dtype = view->dtype;
    out->rank = view->rank;
    for (uint32_t i = 0; i < view->rank; i++)
        out->shape[i] = view->shape[i];
}

static hob_status fold_infer(struct hob_call *call, struct hob_meta *out)
{
    meta_like(hob_arg_view(call, FOLD_LIKE), out);
    return HOB_OK;
}

static hob_status fold_body(hob_scope *scope, const struct hob_call *call,
                            hob_tensor **out)
{
    const hob_value *args = call->args;
    hob_tensor *like = args[FOLD_LIKE].u.tensor;

    if (args[FOLD_TAG].u.i64 == 0)
        *out = hob_sub(scope, like, args[FOLD_ONE].u.tensor);
    else if (args[FOLD_TAG].u.i64 == 1)
        *out = hob_sub(scope, args[FOLD_A].u.tensor,
                       hob_mul(scope, args[FOLD_B].u.tensor, like));
    else
        *out = hob_neg(scope, like);
    return HOB_OK;
}

static hob_status spread_infer(struct hob_call *call, struct hob_meta *out)
{
    int64_t which = call->args[1].u.i64;

    call->plains[0].u.i64 = which;
    for (int64_t i = which == 0 ? 0 : 1; i < (which == 0 ? 1 : 3); i++)
        if (which < 2)
            meta_like(hob_arg_view(call, 0), &out[i]);
    return HOB_OK;
}

static hob_status spread_body(hob_scope *scope, const struct hob_call *call,
                              hob_tensor **out)
{
    hob_tensor *x = call->args[0].u.tensor;

    if (call->plains[0].u.i64 == 0)
        out[0] = hob_neg(scope, x);
    if (call->plains[0].u.i64 == 1) {
        out[1] = hob_mul(scope, x, x);
        out[2] = hob_exp(scope, x);
    }
    return HOB_OK;
}

static const struct hob_extension_op ops[] = {
    {.name = "demo.pick",
     .signature = "(first: [Float], x: Float, second: [Float], "
                  "mode: enum(up, down, left), label: str, "
                  "weights: [f64], big: i64, flag: bool?) -> x",
     .infer = pick_infer,
     .body = pick_body},
    {.name = "demo.parts",
     .signature = "(x: Float, count: i64) -> [x]",
     .infer = parts_infer,
     .body = parts_body},
    {.name = "demo.fold",
     .signature = "(operand: enum(One, Pair, Empty), operand.One: Float?, "
                  "operand.Pair.a: Float?, operand.Pair.b: Float?, "
                  "like: Float) -> Float",
     .infer = fold_infer,
     .body = fold_body},
    {.name = "demo.spread",
     .signature = "(x: Float, which: i64) -> (One: Float?, Pair.a: Float?, "
                  "Pair.b: Float?, variant: value(enum(One, Pair, Empty)))",
     .infer = spread_infer,
     .body = spread_body},
};

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD,
    .op_count = 4,
    .ops = ops,
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "attributes",
    .version = "1.0.0",
    .extension = &extension,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}

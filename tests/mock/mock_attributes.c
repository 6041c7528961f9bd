/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An extension whose op has an attribute of many types and two lists. Its
 * result tells each of them: x times one number that all go into.
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

static const struct hob_extension_op ops[] = {
    {.name = "demo.pick",
     .signature = "(first: [Float], x: Float, second: [Float], "
                  "mode: enum(up, down, left), label: str, "
                  "weights: [f64], big: i64, flag: bool?) -> x",
     .infer = pick_infer,
     .body = pick_body},
};

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD,
    .op_count = 1,
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

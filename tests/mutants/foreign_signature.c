/* SPDX-License-Identifier: Apache-2.0 */
/* Its kernel for the built-in relu calls the parameter otherwise. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *y = hob_ret_view(call, 0);

    (void)device;
    for (int64_t i = 0; i < hob_view_count(y); i++) {
        double value = mutant_get(x, i);

        mutant_put(y, i, value < 0 ? 0 : value);
    }
    return HOB_OK;
}

static const uint32_t dtypes[] = {HOB_DTYPE_BIT(HOB_DTYPE_F32) |
                                  HOB_DTYPE_BIT(HOB_DTYPE_F64)};

static const struct hob_entry entry = {.op = "relu",
                                       .signature = "(input: Float) -> input",
                                       .dtypes = dtypes,
                                       .dtype_count = 1,
                                       .execute = execute};

static const struct hob_op_impl impls[] = {
    {.selector = "flex", .entry = &entry}};

static const struct hob_extension_op ops[] = {
    {.name = "relu",
     .signature = "(input: Float) -> input",
     .impls = impls,
     .impl_count = 1}};

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD, .implements_count = 1, .implements = ops};

static const struct hob_plugin table = {HOB_PLUGIN_INIT_HEAD, .id = "mutant",
                                        .version = "1.0.0",
                                        .extension = &extension};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "move.h"

static hob_status execute_contiguous(void *device, struct hob_call *call)
{
    flex_move_dense(device, hob_ret_view(call, 0)->data, hob_arg_view(call, 0));
    return HOB_OK;
}

static const uint32_t any_mask[] = {HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "contiguous",
        .signature = "(x: Any) -> x",
        .dtypes = any_mask,
        .dtype_count = 1,
        .execute = execute_contiguous,
    },
};

const struct flex_entries flex_copy_entries = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
};

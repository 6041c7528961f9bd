/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cat.c - tensors one after the other along a dimension.
 */
#include "../cube.h"
#include "../move.h"

/* Each tensor into its part of the result. */
static hob_status cat(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t dim = cube_dim(cube_arg_i64(call, 1), out->rank);
    const int64_t step = out->strides[dim] * hob_dtype_size(out->dtype);
    struct hob_view part = *out;
    hob_status st = HOB_OK;

    for (uint32_t i = 0; i < call->args[0].count && !st; i++) {
        const struct hob_view *in = hob_arg_item(call, 0, i);

        part.shape[dim] = in->shape[dim];
        if (hob_view_count(in) > 0)
            st = cube_move(device, call, &part, in);
        part.data = (char *)part.data + in->shape[dim] * step;
    }
    return st;
}

static const uint32_t masks[] = {HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "cat",
        .signature = "(tensors: [Any], dim: i64) -> tensors",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = cat,
    },
};

const struct cube_entries cube_cat_entries = {entries, sizeof(entries) /
                                                           sizeof(entries[0])};

/* SPDX-License-Identifier: Apache-2.0 */
#include "move.h"

/* ---- full ---- */

static hob_status execute_full(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct hob_view one = *out;
    uint64_t value = 0;

    flex_scalar_store(&call->args[1], out->dtype, &value);
    one.data = &value;
    for (uint32_t i = 0; i < one.rank; i++)
        one.strides[i] = 0;
    flex_move(device, out, &one);
    return HOB_OK;
}

/* ---- arange ---- */

struct arange_run {
    char *out;
    flex_cast_fn cast; /* from i64 */
    int64_t start;
    int64_t step;
    uint32_t size;
};

/* Unsigned, so that a last step past the end of i64 wraps unused. */
static void arange_piece(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct arange_run *run = context;
    int64_t values[FLEX_BLOCK];

    (void)worker;
    while (first < last) {
        int64_t n = last - first < FLEX_BLOCK ? last - first : FLEX_BLOCK;

        for (int64_t i = 0; i < n; i++)
            values[i] = (int64_t)((uint64_t)run->start +
                                  (uint64_t)(first + i) * (uint64_t)run->step);
        run->cast(run->out + first * run->size, values, n);
        first += n;
    }
}

static hob_status execute_arange(void *opened, struct hob_call *call)
{
    struct flex_device *device = opened;
    const struct hob_view *out = hob_ret_view(call, 0);
    struct arange_run run;

    run.out = out->data;
    run.cast = device->kernels->cast[out->dtype][HOB_DTYPE_I64];
    run.start = flex_arg_i64(call, 0);
    run.step = flex_arg_i64(call, 2);
    run.size = hob_dtype_size(out->dtype);
    flex_parallel(device, hob_view_count(out), FLEX_GRAIN_CHEAP, arange_piece,
                  &run);
    return HOB_OK;
}

static const struct hob_entry entries[] = {
    {
        .op = "full",
        .signature = "(shape: shape, value: scalar, device: device, dtype: "
                     "dtype = f32) -> dtype",
        .execute = execute_full,
    },
    {
        .op = "arange",
        .signature = "(start: i64, end: i64, step: i64 = 1, device: device, "
                     "dtype: dtype = i32) -> dtype",
        .execute = execute_arange,
    },
};

const struct flex_entries flex_create_entries = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "flex.h"

struct cast_run {
    flex_cast_fn fn;
    struct flex_loop in;
    struct flex_loop out;
};

static void cast_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct cast_run *run = context;
    _Alignas(FLEX_ALIGN) unsigned char in[FLEX_BLOCK * 8];
    _Alignas(FLEX_ALIGN) unsigned char out[FLEX_BLOCK * 8];
    int dense = flex_loop_dense(&run->out);

    (void)worker;
    while (first < last) {
        int64_t n = last - first < FLEX_BLOCK ? last - first : FLEX_BLOCK;
        const void *from = flex_loop_fetch(&run->in, first, n, in);

        if (dense) {
            run->fn(run->out.data + first * run->out.size, from, n);
        } else {
            run->fn(out, from, n);
            flex_loop_scatter(&run->out, first, n, out);
        }
        first += n;
    }
}

static hob_status execute_cast(void *opened, struct hob_call *call)
{
    struct flex_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct cast_run run;

    run.fn = device->kernels->cast[out->dtype][x->dtype];
    flex_loop_init(&run.in, x);
    flex_loop_init(&run.out, out);
    flex_parallel(device, run.out.count, FLEX_GRAIN_CHEAP, cast_piece, &run);
    return HOB_OK;
}

static const uint32_t any_mask[] = {HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "cast",
        .signature = "(x: Any, dtype: dtype) -> dtype",
        .dtypes = any_mask,
        .dtype_count = 1,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = execute_cast,
    },
};

const struct flex_entries flex_cast_entries = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "flex.h"

struct copy_run {
    struct flex_loop in;
    char *out;
};

static void copy_rows(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    struct copy_run *run = context;

    (void)worker;
    flex_loop_copy(&run->in, first, last, run->out);
}

static hob_status execute_contiguous(void *opened, struct hob_call *call)
{
    struct flex_device *device = opened;
    struct copy_run run;
    int64_t rows, grain;

    flex_loop_init(&run.in, hob_arg_view(call, 0));
    run.out = hob_ret_view(call, 0)->data;
    if (run.in.count == 0)
        return HOB_OK;
    rows = run.in.rank ? run.in.shape[0] : 1;
    grain = FLEX_GRAIN_CHEAP / (run.in.count / rows);
    /* Whole tiles of the transposing copy. */
    grain = grain < 64 ? 64 : grain & ~INT64_C(63);
    if (run.in.count < 2 * FLEX_GRAIN_CHEAP)
        copy_rows(&run, 0, rows, 0);
    else
        flex_parallel(device, rows, grain, copy_rows, &run);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "move.h"

struct cast_run {
    struct flex_device *device;
    flex_cast_fn fn;
    struct flex_loop in;
    struct flex_loop out;
    int skips; /* the input is brought together in parts first */
    int past;  /* the result goes past the caches */
};

/* Blocks of elements FIRST .. LAST - 1; PART has them one after the other, or
 * is NULL. */
static void cast_blocks(const struct cast_run *run, int64_t first, int64_t last,
                        const char *part)
{
    _Alignas(FLEX_ALIGN) unsigned char in[FLEX_BLOCK * 8];
    _Alignas(FLEX_ALIGN) unsigned char own[FLEX_BLOCK * 8];
    const int dense = flex_loop_dense(&run->out);

    while (first < last) {
        int64_t n = last - first < FLEX_BLOCK ? last - first : FLEX_BLOCK;
        char *out = run->out.data + first * run->out.size;
        const void *from = part;

        if (part)
            part += n * run->in.size;
        else
            from = flex_loop_fetch(&run->in, first, n, in);
        run->fn(dense && !run->past ? (void *)out : own, from, n);
        if (run->past)
            flex_move_kernels(run->device)->stream(out, own, n * run->out.size);
        else if (!dense)
            flex_loop_scatter(&run->out, first, n, own);
        first += n;
    }
    if (run->past)
        flex_move_kernels(run->device)->fence();
}

static void cast_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    enum { PART = 1 << 17 };
    const struct cast_run *run = context;

    (void)worker;
    while (first < last) {
        const int64_t most = run->skips ? PART : last - first;
        const int64_t n = last - first < most ? last - first : most;
        const uint64_t bytes = (uint64_t)n * run->in.size;
        char *part = NULL;

        if (run->skips)
            part = flex_scratch_take(run->device, bytes);
        if (part)
            flex_move_range(run->device, &run->in, first, n, part);
        cast_blocks(run, first, first + n, part);
        flex_scratch_give(run->device, part, bytes);
        first += n;
    }
}

static hob_status execute_cast(void *opened, struct hob_call *call)
{
    struct flex_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct cast_run run = {.device = device};

    run.fn = device->kernels->cast[out->dtype][x->dtype];
    flex_loop_init(&run.in, x);
    flex_loop_init(&run.out, out);
    run.skips = run.in.count > FLEX_BLOCK && flex_loop_skips(&run.in);
    run.past = flex_loop_dense(&run.out) && x->data != out->data &&
               flex_goes_past(device, (uint64_t)run.out.count * run.out.size);
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

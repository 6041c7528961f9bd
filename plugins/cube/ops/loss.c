/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.c - cross_entropy, its losses of rows and then their mean, and its
 * gradient.
 */
#include "../cube.h"

#include "../indices.h"
#include "../texts.h"
#include "fold.h"
#include "rows.h"

#include <string.h>

/* Rows of so many columns are worth several invocations, rows.c; shorter ones
 * have one each, in small groups, for the many processors. */
enum { LONG = 48, FEW = 64 };

static const struct cube_program program = {
    .name = "cross_entropy",
    .text = cube_text_cross_entropy,
    .buffers = {{"out", CUBE_WRITTEN},
                {"logits", 0},
                {"targets", 0},
                {"slope", 0},
                {"bad", CUBE_WRITTEN | CUBE_ATOMIC}},
    .params = {{"rows", CUBE_INDEX, 0}, {"columns", CUBE_INDEX, 0}},
    .constants = {"BACKWARD"},
    .flags = CUBE_MATHS,
};

static hob_status run_short(struct cube_device *device, struct hob_call *call,
                            const struct cube_entropy *entropy)
{
    const struct hob_view *logits = entropy->logits;
    const int64_t rows = logits->shape[0], columns = logits->shape[1];
    struct cube_job job;

    cube_job_init(&job, device, call, &program);
    if (entropy->losses)
        cube_job_memory(&job, entropy->losses, logits->dtype, rows);
    else
        cube_job_view(&job, entropy->out);
    cube_job_view(&job, logits);
    cube_job_view(&job, entropy->targets);
    if (entropy->slope)
        cube_job_view(&job, entropy->slope);
    else
        cube_job_absent(&job);
    cube_job_memory(&job, entropy->bad, HOB_DTYPE_U32, 1);
    cube_job_i64(&job, rows);
    cube_job_i64(&job, columns);
    cube_job_reach(&job, rows * columns);
    cube_job_constant(&job, entropy->losses == NULL);
    job.variant.group_size = FEW;
    return cube_job_run(&job, cube_groups(device, rows, FEW));
}

/* LOSSES of rows for CALL, or without them its gradient. */
static hob_status run(struct cube_device *device, struct hob_call *call,
                      void *losses)
{
    struct cube_entropy entropy = {.logits = hob_arg_view(call, 0),
                                   .targets = hob_arg_view(call, 1),
                                   .losses = losses};
    const int64_t columns = entropy.logits->shape[1];
    struct cube_flag flag;
    hob_status st = cube_indices_flag(&flag, device, call, 1, columns);

    if (st)
        return st;
    entropy.bad = flag.data;
    if (!losses) {
        entropy.out = hob_ret_view(call, 0);
        entropy.slope = hob_arg_view(call, 2);
    }
    st = columns < LONG ? run_short(device, call, &entropy)
                        : cube_rows_entropy(device, call, &entropy);
    return cube_indices_end(&flag, device, call, st, entropy.targets, columns);
}

/* What has no rows or columns is the body's. */
static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    const struct hob_view *logits = hob_arg_view(call, 0);

    (void)device;
    if (!hob_view_count(logits))
        return HOB_ERR_UNSUPPORTED;
    if (call->arg_count == 2)
        out->workspace_bytes = (uint64_t)logits->shape[0] *
                               (uint64_t)hob_dtype_size(logits->dtype);
    return HOB_OK;
}

static hob_status cross_entropy(void *device, struct hob_call *call)
{
    const struct hob_view *logits = hob_arg_view(call, 0);
    struct cube_fold mean = {.device = device,
                             .call = call,
                             .dims = 1,
                             .kind = CUBE_FOLD_SUM,
                             .is_mean = 1,
                             .values = hob_ret_view(call, 0)};
    hob_status st = run(device, call, call->workspace);

    mean.x.data = call->workspace;
    mean.x.dtype = logits->dtype;
    mean.x.rank = 1;
    mean.x.flags = HOB_VIEW_CONTIGUOUS | HOB_VIEW_INJECTIVE;
    mean.x.shape[0] = logits->shape[0];
    mean.x.strides[0] = 1;
    return st ? st : cube_fold_run(&mean);
}

static hob_status cross_entropy_backward(void *device, struct hob_call *call)
{
    return run(device, call, NULL);
}

/* The losses of rows would be rounded to 16 bits: that is left to the body,
 * which computes in f32. */
static const uint32_t masks[] = {
    HOB_DTYPE_BIT(HOB_DTYPE_F32) | HOB_DTYPE_BIT(HOB_DTYPE_F64), HOB_MASK_INT};
static const uint32_t backward_masks[] = {HOB_MASK_FLOAT, HOB_MASK_INT,
                                          HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "cross_entropy",
        .signature = "(logits: Float, targets: Int) -> logits",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_CONTIGUOUS,
        .prepare = prepare,
        .execute = cross_entropy,
    },
    {
        .op = "cross_entropy_backward",
        .signature = "(logits: Float, targets: Int, grad: Float) -> logits",
        .dtypes = backward_masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_CONTIGUOUS,
        .prepare = prepare,
        .execute = cross_entropy_backward,
    },
};

const struct cube_entries cube_loss_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

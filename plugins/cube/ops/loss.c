/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.c - cross_entropy, its losses of rows and then their mean, and its
 * gradient.
 */
#include "../cube.h"

#include "../indices.h"
#include "../texts.h"
#include "fold.h"

#include <string.h>

/* Rows of so many columns are worth a group each; shorter ones an invocation,
 * in small groups, for the many processors. */
enum { TEAM_COLUMNS = 48, FEW = 64 };

static const struct cube_program program = {
    .name = "cross_entropy",
    .text = cube_text_cross_entropy,
    .buffers = {{"out", CUBE_WRITTEN},
                {"logits", 0},
                {"targets", 0},
                {"grad", 0},
                {"bad", CUBE_WRITTEN | CUBE_ATOMIC}},
    .params = {{"rows", CUBE_INDEX, 0},
               {"columns", CUBE_INDEX, 0},
               {"batch", CUBE_VALUE_OF(1), 0}},
    .constants = {"TEAM", "BACKWARD"},
    .symbols = {"ACCUM"},
    .flags = CUBE_MATHS | CUBE_GROUPS | CUBE_SUBGROUPS,
};

/* OUT of DTYPE for CALL, of which GRAD is the last argument or NULL. */
static hob_status run(struct cube_device *device, struct hob_call *call,
                      void *out, const struct hob_view *grad)
{
    const struct hob_view *logits = hob_arg_view(call, 0);
    const struct hob_view *targets = hob_arg_view(call, 1);
    const int64_t rows = logits->shape[0], columns = logits->shape[1];
    const int team = columns >= TEAM_COLUMNS;
    struct cube_flag flag;
    struct cube_job job;
    hob_status st = cube_flag_begin(&flag, device, call);

    if (st)
        return st;
    cube_job_init(&job, device, call, &program);
    cube_job_memory(&job, out, logits->dtype, grad ? rows * columns : rows);
    cube_job_view(&job, logits);
    cube_job_view(&job, targets);
    if (grad)
        cube_job_view(&job, grad);
    else
        cube_job_absent(&job);
    cube_job_memory(&job, flag.data, HOB_DTYPE_U32, 1);
    cube_job_i64(&job, rows);
    cube_job_i64(&job, columns);
    cube_job_reach(&job, rows * columns);
    cube_job_f64(&job, (double)rows);
    cube_job_constant(&job, team);
    cube_job_constant(&job, grad != NULL);
    cube_job_symbol(&job,
                    logits->dtype == HOB_DTYPE_F64 ? "double" : "float");
    if (!team)
        job.variant.group_size = FEW;
    st = cube_job_run(&job, team ? rows : cube_groups(device, rows, FEW));
    return cube_indices_end(&flag, device, call, st, targets, columns);
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
    hob_status st = run(device, call, call->workspace, NULL);

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
    return run(device, call, hob_ret_view(call, 0)->data,
               hob_arg_view(call, 2));
}

/* The losses of rows would be rounded to 16 bits: that is left to the body,
 * which computes in f32. */
static const uint32_t masks[] = {HOB_DTYPE_BIT(HOB_DTYPE_F32) |
                                     HOB_DTYPE_BIT(HOB_DTYPE_F64),
                                 HOB_MASK_INT};
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

const struct cube_entries cube_loss_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

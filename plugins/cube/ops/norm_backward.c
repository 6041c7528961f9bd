/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm_backward.c - the gradients of layer_norm and rms_norm: x and grad are
 * read once. What belongs to weight and bias is summed up in parts, how many
 * depends on sizes and on the device's processors, and then folded.
 */
#include "../cube.h"
#include "../splits.h"
#include "../texts.h"
#include "fold.h"

#include <inttypes.h>

enum {
    KEEP_MOST = 16,
    GROUP_LEAST = 64,
    GROUP_USUAL = 256,
    GROUP_MOST = 512,
    /* Parts for each processor. */
    PARTS = 8
};

static const struct cube_program program = {
    .name = "norm_backward",
    .text = cube_text_norm_backward,
    .buffers = {{"out", CUBE_WRITTEN},
                {"weight_parts", CUBE_WRITTEN},
                {"bias_parts", CUBE_WRITTEN},
                {"x", 0},
                {"weight", 0},
                {"grad", 0}},
    .params = {{"rows", CUBE_INDEX, 0},
               {"columns", CUBE_INDEX, 0},
               {"parts", CUBE_INDEX, 0},
               {"rows_each", CUBE_INDEX, 0},
               {"epsilon", CUBE_VALUE_OF(1), 0}},
    .constants = {"KEEP", "CENTRED", "WEIGHTED"},
    .symbols = {"ACCUM"},
    .flags = CUBE_GROUPS | CUBE_MATHS,
};

struct norm {
    struct cube_device *device;
    struct hob_call *call;
    int64_t rows, columns, parts, rows_each;
    uint32_t dtype; /* of sums */
    int is_centred;
};

static hob_status launch(const struct norm *norm, void *weights, void *biases)
{
    const struct hob_view *weight = hob_arg_view(norm->call, 1);
    const int64_t count = norm->parts * norm->columns;
    struct cube_job job;
    uint32_t group;

    cube_job_init(&job, norm->device, norm->call, &program);
    group = cube_power_from(norm->columns, GROUP_USUAL);
    if (group < GROUP_LEAST)
        group = GROUP_LEAST;
    if (norm->columns > GROUP_USUAL * KEEP_MOST)
        group = GROUP_MOST;
    job.variant.group_size = group;
    cube_job_view(&job, hob_ret_view(norm->call, 0));
    cube_job_memory(&job, weights, norm->dtype, count);
    if (norm->is_centred)
        cube_job_memory(&job, biases, norm->dtype, count);
    else
        cube_job_absent(&job);
    cube_job_view(&job, hob_arg_view(norm->call, 0));
    if (weight)
        cube_job_view(&job, weight);
    else
        cube_job_absent(&job);
    cube_job_view(&job, hob_arg_view(norm->call, 2));
    cube_job_i64(&job, norm->rows);
    cube_job_i64(&job, norm->columns);
    cube_job_i64(&job, norm->parts);
    cube_job_i64(&job, norm->rows_each);
    cube_job_f64(&job, cube_arg_f64(norm->call, 3));
    cube_job_reach(&job, norm->rows + norm->rows_each);
    cube_job_constant(
        &job, (int32_t)cube_power_from((norm->columns + group - 1) / group,
                                       KEEP_MOST));
    cube_job_constant(&job, norm->is_centred);
    cube_job_constant(&job, weight != NULL);
    cube_job_symbol(&job, norm->dtype == HOB_DTYPE_F64 ? "double" : "float");
    return cube_job_run(&job, norm->parts);
}

static hob_status run(struct cube_device *device, struct hob_call *call,
                      int is_centred)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t columns = x->shape[x->rank - 1];
    const int64_t rows = hob_view_count(x) / columns;
    struct norm norm = {.device = device,
                        .call = call,
                        .rows = rows,
                        .columns = columns,
                        .is_centred = is_centred};
    uint64_t bytes;
    char *memory = NULL;
    hob_status st;

    norm.dtype = x->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    norm.parts = cube_processors(device) * PARTS;
    norm.rows_each = cube_divide_up(rows, norm.parts);
    norm.parts = cube_divide_up(rows, norm.rows_each);
    bytes = (uint64_t)(norm.parts * columns) * hob_dtype_size(norm.dtype);
    bytes = (bytes + 255) / 256 * 256;
    st = device->runtime->alloc(device, 2 * bytes, (void **)(void *)&memory);
    if (st)
        return call->host->fail(call, st,
                                "%s: no memory for %" PRId64 " rows of sums",
                                call->op_name, 2 * norm.parts);
    st = launch(&norm, memory, memory + bytes);
    if (!st)
        st = cube_fold_parts(device, call, memory, norm.dtype, norm.parts,
                             hob_ret_view(call, 1));
    if (!st && is_centred)
        st = cube_fold_parts(device, call, memory + bytes, norm.dtype,
                             norm.parts, hob_ret_view(call, 2));
    device->runtime->free(device, memory, 2 * bytes);
    return st;
}

/* Rows that registers do not hold, and no rows at all, are the body's. */
static hob_status prepare(void *opened, const struct hob_call *call,
                          struct hob_prepare *out)
{
    const struct cube_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t most = device->limits.group_size < GROUP_MOST
                             ? GROUP_USUAL * KEEP_MOST
                             : GROUP_MOST * KEEP_MOST;

    (void)out;
    return hob_view_count(x) > 0 && x->shape[x->rank - 1] <= most
               ? HOB_OK
               : HOB_ERR_UNSUPPORTED;
}

static hob_status layer_norm_backward(void *device, struct hob_call *call)
{
    return run(device, call, 1);
}

static hob_status rms_norm_backward(void *device, struct hob_call *call)
{
    return run(device, call, 0);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "layer_norm_backward",
        .signature = "(x: Float, weight: Float?, grad: Float, epsilon: f64 = "
                     "1e-5) -> (d_x: x, d_weight: x, d_bias: x)",
        .dtypes = masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_CONTIGUOUS,
        .prepare = prepare,
        .execute = layer_norm_backward,
    },
    {
        .op = "rms_norm_backward",
        .signature = "(x: Float, weight: Float?, grad: Float, epsilon: f64 = "
                     "1e-5) -> (d_x: x, d_weight: x)",
        .dtypes = masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_CONTIGUOUS,
        .prepare = prepare,
        .execute = rms_norm_backward,
    },
};

const struct cube_entries cube_norm_backward_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

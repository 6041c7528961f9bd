/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm_backward.c - the gradients of layer_norm and rms_norm: x and grad are
 * read once. What belongs to weight and bias is summed up in parts, how many
 * depends on sizes and on the device's processors, and then folded.
 */
#include "../cube.h"
#include "../splits.h"
#include "../texts.h"
#include "column_sums.h"

enum {
    MINE_MOST = 16, /* elements of a row that an invocation keeps */
    LANES_MOST = 512,
    GROUP_LEAST = 64,
    BUSY = 512, /* invocations for each processor */
    SUMS_WIDE = 4,
    FEW_MOST = 4 /* sums that invocations tell each other at a time */
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
    .shared = {{"ones", "ACCUM", "GROUP_SIZE"},
               {"threes", "ACCUM", "3 * GROUP_SIZE"},
               {"rows_of", "ACCUM", "FEW * GROUP_SIZE"}},
    .constants = {"ROWS", "KEEP", "WIDE", "FEW", "CENTRED", "WEIGHTED",
                  "WHOLE"},
    .symbols = {"ACCUM"},
    .flags = CUBE_SUBGROUPS | CUBE_MATHS,
};

struct norm {
    struct cube_device *device;
    struct hob_call *call;
    int64_t rows, columns, parts, rows_each;
    uint32_t dtype; /* of sums */
    uint32_t group, lanes, keep, wide;
    int is_centred;
};

static int is_aligned(const struct hob_view *view)
{
    return !view || (uintptr_t)view->data % 16 == 0;
}

/* By sizes and the device alone. */
static void split(struct norm *norm)
{
    const struct hob_call *call = norm->call;
    const uint32_t wide = 16 / hob_dtype_size(hob_arg_view(call, 0)->dtype);
    const uint32_t most = norm->device->limits.group_size < LANES_MOST
                              ? norm->device->limits.group_size
                              : LANES_MOST;
    int64_t vectors, keep, busy, rows;

    norm->wide = norm->columns % wide == 0 &&
                         is_aligned(hob_arg_view(call, 0)) &&
                         is_aligned(hob_arg_view(call, 1)) &&
                         is_aligned(hob_arg_view(call, 2))
                     ? wide
                     : 1;
    vectors = cube_divide_up(norm->columns, norm->wide);
    /* The more an invocation keeps, the less is lost to sums across them, but
     * a few rows are over sooner where many work at each. */
    busy = cube_processors(norm->device) * BUSY;
    keep = norm->rows * vectors <= busy ? 1 : MINE_MOST / norm->wide;
    norm->lanes = cube_power_from(cube_divide_up(vectors, keep), most);
    norm->keep =
        cube_power_from(cube_divide_up(vectors, norm->lanes), MINE_MOST);
    norm->group = norm->lanes;
    if (norm->group < (keep == 1 ? GROUP_LEAST : CUBE_GROUP_SIZE))
        norm->group = keep == 1 ? GROUP_LEAST : CUBE_GROUP_SIZE;
    rows = norm->group / norm->lanes; /* of a group at a time */
    norm->parts = busy / norm->group;
    norm->rows_each =
        cube_divide_up(cube_divide_up(norm->rows, norm->parts), rows) * rows;
    norm->parts = cube_divide_up(norm->rows, norm->rows_each);
}

static hob_status launch(const struct norm *norm,
                         const struct cube_column_sums *sums)
{
    const struct hob_view *weight = hob_arg_view(norm->call, 1);
    const int64_t count = norm->parts * norm->columns;
    struct cube_job job;

    cube_job_init(&job, norm->device, norm->call, &program);
    job.variant.group_size = norm->group;
    cube_job_view(&job, hob_ret_view(norm->call, 0));
    cube_job_memory(&job, sums->parts[0], norm->dtype, count);
    if (norm->is_centred)
        cube_job_memory(&job, sums->parts[1], norm->dtype, count);
    else
        cube_job_absent(&job);
    cube_job_view(&job, hob_arg_view(norm->call, 0));
    if (weight)
        cube_job_view(&job, weight);
    else
        cube_job_absent(&job);
    cube_job_view(&job, hob_arg_view(norm->call, 2));
    for (uint32_t i = 0; i < 6; i++)
        job.variant.widths[i] = (uint8_t)norm->wide;
    if (norm->wide > SUMS_WIDE) /* f32 beside halves */
        job.variant.widths[1] = job.variant.widths[2] = SUMS_WIDE;
    cube_job_i64(&job, norm->rows);
    cube_job_i64(&job, norm->columns);
    cube_job_i64(&job, norm->parts);
    cube_job_i64(&job, norm->rows_each);
    cube_job_f64(&job, cube_arg_f64(norm->call, 3));
    cube_job_reach(&job, norm->rows + norm->rows_each + norm->group);
    cube_job_constant(&job, (int32_t)(norm->group / norm->lanes));
    cube_job_constant(&job, (int32_t)norm->keep);
    cube_job_constant(&job, (int32_t)norm->wide);
    cube_job_constant(
        &job, (int32_t)cube_power_from(norm->keep * norm->wide, FEW_MOST));
    cube_job_constant(&job, norm->is_centred);
    cube_job_constant(&job, weight != NULL);
    cube_job_constant(&job, norm->columns ==
                                (int64_t)norm->keep * norm->lanes * norm->wide);
    cube_job_symbol(&job, norm->dtype == HOB_DTYPE_F64 ? "double" : "float");
    return cube_job_run(&job, norm->parts);
}

static hob_status run(struct cube_device *device, struct hob_call *call,
                      int is_centred)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct norm norm = {.device = device,
                        .call = call,
                        .columns = x->shape[x->rank - 1],
                        .is_centred = is_centred};
    struct cube_column_sums sums = {.sums = {hob_ret_view(call, 1)}};
    hob_status st;

    norm.rows = hob_view_count(x) / norm.columns;
    norm.dtype = x->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    split(&norm);
    sums.dtype = norm.dtype;
    sums.rows = norm.parts;
    sums.columns = norm.columns;
    if (is_centred)
        sums.sums[1] = hob_ret_view(call, 2);
    st = cube_column_sums_open(device, call, &sums);
    if (st)
        return st;
    st = launch(&norm, &sums);
    return cube_column_sums_close(device, call, &sums, st);
}

/* Rows that registers do not hold, and no rows at all, are the body's. */
static hob_status prepare(void *opened, const struct hob_call *call,
                          struct hob_prepare *out)
{
    const struct cube_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t most = device->limits.group_size < LANES_MOST
                             ? device->limits.group_size
                             : LANES_MOST;

    (void)out;
    return hob_view_count(x) > 0 && x->shape[x->rank - 1] <= most * MINE_MOST
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

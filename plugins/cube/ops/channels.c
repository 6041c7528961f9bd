/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channels.c - norms with numbers for each channel, dimension 1 of x: batch
 * norm, what its gradients are made of, group norm.
 */
#include "../cube.h"
#include "../splits.h"
#include "../texts.h"
#include "column_sums.h"

static const struct cube_program batch_program = {
    .name = "batch_norm",
    .text = cube_text_batch_norm,
    .buffers = {{"out", CUBE_WRITTEN},
                {"x", 0},
                {"weight", 0},
                {"bias", 0},
                {"mean", 0},
                {"variance", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               {"channels", CUBE_INDEX, 0},
               {"places", CUBE_INDEX, 0},
               {"epsilon", CUBE_VALUE_OF(0), 0}},
    .constants = {"HAS_WEIGHT", "HAS_BIAS"},
    .symbols = {"ACCUM"},
    .flags = CUBE_MATHS,
};

static const struct cube_program backward_program = {
    .name = "batch_norm_backward",
    .text = cube_text_batch_norm_backward,
    .buffers = {{"out", CUBE_WRITTEN},
                {"totals", CUBE_WRITTEN},
                {"moments", CUBE_WRITTEN},
                {"x", 0},
                {"mean", 0},
                {"scale", 0},
                {"grad", 0}},
    .params = {{"channels", CUBE_INDEX, 0},
               {"places", CUBE_INDEX, 0},
               {"length", CUBE_INDEX, 0},
               {"parts", CUBE_INDEX, 0},
               {"part_length", CUBE_INDEX, 0}},
    .symbols = {"ACCUM"},
    .flags = CUBE_GROUPS | CUBE_MATHS,
};

static const struct cube_program group_program = {
    .name = "group_norm",
    .text = cube_text_group_norm,
    .buffers = {{"out", CUBE_WRITTEN}, {"x", 0}, {"weight", 0}, {"bias", 0}},
    .params = {{"rows", CUBE_INDEX, 0},
               {"length", CUBE_INDEX, 0},
               {"groups", CUBE_INDEX, 0},
               {"group_channels", CUBE_INDEX, 0},
               {"places", CUBE_INDEX, 0},
               {"epsilon", CUBE_VALUE_OF(0), 0}},
    .constants = {"HAS_WEIGHT", "HAS_BIAS"},
    .symbols = {"ACCUM"},
    .flags = CUBE_GROUPS | CUBE_MATHS,
};

/* Sums of halves are in f32. */
static uint32_t sum_dtype(const struct hob_view *x)
{
    return x->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
}

static const char *sum_type(const struct hob_view *x)
{
    return x->dtype == HOB_DTYPE_F64 ? "double" : "float";
}

/* Elements of a channel of one image. */
static int64_t places_of(const struct hob_view *x)
{
    int64_t places = 1;

    for (uint32_t i = 2; i < x->rank; i++)
        places *= x->shape[i];
    return places;
}

/* Optional arguments FIRST and FIRST + 1 as the next buffers and constants. */
static void add_affine(struct cube_job *job, const struct hob_call *call,
                       uint32_t first)
{
    for (uint32_t i = first; i < first + 2; i++) {
        if (cube_arg_absent(call, i))
            cube_job_absent(job);
        else
            cube_job_view(job, hob_arg_view(call, i));
        cube_job_constant(job, !cube_arg_absent(call, i));
    }
}

/* ---- batch norm ---- */

/* Elements at a time: as many as 16 bytes have if no channel ends within. */
static uint32_t width_of(const struct hob_view *x, const struct hob_view *out,
                         int64_t places)
{
    const uint32_t width = 16 / hob_dtype_size(x->dtype);
    const uintptr_t at = (uintptr_t)x->data | (uintptr_t)out->data;

    return at % 16 == 0 && places % width == 0 ? width : 1;
}

static hob_status batch_norm(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t count = hob_view_count(x), places = places_of(x);
    const uint32_t width = width_of(x, out, places);
    struct cube_job job;

    cube_job_init(&job, device, call, &batch_program);
    cube_job_view(&job, out);
    cube_job_view(&job, x);
    job.variant.widths[0] = job.variant.widths[1] = (uint8_t)width;
    add_affine(&job, call, 1);
    cube_job_view(&job, hob_arg_view(call, 3));
    cube_job_view(&job, hob_arg_view(call, 4));
    cube_job_i64(&job, count);
    cube_job_i64(&job, x->shape[1]);
    cube_job_i64(&job, places);
    cube_job_f64(&job, cube_arg_f64(call, 5));
    cube_job_symbol(&job, sum_type(x));
    return cube_job_run(
        &job, cube_groups(device, count, (int64_t)CUBE_GROUP_SIZE * width));
}

/* ---- its gradients ---- */

/* Each channel's LENGTH elements in so many parts of EACH. */
struct parts {
    int64_t length, count, each;
};

static hob_status launch_backward(struct cube_device *device,
                                  struct hob_call *call,
                                  const struct parts *parts,
                                  const struct cube_column_sums *sums)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t channels = x->shape[1];
    struct cube_job job;

    cube_job_init(&job, device, call, &backward_program);
    cube_job_view(&job, hob_ret_view(call, 0));
    for (uint32_t i = 0; i < 2; i++)
        cube_job_memory(&job, sums->parts[i], sums->dtype,
                        parts->count * channels);
    for (uint32_t i = 0; i < 4; i++)
        cube_job_view(&job, hob_arg_view(call, i));
    cube_job_i64(&job, channels);
    cube_job_i64(&job, places_of(x));
    cube_job_i64(&job, parts->length);
    cube_job_i64(&job, parts->count);
    cube_job_i64(&job, parts->each);
    cube_job_reach(&job, parts->length + parts->each + CUBE_GROUP_SIZE);
    cube_job_symbol(&job, sum_type(x));
    return cube_job_run(&job, parts->count * channels);
}

/* How long a part is depends on sizes and on the device's processors. */
static hob_status batch_norm_backward(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    struct parts parts = {.length = x->shape[0] * places_of(x)};
    struct cube_column_sums sums = {
        .dtype = sum_dtype(x),
        .columns = x->shape[1],
        .sums = {hob_ret_view(call, 1), hob_ret_view(call, 2)}};
    hob_status st;

    cube_split(device, sums.columns, parts.length, CUBE_GROUP_SIZE,
               &parts.count, &parts.each);
    sums.rows = parts.count;
    st = cube_column_sums_open(device, call, &sums);
    if (st)
        return st;
    st = launch_backward(device, call, &parts, &sums);
    return cube_column_sums_close(device, call, &sums, st);
}

/* ---- group norm ---- */

static hob_status group_norm(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t groups = cube_arg_i64(call, 1);
    const int64_t rows = x->shape[0] * groups;
    const int64_t length = hob_view_count(x) / rows;
    struct cube_job job;

    cube_job_init(&job, device, call, &group_program);
    cube_job_view(&job, hob_ret_view(call, 0));
    cube_job_view(&job, x);
    add_affine(&job, call, 2);
    cube_job_i64(&job, rows);
    cube_job_i64(&job, length);
    cube_job_i64(&job, groups);
    cube_job_i64(&job, x->shape[1] / groups);
    cube_job_i64(&job, places_of(x));
    cube_job_f64(&job, cube_arg_f64(call, 4));
    cube_job_reach(&job, length + CUBE_GROUP_SIZE);
    cube_job_symbol(&job, sum_type(x));
    return cube_job_run(&job, rows);
}

/* ---- entries ---- */

/* Sums of nothing are the bodies'. */
static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return hob_view_count(hob_arg_view(call, 0)) ? HOB_OK : HOB_ERR_UNSUPPORTED;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT, HOB_MASK_FLOAT};

#define ENTRY(name, tensors, text)                                             \
    {                                                                          \
        .op = #name, .signature = text, .dtypes = masks,                       \
        .dtype_count = tensors, .flags = HOB_ENTRY_CONTIGUOUS,                 \
        .prepare = prepare, .execute = name,                                   \
    }

static const struct hob_entry entries[] = {
    ENTRY(batch_norm, 5,
          "(x: Float, weight: Float?, bias: Float?, mean: Float, "
          "variance: Float, epsilon: f64 = 1e-5) -> x"),
    ENTRY(batch_norm_backward, 4,
          "(x: Float, mean: Float, scale: Float, grad: Float) -> "
          "(d_x: x, total: x, moment: x)"),
    ENTRY(group_norm, 3,
          "(x: Float, groups: i64, weight: Float?, bias: Float?, "
          "epsilon: f64 = 1e-5) -> x"),
};
#undef ENTRY

const struct cube_entries cube_channels_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

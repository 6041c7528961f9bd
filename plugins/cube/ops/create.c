/* SPDX-License-Identifier: Apache-2.0 */
/* create.c - full and arange. */
#include "../cube.h"
#include "../texts.h"

static const struct cube_program fill_program = {
    .name = "fill",
    .text = cube_text_fill,
    .buffers = {{"out", CUBE_WRITTEN}},
    .params = {{"count", CUBE_INDEX, 0}, {"value", CUBE_VALUE_OF(0), 0}},
};

#define ARANGE(name_, type)                                                    \
    {                                                                          \
        .name = name_, .text = cube_text_arange,                               \
        .buffers = {{"out", CUBE_WRITTEN}},                                    \
        .params = {{"count", CUBE_INDEX, 0},                                   \
                   {"start", type, 0},                                         \
                   {"step", type, 0}},                                         \
        .symbols = {"NUMBER"},                                                 \
    }
static const struct cube_program arange_program = ARANGE("arange", CUBE_I32);
static const struct cube_program long_program =
    ARANGE("arange_long", CUBE_I64);
#undef ARANGE

static hob_status full(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t count = hob_view_count(out);
    const uint32_t width = 16 / hob_dtype_size(out->dtype);
    struct cube_job job;

    cube_job_init(&job, device, call, &fill_program);
    cube_job_memory(&job, out->data, out->dtype, count);
    job.variant.widths[0] = (uint8_t)width;
    cube_job_i64(&job, count);
    cube_job_scalar(&job, &call->args[1], out->dtype);
    return cube_job_run(
        &job, cube_groups(device, count, (int64_t)CUBE_GROUP_SIZE * width));
}

/* Whether all numbers from START on fit an int. */
static int fits(int64_t start, int64_t step, int64_t count)
{
    const int64_t most = INT32_MAX;

    return start >= -most && start <= most && step >= -most && step <= most &&
           count < most && step * count <= most - start &&
           step * count >= -most - start;
}

static hob_status arange(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t count = hob_view_count(out);
    const int64_t start = cube_arg_i64(call, 0), step = cube_arg_i64(call, 2);
    const int is_short = fits(start, step, count);
    struct cube_job job;

    cube_job_init(&job, device, call,
                  is_short ? &arange_program : &long_program);
    cube_job_memory(&job, out->data, out->dtype, count);
    cube_job_i64(&job, count);
    cube_job_i64(&job, start);
    cube_job_i64(&job, step);
    cube_job_symbol(&job, is_short ? "int" : "i64");
    return cube_job_run(&job, cube_groups(device, count, CUBE_GROUP_SIZE));
}

static const struct hob_entry entries[] = {
    {
        .op = "full",
        .signature = "(shape: shape, value: scalar, device: device, dtype: "
                     "dtype = f32) -> dtype",
        .execute = full,
    },
    {
        .op = "arange",
        .signature = "(start: i64, end: i64, step: i64 = 1, device: device, "
                     "dtype: dtype = i32) -> dtype",
        .execute = arange,
    },
};

const struct cube_entries cube_create_entries = {entries, sizeof(entries) /
                                                              sizeof(entries[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - draws, as docs/RANDOM.md says. They are computed in f64, as on
 * flex, so uniform and Bernoulli draws are the same bits. A device without f64
 * has those bits where low is 0 and the range a power of 2; its normal draws
 * are within some ulp.
 */
#include "../cube.h"
#include "../texts.h"

#include <float.h>
#include <math.h>

enum draw { DRAW_UNIFORM, DRAW_INTEGERS, DRAW_NORMAL, DRAW_BERNOULLI };

#define PROGRAM(name_, type, flags_)                                           \
    {                                                                          \
        .name = name_, .text = cube_text_random,                               \
        .buffers = {{"out", CUBE_WRITTEN}},                                    \
        .params = {{"count", CUBE_INDEX, 0},                                   \
                   {"blocks", CUBE_INDEX, 0},                                  \
                   {"seed_low", CUBE_U32, 0},                                  \
                   {"seed_high", CUBE_U32, 0},                                 \
                   {"offset_low", CUBE_U32, 0},                                \
                   {"offset_high", CUBE_U32, 0},                               \
                   {"has_limit", CUBE_U32, 0},                                 \
                   {"origin", type, 0},                                           \
                   {"extent", type, 0},                                         \
                   {"limit", type, 0}},                                        \
        .constants = {"DRAW", "EXACT"}, .symbols = {"NUMBER"},                 \
        .flags = (flags_),                                                     \
    }
static const struct cube_program exact_program =
    PROGRAM("random", CUBE_F64, CUBE_MATHS);
static const struct cube_program single_program =
    PROGRAM("random_single", CUBE_F32, CUBE_MATHS);
#undef PROGRAM

static const struct cube_program bernoulli_program = {
    .name = "random_bernoulli",
    .text = cube_text_random,
    .buffers = {{"out", CUBE_WRITTEN}},
    .params = {{"count", CUBE_INDEX, 0},
               {"blocks", CUBE_INDEX, 0},
               {"seed_low", CUBE_U32, 0},
               {"seed_high", CUBE_U32, 0},
               {"offset_low", CUBE_U32, 0},
               {"offset_high", CUBE_U32, 0},
               {"has_ones", CUBE_U32, 0},
               {"last_one", CUBE_U32, 0}},
    .constants = {"DRAW", "EXACT"},
    .symbols = {"NUMBER"},
};

/* The largest number of DTYPE below HIGH; rounding must not reach it. */
static double below(double high, uint32_t dtype)
{
    const int digits = dtype == HOB_DTYPE_F64   ? DBL_MANT_DIG
                       : dtype == HOB_DTYPE_F32 ? FLT_MANT_DIG
                       : dtype == HOB_DTYPE_F16 ? 11
                                                : 8;
    const int least = dtype == HOB_DTYPE_F64   ? -1074
                      : dtype == HOB_DTYPE_F16 ? -24
                      : dtype == HOB_DTYPE_F32 ? -149
                                               : -133;
    const double next = nextafter(high, -(double)INFINITY);
    double unit;
    int exponent;

    (void)frexp(next, &exponent);
    exponent -= digits;
    unit = ldexp(1, exponent < least ? least : exponent);
    return floor(next / unit) * unit;
}

/* COUNT, blocks of PER_BLOCK, seed and offset: CALL's last two arguments. */
static void add_stream(struct cube_job *job, const struct hob_call *call,
                       int64_t count, int64_t per_block)
{
    const uint64_t seed =
        (uint64_t)cube_arg_i64(call, call->arg_count - 2u);
    const uint64_t offset =
        (uint64_t)cube_arg_i64(call, call->arg_count - 1u);

    cube_job_i64(job, count);
    cube_job_i64(job, cube_divide_up(count, per_block));
    cube_job_i64(job, (int64_t)(uint32_t)seed);
    cube_job_i64(job, (int64_t)(seed >> 32));
    cube_job_i64(job, (int64_t)(uint32_t)offset);
    cube_job_i64(job, (int64_t)(offset >> 32));
}

static hob_status run(struct cube_device *device, struct hob_call *call,
                      enum draw draw, double low, double range, double limit)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t count = hob_view_count(out);
    const int64_t per_block = out->dtype == HOB_DTYPE_F64 ? 2 : 4;
    const int is_exact = device->limits.has_f64 != 0;
    struct cube_job job;

    cube_job_init(&job, device, call,
                  is_exact ? &exact_program : &single_program);
    cube_job_memory(&job, out->data, out->dtype, count);
    add_stream(&job, call, count, per_block);
    /* Where low and high are one number there is nothing below it. */
    cube_job_i64(&job, range > 0);
    cube_job_f64(&job, low);
    cube_job_f64(&job, range);
    cube_job_f64(&job, limit);
    cube_job_constant(&job, (int32_t)draw);
    cube_job_constant(&job, is_exact);
    cube_job_symbol(&job, is_exact ? "double" : "float");
    return cube_job_run(
        &job, cube_groups(device, count, CUBE_GROUP_SIZE * per_block));
}

static int is_float(const struct hob_call *call)
{
    return (HOB_DTYPE_BIT(hob_ret_view(call, 0)->dtype) & HOB_MASK_FLOAT) != 0;
}

static hob_status random_uniform(void *device, struct hob_call *call)
{
    const double low = cube_arg_f64(call, 1), high = cube_arg_f64(call, 2);
    const uint32_t dtype = hob_ret_view(call, 0)->dtype;

    if (!(low <= high) || !isfinite(high - low))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "random_uniform: [%g, %g) is no range; low "
                                "must be at most high, both finite",
                                low, high);
    if (is_float(call))
        return run(device, call, DRAW_UNIFORM, low, high - low,
                   below(high, dtype));
    return run(device, call, DRAW_INTEGERS, low, high - low, 0);
}

static hob_status random_normal(void *device, struct hob_call *call)
{
    const double mean = cube_arg_f64(call, 1), std = cube_arg_f64(call, 2);

    if (!(std >= 0) || !isfinite(mean) || !isfinite(std))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "random_normal: mean %g, deviation %g; both "
                                "must be finite, the deviation not negative",
                                mean, std);
    return run(device, call, DRAW_NORMAL, mean, std, 0);
}

static hob_status random_bernoulli(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t count = hob_view_count(out);
    const double probability = cube_arg_f64(call, 1);
    struct cube_job job;
    int64_t bound;

    if (!(probability >= 0 && probability <= 1))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "random_bernoulli: probability %g; it must be "
                                "in [0, 1]",
                                probability);
    /* w 2^-32 < p, both exact, is w < p 2^32, also rounded up. */
    bound = (int64_t)ceil(probability * 0x1p32);
    cube_job_init(&job, device, call, &bernoulli_program);
    cube_job_memory(&job, out->data, out->dtype, count);
    add_stream(&job, call, count, 4);
    cube_job_i64(&job, bound > 0);
    cube_job_i64(&job, bound > 0 ? bound - 1 : 0);
    cube_job_constant(&job, DRAW_BERNOULLI);
    cube_job_constant(&job, 0);
    cube_job_symbol(&job, "uint");
    return cube_job_run(&job,
                        cube_groups(device, count, 4 * CUBE_GROUP_SIZE));
}

static const struct hob_entry entries[] = {
    {
        .op = "random_uniform",
        .signature = "(shape: shape, low: f64 = 0, high: f64 = 1, device: "
                     "device, dtype: dtype = f32, _seed: i64?, _offset: "
                     "i64?) -> dtype",
        .execute = random_uniform,
    },
    {
        .op = "random_normal",
        .signature = "(shape: shape, mean: f64 = 0, std: f64 = 1, device: "
                     "device, dtype: dtype = f32, _seed: i64?, _offset: "
                     "i64?) -> dtype",
        .execute = random_normal,
    },
    {
        .op = "random_bernoulli",
        .signature = "(shape: shape, probability: f64, device: device, dtype: "
                     "dtype = bool, _seed: i64?, _offset: i64?) -> dtype",
        .execute = random_bernoulli,
    },
};

const struct cube_entries cube_random_entries = {entries, sizeof(entries) /
                                                              sizeof(entries[0])};

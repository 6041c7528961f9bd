/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - draws. Element i is a pure function of (seed, offset, i); which
 * words it uses and how they become a number is in docs/RANDOM.md, and other
 * backends do the same.
 */
#include "flex.h"
#include "kernels/philox.h"

#include <hob/philox.h>

#include <float.h>
#include <math.h>

enum { RANDOM_BLOCK = 1024, WORDS = HOB_PHILOX_WORDS };

struct random_run {
    void (*draw)(const struct random_run *run, const uint32_t *words,
                 double *out, int64_t n);
    flex_philox_fn philox;
    flex_cast_fn cast; /* from f64 */
    char *out;
    uint64_t seed;
    uint64_t offset;
    double a, b; /* low and high, mean and deviation, probability */
    uint32_t dtype;
    uint32_t size;
    uint32_t per_block; /* elements from one block of words: 4 or 2 */
};

/* ---- numbers from words ---- */

/* The largest number of DTYPE below HIGH; rounding must not reach it. */
static double below(double high, uint32_t dtype)
{
    uint32_t digits = dtype == HOB_DTYPE_F64   ? DBL_MANT_DIG
                      : dtype == HOB_DTYPE_F32 ? FLT_MANT_DIG
                      : dtype == HOB_DTYPE_F16 ? 11
                                               : 8;
    int least = dtype == HOB_DTYPE_F64   ? -1074
                : dtype == HOB_DTYPE_F16 ? -24
                : dtype == HOB_DTYPE_F32 ? -149
                                         : -133;
    double next = nextafter(high, -INFINITY);
    int exponent;
    double unit;

    (void)frexp(next, &exponent);
    exponent -= (int)digits;
    unit = ldexp(1, exponent < least ? least : exponent);
    return floor(next / unit) * unit;
}

static void draw_uniform(const struct random_run *run, const uint32_t *words,
                         double *out, int64_t n)
{
    double low = run->a, range = run->b - run->a;

    if (run->per_block == WORDS) {
        /* Signed: what a vector converts at once. */
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            out[i] = low + (double)(int32_t)(words[i] >> 8) * 0x1p-24 * range;
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] =
                low + hob_philox_f64(words[2 * i], words[2 * i + 1]) * range;
    }
}

/* Integers: all 32 bits, then the floor, so that each has the same share. */
static void draw_integers(const struct random_run *run, const uint32_t *words,
                          double *out, int64_t n)
{
    double low = run->a, range = run->b - run->a;

    for (int64_t i = 0; i < n; i++)
        out[i] = floor(low + (double)words[i] * 0x1p-32 * range);
}

/*
 * G. Box and M. Muller, "A note on the generation of random normal deviates",
 * 1958. Elements 2j and 2j + 1 are the two halves of one pair.
 */
static void draw_normal(const struct random_run *run, const uint32_t *words,
                        double *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2) {
        double u, v, radius, angle;

        if (run->per_block == WORDS) {
            u = ((double)words[i] + 0.5) * 0x1p-32;
            v = (double)words[i + 1] * 0x1p-32;
        } else {
            u = 1 - hob_philox_f64(words[2 * i], words[2 * i + 1]);
            v = hob_philox_f64(words[2 * i + 2], words[2 * i + 3]);
        }
        radius = sqrt(-2 * log(u)) * run->b;
        angle = 6.28318530717958648 * v;
        out[i] = run->a + radius * cos(angle);
        out[i + 1] = run->a + radius * sin(angle);
    }
}

static void draw_bernoulli(const struct random_run *run, const uint32_t *words,
                           double *out, int64_t n)
{
    /* w 2^-32 < a, both exact, is w < a 2^32, also rounded up. */
    const int64_t bound = (int64_t)ceil(run->a * 0x1p32);
    const uint32_t last = (uint32_t)(bound - 1);
    const double one = bound > 0;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = words[i] <= last ? one : 0;
}

/* ---- pieces ---- */

/* Pieces begin at multiples of the grain, so on whole blocks of words. */
static void random_piece(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct random_run *run = context;
    uint32_t words[RANDOM_BLOCK * 2 + WORDS];
    double values[RANDOM_BLOCK + 2];
    double limit = run->draw == draw_uniform ? below(run->b, run->dtype) : 0;

    (void)worker;
    while (first < last) {
        int64_t n = last - first < RANDOM_BLOCK ? last - first : RANDOM_BLOCK;
        int64_t blocks = (n + run->per_block - 1) / run->per_block;
        uint64_t at = run->offset + (uint64_t)first / run->per_block;

        run->philox(run->seed, at, blocks, words);
        run->draw(run, words, values, n);
        /* Where low and high are one number there is nothing below it. */
        if (run->draw == draw_uniform && run->a < run->b)
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                values[i] = values[i] > limit ? limit : values[i];
        run->cast(run->out + first * run->size, values, n);
        first += n;
    }
}

static flex_philox_fn philox_of(uint32_t isa)
{
    return FLEX_BY_ISA(isa, flex_philox);
}

/* Fill the result of CALL, whose last two arguments are seed and offset. */
static hob_status run_random(struct flex_device *device, struct hob_call *call,
                             struct random_run *run)
{
    const struct hob_view *out = hob_ret_view(call, 0);

    run->philox = philox_of(device->isa);
    run->out = out->data;
    run->dtype = out->dtype;
    run->size = hob_dtype_size(out->dtype);
    run->cast = device->kernels->cast[out->dtype][HOB_DTYPE_F64];
    run->seed = (uint64_t)flex_arg_i64(call, call->arg_count - 2u);
    run->offset = (uint64_t)flex_arg_i64(call, call->arg_count - 1u);
    flex_parallel(device, hob_view_count(out), FLEX_GRAIN_DEAR, random_piece,
                  run);
    return HOB_OK;
}

/* ---- ops ---- */

static int is_float(const struct hob_call *call)
{
    return (HOB_DTYPE_BIT(hob_ret_view(call, 0)->dtype) & HOB_MASK_FLOAT) != 0;
}

/* Elements of a block of four words: f64 takes two each. */
static uint32_t per_block(const struct hob_call *call)
{
    return hob_ret_view(call, 0)->dtype == HOB_DTYPE_F64 ? 2 : WORDS;
}

static hob_status execute_uniform(void *device, struct hob_call *call)
{
    struct random_run run = {.a = flex_arg_f64(call, 1),
                             .b = flex_arg_f64(call, 2)};

    if (!(run.a <= run.b) || !isfinite(run.b - run.a))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "random_uniform: [%g, %g) is no range; low "
                                "must be at most high, both finite",
                                run.a, run.b);
    run.draw = is_float(call) ? draw_uniform : draw_integers;
    run.per_block = per_block(call);
    return run_random(device, call, &run);
}

static hob_status execute_normal(void *device, struct hob_call *call)
{
    struct random_run run = {.a = flex_arg_f64(call, 1),
                             .b = flex_arg_f64(call, 2)};

    if (!(run.b >= 0) || !isfinite(run.a) || !isfinite(run.b))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "random_normal: mean %g, deviation %g; both "
                                "must be finite, the deviation not negative",
                                run.a, run.b);
    run.draw = draw_normal;
    run.per_block = per_block(call);
    return run_random(device, call, &run);
}

static hob_status execute_bernoulli(void *device, struct hob_call *call)
{
    struct random_run run = {.a = flex_arg_f64(call, 1)};

    if (!(run.a >= 0 && run.a <= 1))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "random_bernoulli: probability %g; it must be "
                                "in [0, 1]",
                                run.a);
    run.draw = draw_bernoulli;
    run.per_block = WORDS; /* one word an element, whatever the dtype */
    return run_random(device, call, &run);
}

static const struct hob_entry entries[] = {
    {
        .op = "random_uniform",
        .signature = "(shape: shape, low: f64 = 0, high: f64 = 1, device: "
                     "device, dtype: dtype = f32, _seed: i64?, _offset: "
                     "i64?) -> dtype",
        .execute = execute_uniform,
    },
    {
        .op = "random_normal",
        .signature = "(shape: shape, mean: f64 = 0, std: f64 = 1, device: "
                     "device, dtype: dtype = f32, _seed: i64?, _offset: "
                     "i64?) -> dtype",
        .execute = execute_normal,
    },
    {
        .op = "random_bernoulli",
        .signature = "(shape: shape, probability: f64, device: device, dtype: "
                     "dtype = bool, _seed: i64?, _offset: i64?) -> dtype",
        .execute = execute_bernoulli,
    },
};

const struct flex_entries flex_random_entries = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
};

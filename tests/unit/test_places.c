/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that put elements in other places, read planes at any place, or
 * transform rows, on any device against loops in double: im2col and back,
 * grid_sample and its gradients, interpolate where it moves nothing, rfft and
 * irfft. test_differential has pad, roll, triu and tril.
 */
#include "grid_places.h"
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16, DTYPES = 4 };

static const hob_dtype dtypes[DTYPES] = {HOB_DTYPE_F64, HOB_DTYPE_F32,
                                         HOB_DTYPE_F16, HOB_DTYPE_BF16};
static struct op_fixture f;
static double data[MOST], data2[MOST], data3[MOST], wanted[MOST], wanted2[MOST];
static uint64_t state = 17;

static void teardown(void)
{
    op_fixture_close(&f);
}

/* Device and dtype of loop number I. */
static hob_dtype open_for(int i)
{
    op_fixture_open(&f, i % OP_DEVICE_COUNT);
    return dtypes[i / OP_DEVICE_COUNT];
}

enum { LOOPS = OP_DEVICE_COUNT * DTYPES };

/* Filters with sines take a slow compiler half a minute where they are not
 * f32's. */
static int is_for_others(hob_dtype dtype)
{
    return test_device_is_slow() && dtype != HOB_DTYPE_F32;
}

/* COUNT eighths up to SPAN, which every dtype holds. */
static void fill(double *out, int64_t count, double span)
{
    ck_assert_int_le(count, MOST);
    for (int64_t i = 0; i < count; i++)
        out[i] = rint(op_random(&state) * span * 8) / 8;
}

/* DATA [a, .., b] as a tensor whose last two dimensions are turned in memory,
 * where IS_TURNED; the numbers stay where they are. */
static hob_tensor *made(hob_dtype dtype, const double *from,
                        const int64_t *shape, int32_t rank, int is_turned)
{
    hob_tensor *t = op_tensor(&f, dtype, from, shape, rank);

    if (is_turned && rank > 1)
        t = hob_swap_dims(
            f.scope, hob_contiguous(f.scope, hob_swap_dims(f.scope, t, -2, -1)),
            -2, -1);
    return t;
}

static double tolerance_of(hob_dtype dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-12
           : dtype == HOB_DTYPE_F32 ? 2e-5
           : dtype == HOB_DTYPE_F16 ? 0x1p-9
                                    : 0x1p-6;
}

/* ---- windows as columns ---- */

static const struct columns {
    int64_t n, c, h, w;
    int64_t kernel[2], stride[2], padding[2], dilation[2];
} columns[] = {
    {2, 3, 8, 9, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {1, 2, 5, 7, {1, 4}, {1, 3}, {0, 3}, {1, 2}},
    {3, 1, 11, 4, {2, 2}, {5, 1}, {2, 0}, {4, 1}},
    {1, 1, 1, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {0, 2, 3, 3, {2, 2}, {1, 1}, {0, 0}, {1, 1}},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* The element of a plane that tap (KY, KX) of window (Y, X) is; -1: none. */
static int64_t element(const struct columns *c, int64_t ky, int64_t kx,
                       int64_t y, int64_t x)
{
    y = y * c->stride[0] + ky * c->dilation[0] - c->padding[0];
    x = x * c->stride[1] + kx * c->dilation[1] - c->padding[1];
    return y < 0 || y >= c->h || x < 0 || x >= c->w ? -1 : y * c->w + x;
}

static void check_columns(const struct columns *c, hob_dtype dtype)
{
    const int64_t size[2] = {c->h, c->w};
    const int64_t plane[4] = {c->n, c->c, c->h, c->w};
    const int64_t taps = c->kernel[0] * c->kernel[1];
    int64_t windows[2], flat[3], at = 0;
    hob_tensor *y;

    for (int i = 0; i < 2; i++)
        windows[i] = (size[i] + 2 * c->padding[i] -
                      c->dilation[i] * (c->kernel[i] - 1) - 1) /
                         c->stride[i] +
                     1;
    flat[0] = c->n;
    flat[1] = c->c * taps;
    flat[2] = windows[0] * windows[1];
    fill(data, c->n * c->c * c->h * c->w, 4);
    fill(data2, flat[0] * flat[1] * flat[2], 4);
    memset(wanted2, 0, sizeof(wanted2));
    for (int64_t p = 0; p < c->n * c->c; p++)
        for (int64_t k = 0; k < taps; k++)
            for (int64_t i = 0; i < flat[2]; i++, at++) {
                const int64_t from =
                    element(c, k / c->kernel[1], k % c->kernel[1],
                            i / windows[1], i % windows[1]);

                wanted[at] = from < 0 ? 0 : data[p * c->h * c->w + from];
                if (from >= 0)
                    wanted2[p * c->h * c->w + from] += data2[at];
            }
    y = hob_im2col(f.scope, made(dtype, data, plane, 4, 1), c->kernel, 2,
                   c->stride, 2, c->padding, 2, c->dilation, 2);
    op_check(&f, "im2col", y, wanted, at, 0);
    y = hob_col2im(f.scope, made(dtype, data2, flat, 3, 1), size, 2, c->kernel,
                   2, c->stride, 2, c->padding, 2, c->dilation, 2);
    op_check(&f, "col2im", y, wanted2, c->n * c->c * c->h * c->w,
             tolerance_of(dtype));
}

START_TEST(test_places_columns)
{
    const hob_dtype dtype = open_for(_i);

    for (int i = 0; i < COLUMNS && f.device; i++)
        check_columns(&columns[i], dtype);
}
END_TEST

/* ---- planes read at any place ---- */

static const struct grid {
    int64_t n, c, h, w, oh, ow;
} grids[] = {
    {1, 1, 1, 1, 1, 1},   {2, 3, 5, 7, 4, 3},  {3, 1, 1, 9, 8, 1},
    {1, 17, 6, 2, 9, 11}, {2, 9, 5, 6, 1, 37}, {1, 2, 3, 3, 0, 5},
    {2, 0, 3, 3, 2, 2},
};

enum { GRIDS = sizeof(grids) / sizeof(grids[0]) };

/* A place that is no number reads NaN between elements, and nothing else. */
static int is_lost(const struct grid *g, const struct grid_ways *ways,
                   int64_t at)
{
    return grid_is_lost(ways, g->h, g->w, data2[2 * at], data2[2 * at + 1]);
}

static void expect_grid(const struct grid *g, const struct grid_ways *ways)
{
    const int64_t m = g->oh * g->ow, area = g->h * g->w;

    memset(wanted2, 0, sizeof(wanted2));
    for (int64_t i = 0; i < g->n * g->c * m; i++) {
        const int64_t plane = i / m, at = plane / g->c * m + i % m;
        struct grid_corner corners[4];
        const int count = grid_corners(ways, g->h, g->w, data2[2 * at],
                                       data2[2 * at + 1], corners);

        wanted[i] = is_lost(g, ways, at) ? NAN : 0;
        for (int k = 0; k < count; k++) {
            wanted[i] +=
                (double)corners[k].weight * data[plane * area + corners[k].at];
            wanted2[plane * area + corners[k].at] +=
                (double)corners[k].weight * data3[i];
        }
    }
}

/* The gradient of the grid, to WANTED. */
static void expect_places(const struct grid *g, const struct grid_ways *ways)
{
    const int64_t m = g->oh * g->ow, area = g->h * g->w;

    memset(wanted, 0, sizeof(wanted));
    for (int64_t i = 0; i < g->n * g->c * m; i++) {
        const int64_t plane = i / m, at = plane / g->c * m + i % m;
        struct grid_corner corners[4];
        const int count = grid_corners(ways, g->h, g->w, data2[2 * at],
                                       data2[2 * at + 1], corners);

        for (int k = 0; k < count; k++) {
            const double x = data[plane * area + corners[k].at] * data3[i];

            wanted[2 * at] += (double)corners[k].by_x * x;
            wanted[2 * at + 1] += (double)corners[k].by_y * x;
        }
    }
}

static void check_grid(const struct grid *g, const struct grid_ways *ways,
                       hob_dtype dtype)
{
    const int64_t in[4] = {g->n, g->c, g->h, g->w};
    const int64_t places[4] = {g->n, g->oh, g->ow, 2};
    const int64_t out[4] = {g->n, g->c, g->oh, g->ow};
    const int64_t count = g->n * g->oh * g->ow * 2;
    hob_tensor *x, *grid, *grad, *d_x = NULL, *d_grid = NULL;
    char what[64];

    fill(data, g->n * g->c * g->h * g->w, 4);
    fill(data2, count, 2.5);
    if (count > 20) {
        data2[3] = NAN;
        data2[8] = INFINITY;
        data2[13] = -INFINITY;
    }
    fill(data3, g->n * g->c * g->oh * g->ow, 2);
    x = made(dtype, data, in, 4, 1);
    grid = made(dtype, data2, places, 4, 1);
    grad = made(dtype, data3, out, 4, 0);
    snprintf(what, sizeof(what), "grid %d%d%d of %d x %d", ways->is_nearest,
             ways->padding, ways->corners, (int)g->h, (int)g->w);
    expect_grid(g, ways);
    op_check(&f, what,
             hob_grid_sample(
                 f.scope, x, grid, (enum hob_grid_sample_mode)ways->is_nearest,
                 (enum hob_grid_sample_padding)ways->padding, ways->corners),
             wanted, g->n * g->c * g->oh * g->ow, 4 * tolerance_of(dtype));
    ck_assert_int_eq(hob_grid_sample_backward(
                         f.scope, x, grid, grad,
                         (enum hob_grid_sample_backward_mode)ways->is_nearest,
                         (enum hob_grid_sample_backward_padding)ways->padding,
                         ways->corners, &d_x, &d_grid),
                     HOB_OK);
    op_check(&f, what, d_x, wanted2, g->n * g->c * g->h * g->w,
             16 * tolerance_of(dtype));
    expect_places(g, ways);
    /* The slope of what is no number is 0, or none either. */
    op_read(&f, d_grid, data3, count);
    for (int64_t i = 0; i < count; i++)
        if (isnan(data3[i]) && is_lost(g, ways, i / 2))
            wanted[i] = NAN;
    op_check(&f, what, d_grid, wanted, count, 64 * tolerance_of(dtype));
}

START_TEST(test_places_grid)
{
    const hob_dtype dtype = open_for(_i);

    for (int k = 0; k < 12 && f.device; k++) {
        const struct grid_ways ways = {k % 2, k / 2 % 3, k / 6};

        if (test_device_is_slow() &&
            (k % 2 + k / 2 + _i / OP_DEVICE_COUNT) % DTYPES)
            continue;
        for (int i = 0; i < GRIDS; i++)
            check_grid(&grids[i], &ways, dtype);
    }
}
END_TEST

/* Where all places are elements, Lanczos's filter reads them as they are and
 * nothing else, and so does its gradient. */
START_TEST(test_places_resize_of_whole_places)
{
    const int64_t shape[4] = {1, 2, 4, 5};
    const hob_dtype dtype = open_for(_i);

    if (is_for_others(dtype))
        return;
    fill(data, 40, 4);
    data[7] = INFINITY;
    for (int corners = 0; corners < 2 && f.device; corners++) {
        hob_tensor *x = made(dtype, data, shape, 4, 1);

        op_check(&f, "interpolate",
                 hob_interpolate(f.scope, x, shape + 2, 2,
                                 HOB_INTERPOLATE_MODE_LANCZOS3, corners),
                 data, 40, 0);
        op_check(&f, "interpolate_backward",
                 hob_interpolate_backward(
                     f.scope, x, shape + 2, 2,
                     HOB_INTERPOLATE_BACKWARD_MODE_LANCZOS3, corners),
                 data, 40, 0);
    }
}
END_TEST

/* The weight of an element that is D from a place; exact at whole distances. */
static double weight_of(enum hob_interpolate_mode mode, double d)
{
    const double a = -0.75, pi = 3.14159265358979323846;

    d = fabs(d);
    switch (mode) {
    case HOB_INTERPOLATE_MODE_BILINEAR:
        return d < 1 ? 1 - d : 0;
    case HOB_INTERPOLATE_MODE_BICUBIC:
        return d < 1   ? ((a + 2) * d - (a + 3)) * d * d + 1
               : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                       : 0;
    default: /* lanczos3 */
        return d == rint(d) ? d == 0
               : d < 3 ? 3 * sin(pi * d) * sin(pi * d / 3) / (pi * pi * d * d)
                       : 0;
    }
}

/* [out, in]: how much of each element is in each result. */
static void find_shares(double *shares, enum hob_interpolate_mode mode,
                        int corners, int64_t in, int64_t out)
{
    const int is_lanczos = mode == HOB_INTERPOLATE_MODE_LANCZOS3;

    memset(shares, 0, (size_t)(in * out) * sizeof(*shares));
    for (int64_t i = 0; i < out; i++) {
        double *row = shares + i * in, sum = 0;
        const double middle =
            (double)((2 * i + 1) * in) / (double)(2 * out) - 0.5;
        const double at =
            corners ? (double)(i * (in - 1)) / (double)(out - 1) : middle;

        if (mode <= HOB_INTERPOLATE_MODE_NEAREST_EXACT) {
            row[mode == HOB_INTERPOLATE_MODE_NEAREST
                    ? i * in / out
                    : (2 * i + 1) * in / (2 * out)] = 1;
            continue;
        }
        for (int64_t j = (int64_t)at - 3; j <= (int64_t)at + 4; j++) {
            const int64_t k = j < 0 ? 0 : j >= in ? in - 1 : j;

            row[k] +=
                is_lanczos && k != j ? 0 : weight_of(mode, at - (double)j);
        }
        for (int64_t j = 0; j < in; j++)
            sum += row[j];
        for (int64_t j = 0; j < in && is_lanczos; j++)
            row[j] /= sum;
    }
}

/* An infinite gradient, or none, reaches what it was read from by a weight and
 * nothing else. */
START_TEST(test_places_resize_of_extremes)
{
    static const int64_t sizes[][2] = {{7, 9}, {2, 3}, {4, 9}};
    const int64_t in[2] = {4, 5};
    const hob_dtype dtype = open_for(_i);
    double down[64], across[64];

    for (int k = 0; k < 5 * 2 * 3 * 3 && f.device; k++) {
        const enum hob_interpolate_mode mode =
            (enum hob_interpolate_mode)(k % 5);
        const int corners = k / 5 % 2;
        const int64_t *out = sizes[k / 10 % 3];
        const int64_t count = out[0] * out[1];
        const int64_t shape[4] = {1, 1, out[0], out[1]};

        fill(data, count, 4);
        data[k / 30 == 0   ? 0
             : k / 30 == 1 ? count - 1
                           : count / 2] = k % 2 ? INFINITY : NAN;
        find_shares(down, mode, corners, in[0], out[0]);
        find_shares(across, mode, corners, in[1], out[1]);
        for (int64_t i = 0; i < in[0] * in[1]; i++) {
            wanted[i] = 0;
            for (int64_t j = 0; j < count; j++) {
                const double weight = down[j / out[1] * in[0] + i / in[1]] *
                                      across[j % out[1] * in[1] + i % in[1]];

                if (weight != 0)
                    wanted[i] += weight * data[j];
            }
        }
        op_check(&f, "interpolate_backward",
                 hob_interpolate_backward(
                     f.scope, made(dtype, data, shape, 4, 0), in, 2,
                     (enum hob_interpolate_backward_mode)mode, corners),
                 wanted, in[0] * in[1], 8 * tolerance_of(dtype));
    }
}
END_TEST

/* Nor do others than those of a window reach its mean, or its gradient. */
START_TEST(test_places_pool_of_extremes)
{
    static const int64_t outs[] = {3, 7, 12, 1};
    const int64_t in = 7;
    const hob_dtype dtype = open_for(_i);

    for (int k = 0; k < 8 && f.device; k++) {
        const int64_t out = outs[k / 2];
        const int64_t shape[3] = {1, 1, in}, made_shape[3] = {1, 1, out};

        fill(data, in, 4);
        fill(data2, out, 4);
        data[k % 2 ? 0 : 3] = INFINITY;
        data2[k % 2 ? out - 1 : out / 2] = NAN;
        memset(wanted2, 0, sizeof(wanted2[0]) * (size_t)in);
        for (int64_t i = 0; i < out; i++) {
            const int64_t from = i * in / out;
            const int64_t to = ((i + 1) * in + out - 1) / out;

            wanted[i] = 0;
            for (int64_t j = from; j < to; j++) {
                wanted[i] += data[j] / (double)(to - from);
                wanted2[j] += data2[i] / (double)(to - from);
            }
        }
        op_check(&f, "adaptive_avg_pool",
                 hob_adaptive_avg_pool(f.scope, made(dtype, data, shape, 3, 0),
                                       &out, 1),
                 wanted, out, 4 * tolerance_of(dtype));
        op_check(&f, "adaptive_avg_pool_backward",
                 hob_adaptive_avg_pool_backward(
                     f.scope, made(dtype, data2, made_shape, 3, 0), &in, 1),
                 wanted2, in, 4 * tolerance_of(dtype));
    }
}
END_TEST

/* ---- transforms ---- */

static const struct transform {
    int64_t outer, given, inner; /* x; along its middle dimension */
    int64_t n;
} transforms[] = {
    {3, 1, 1, 1},   {2, 2, 3, 2},     {1, 3, 4, 3},   {5, 4, 1, 4},
    {2, 7, 2, 7},   {1, 12, 3, 12},   {3, 30, 1, 30}, {1, 49, 2, 49},
    {2, 64, 3, 64}, {1, 210, 2, 210}, {7, 5, 3, 11},  {3, 16, 1, 10},
    {2, 9, 2, 16},  {1, 26, 1, 26},   {0, 4, 2, 4},   {1, 1024, 1, 1024},
    {3, 8, 2, 8},
};

enum { TRANSFORMS = sizeof(transforms) / sizeof(transforms[0]) };

enum { LONGEST = 8192 };

/* The cosines and sines of n places around a circle. */
static double cosines[LONGEST], sines[LONGEST];

static void turn_around(int64_t n)
{
    static const double two_pi = 6.28318530717958647693;

    ck_assert_int_le(n, LONGEST);
    for (int64_t i = 0; i < n; i++) {
        const double a = two_pi * (double)i / (double)n;

        cosines[i] = cos(a);
        sines[i] = sin(a);
    }
}

/* Row (O, I) of [outer, COUNT, inner]: element K. */
static int64_t at_row(const struct transform *t, int64_t count, int64_t o,
                      int64_t k, int64_t i)
{
    return (o * count + k) * t->inner + i;
}

static void expect_transform(const struct transform *t)
{
    const int64_t half = t->n / 2 + 1;

    for (int64_t o = 0; o < t->outer; o++)
        for (int64_t i = 0; i < t->inner; i++)
            for (int64_t k = 0; k < half; k++) {
                double re = 0, im = 0;
                int64_t turn = 0; /* j k, around */

                for (int64_t j = 0; j < t->n && j < t->given; j++) {
                    const double x = data[at_row(t, t->given, o, j, i)];

                    re += x * cosines[turn];
                    im -= x * sines[turn];
                    turn += turn + k < t->n ? k : k - t->n;
                }
                wanted[at_row(t, half, o, k, i)] = re;
                wanted2[at_row(t, half, o, k, i)] = im;
            }
}

static void expect_inverse(const struct transform *t)
{
    const int64_t half = t->n / 2 + 1;

    for (int64_t o = 0; o < t->outer; o++)
        for (int64_t i = 0; i < t->inner; i++)
            for (int64_t j = 0; j < t->n; j++) {
                double sum = 0;
                int64_t turn = 0;

                for (int64_t k = 0; k < half && k < t->given; k++) {
                    const int64_t at = at_row(t, t->given, o, k, i);
                    const int is_alone = k == 0 || 2 * k == t->n;

                    sum += is_alone ? data[at] * cosines[turn]
                                    : 2 * (data[at] * cosines[turn] -
                                           data2[at] * sines[turn]);
                    turn += turn + j < t->n ? j : j - t->n;
                }
                wanted[at_row(t, t->n, o, j, i)] = sum / (double)t->n;
            }
}

/* What irfft does not read of the imaginary parts. */
static void spoil_unread(const struct transform *t)
{
    for (int64_t o = 0; o < t->outer; o++)
        for (int64_t i = 0; i < t->inner; i++) {
            data2[at_row(t, t->given, o, 0, i)] = NAN;
            if (t->n % 2 == 0 && t->n / 2 < t->given)
                data2[at_row(t, t->given, o, t->n / 2, i)] = INFINITY;
        }
}

static void check_transform(const struct transform *t, hob_dtype dtype,
                            int is_turned)
{
    const int64_t shape[3] = {t->outer, t->given, t->inner};
    const int64_t rows = t->outer * t->inner, half = t->n / 2 + 1;
    /* Sums of n numbers up to 4. */
    const double tolerance = tolerance_of(dtype) * (1 + sqrt((double)t->n));
    hob_tensor *x, *re = NULL, *im = NULL;
    char what[64];

    snprintf(what, sizeof(what), "rfft of %d rows of %d", (int)rows, (int)t->n);
    fill(data, rows * t->given, 4);
    fill(data2, rows * t->given, 4);
    x = made(dtype, data, shape, 3, is_turned);
    turn_around(t->n);
    expect_transform(t);
    ck_assert_int_eq(hob_rfft(f.scope, x, 1, hob_i64(t->n), &re, &im), HOB_OK);
    op_check(&f, what, re, wanted, rows * half, tolerance);
    op_check(&f, what, im, wanted2, rows * half, tolerance);
    spoil_unread(t);
    expect_inverse(t);
    op_check(&f, what,
             hob_irfft(f.scope, x, made(dtype, data2, shape, 3, !is_turned), -2,
                       hob_i64(t->n)),
             wanted, rows * t->n, tolerance);
}

/* A body multiplies matrices of n by n, of any n in the same way: there the
 * longest rows tell nothing more. A slow compiler is asked for one or two
 * dtypes of each length. */
static int is_left_out(const struct transform *t, int turn, int loop)
{
    return (loop % OP_DEVICE_COUNT == 0 && t->n > 210) ||
           (test_device_is_slow() && (turn + loop / OP_DEVICE_COUNT) % DTYPES);
}

START_TEST(test_places_transforms)
{
    const hob_dtype dtype = open_for(_i);

    for (int i = 0; i < TRANSFORMS && f.device; i++)
        for (int is_turned = 0; is_turned < 2; is_turned++)
            if (!is_left_out(&transforms[i], i + is_turned, _i))
                check_transform(&transforms[i], dtype, is_turned);
}
END_TEST

/* Rows as long as a group holds, and longer ones, of factors that have passes
 * and of others. */
START_TEST(test_places_long_transforms)
{
    static const struct transform longest[] = {
        {1, 4096, 1, 4096}, {1, 2025, 1, 2025}, {3, 4200, 1, 4200},
        {1, 2401, 2, 2401}, {1, 100, 1, 8192},  {1, 4100, 1, 4106}};

    op_fixture_open(&f, 1);
    for (int i = 0; i < 6 && f.device; i++)
        for (int k = 0; k < 2; k++)
            if (!test_device_is_slow() || (k == 1 && i % 2 == 0))
                check_transform(&longest[i], dtypes[k], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("places");
    TCase *tc = tcase_create("places");
    TCase *rows = tcase_create("transforms");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, test_places_columns, 0, LOOPS);
    tcase_add_loop_test(tc, test_places_grid, 0, LOOPS);
    tcase_add_loop_test(tc, test_places_resize_of_whole_places, 0, LOOPS);
    tcase_add_loop_test(tc, test_places_resize_of_extremes, 0, LOOPS);
    tcase_add_loop_test(tc, test_places_pool_of_extremes, 0, LOOPS);
    tcase_set_timeout(rows, 60);
    tcase_add_checked_fixture(rows, NULL, teardown);
    tcase_add_loop_test(rows, test_places_transforms, 0, LOOPS);
    tcase_add_test(rows, test_places_long_transforms);
    suite_add_tcase(suite, tc);
    suite_add_tcase(suite, rows);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpolate.c - bodies of interpolate and its gradient.
 */
#include "bodies.h"
#include "util.h"

#include <string.h>

/* The most taps of a filter, lanczos3's. */
enum { TAPS_MAX = 6 };

/*
 * For each result along an axis the element at or before its place, and how
 * far behind that it is, in [0, 1). Places are fractions, num / den, so the
 * split into the two is exact.
 */
struct places {
    hob_tensor *first;    /* i64 [out] */
    hob_tensor *distance; /* [out], of x's dtype */
};

static struct places find_places(hob_scope *scope, hob_tensor *x, int64_t in,
                                 int64_t out, enum hob_interpolate_mode mode,
                                 int align_corners)
{
    hob_tensor *i =
        hob_arange(scope, 0, out, 1, hob_scope_host(scope)->tensor_device(x),
                   HOB_DTYPE_I64);
    hob_tensor *num, *whole;
    int64_t factor = in, start = 0, den = out;
    struct places places;

    if (mode == HOB_INTERPOLATE_MODE_NEAREST_EXACT) {
        factor = 2 * in; /* (i + 1/2) in / out */
        start = in;
        den = 2 * out;
    } else if (mode != HOB_INTERPOLATE_MODE_NEAREST && align_corners) {
        factor = in - 1; /* i (in - 1) / (out - 1) */
        den = out > 1 ? out - 1 : 1;
    } else if (mode != HOB_INTERPOLATE_MODE_NEAREST) {
        factor = 2 * in; /* (i + 1/2) in / out - 1/2 */
        start = in - out;
        den = 2 * out;
    }
    num = hob_add_scalar(scope, hob_mul_scalar(scope, i, hob_i64(factor)),
                         hob_i64(start));
    if (mode == HOB_INTERPOLATE_MODE_BILINEAR) /* nothing before the first */
        num = hob_clamp(scope, num, hob_i64(0), hob_none());
    /* Division of integers is by truncation: of a number that is positive. */
    whole = hob_div_scalar(scope, hob_add_scalar(scope, num, hob_i64(den)),
                           hob_i64(den));
    places.first = hob_add_scalar(scope, whole, hob_i64(-1));
    places.distance = hob_div_scalar(
        scope,
        hob_cast(scope,
                 hob_sub(scope, num,
                         hob_mul_scalar(scope, places.first, hob_i64(den))),
                 hob_tensor_dtype(x)),
        hob_f64((double)den));
    return places;
}

/* ((a t + b) t + c) t + d */
static hob_tensor *cubic(hob_scope *scope, hob_tensor *t, double a, double b,
                         double c, double d)
{
    hob_tensor *y =
        hob_add_scalar(scope, hob_mul_scalar(scope, t, hob_f64(a)), hob_f64(b));

    y = hob_add_scalar(scope, hob_mul(scope, y, t), hob_f64(c));
    return hob_add_scalar(scope, hob_mul(scope, y, t), hob_f64(d));
}

/* sin(pi d) / (pi d) * sin(pi d / 3) / (pi d / 3): 1 at 0 and 0 at other whole
 * distances, where the sine would be of the rounding of pi. */
static hob_tensor *lanczos(hob_scope *scope, hob_tensor *d)
{
    const double pi = 3.14159265358979323846;
    hob_tensor *is_whole = hob_equal(scope, d, hob_floor(scope, d));
    hob_tensor *safe = hob_where(scope, is_whole,
                                 hob__part_constant(scope, d, hob_f64(0.5)), d);
    hob_tensor *a = hob_mul_scalar(scope, safe, hob_f64(pi));
    hob_tensor *b = hob_mul_scalar(scope, safe, hob_f64(pi / 3));
    hob_tensor *y =
        hob_div(scope, hob_mul(scope, hob_sin(scope, a), hob_sin(scope, b)),
                hob_mul(scope, a, b));

    return hob_where(scope, is_whole,
                     hob_cast(scope, hob_equal_scalar(scope, d, hob_f64(0)),
                              hob_tensor_dtype(d)),
                     y);
}

/*
 * The weights of a filter's taps, and the first tap's place relative to the
 * element at or before. The bicubic one is Keys's with a = -3/4 (IEEE Trans.
 * ASSP 29(6), 1981).
 */
static uint32_t weigh(hob_scope *scope, enum hob_interpolate_mode mode,
                      hob_tensor *t, hob_tensor **weights, int64_t *out_first)
{
    const double a = -0.75;

    *out_first = 0;
    switch (mode) {
    case HOB_INTERPOLATE_MODE_BILINEAR:
        weights[0] = hob_rsub_scalar(scope, t, hob_f64(1));
        weights[1] = t;
        return 2;
    case HOB_INTERPOLATE_MODE_BICUBIC:
        *out_first = -1;
        weights[0] = cubic(scope, t, a, -2 * a, a, 0);
        weights[1] = cubic(scope, t, a + 2, -(a + 3), 0, 1);
        weights[2] = cubic(scope, t, -(a + 2), 2 * a + 3, -a, 0);
        weights[3] = cubic(scope, t, -a, a, 0, 0);
        return 4;
    case HOB_INTERPOLATE_MODE_LANCZOS3:
        *out_first = -2;
        for (int k = 0; k < TAPS_MAX; k++)
            weights[k] =
                lanczos(scope, hob_add_scalar(scope, t, hob_f64(2 - k)));
        return TAPS_MAX;
    default: /* nearest */
        weights[0] = NULL;
        return 1;
    }
}

/* Lanczos leaves out the taps that are not there; the others sum up to 1. */
static void leave_out(hob_scope *scope, hob_tensor *first, int64_t from,
                      int64_t in, uint32_t taps, hob_tensor **weights)
{
    hob_tensor *sum = NULL;

    for (uint32_t k = 0; k < taps; k++) {
        hob_tensor *at = hob_add_scalar(scope, first, hob_i64(from + k));
        hob_tensor *there = hob_logical_and(
            scope, hob_greater_equal_scalar(scope, at, hob_i64(0)),
            hob_less_scalar(scope, at, hob_i64(in)));

        weights[k] =
            hob_where(scope, there, weights[k],
                      hob__part_constant(scope, weights[k], hob_f64(0)));
        sum = sum ? hob_add(scope, sum, weights[k]) : weights[k];
    }
    for (uint32_t k = 0; k < taps; k++)
        weights[k] = hob_div(scope, weights[k], sum);
}

/* What each result along an axis reads: TAPS elements AT, i64 [out], by
 * WEIGHTS, [out]; NULL: by 1. */
struct reading {
    uint32_t taps;
    hob_tensor *at[TAPS_MAX];
    hob_tensor *weights[TAPS_MAX];
};

static void read_axis(hob_scope *scope, hob_tensor *x, int64_t in, int64_t out,
                      enum hob_interpolate_mode mode, int align_corners,
                      struct reading *reading)
{
    struct places places = find_places(scope, x, in, out, mode, align_corners);
    int64_t first;

    reading->taps =
        weigh(scope, mode, places.distance, reading->weights, &first);
    if (mode == HOB_INTERPOLATE_MODE_LANCZOS3)
        leave_out(scope, places.first, first, in, reading->taps,
                  reading->weights);
    for (uint32_t k = 0; k < reading->taps; k++)
        reading->at[k] = hob_clamp(
            scope, hob_add_scalar(scope, places.first, hob_i64(first + k)),
            hob_i64(0), hob_i64(in - 1));
}

/* X by tap K's weight along dimension AXIS. What has no weight does not count,
 * be it infinite. */
static hob_tensor *weighed(hob_scope *scope, hob_tensor *x, uint32_t axis,
                           const struct reading *reading, uint32_t k)
{
    int64_t line[4] = {1, 1, 1, 1};
    hob_tensor *weight = reading->weights[k];

    if (!weight)
        return x;
    line[axis] = hob_tensor_shape(weight)[0];
    weight = hob_reshape(scope, weight, line, 4);
    return hob_where(scope, hob_equal_scalar(scope, weight, hob_f64(0)),
                     hob__part_constant(scope, x, hob_f64(0)),
                     hob_mul(scope, x, weight));
}

/* X resized to OUT along dimension AXIS of [n, c, h, w]. */
static hob_tensor *resize(hob_scope *scope, hob_tensor *x, uint32_t axis,
                          int64_t in, int64_t out,
                          enum hob_interpolate_mode mode, int align_corners)
{
    struct reading reading;
    hob_tensor *sum = NULL;

    read_axis(scope, x, in, out, mode, align_corners, &reading);
    for (uint32_t k = 0; k < reading.taps; k++) {
        hob_tensor *part = hob_select(scope, x, reading.at[k], (int64_t)axis);

        part = weighed(scope, part, axis, &reading, k);
        sum = sum ? hob_add(scope, hob_move(scope, sum), part) : part;
    }
    return sum;
}

hob_tensor *hob__body_interpolate(hob_scope *scope, hob_tensor *x,
                                  const int64_t *output_size,
                                  uint32_t output_size_count,
                                  enum hob_interpolate_mode mode,
                                  int align_corners)
{
    const int64_t *in = hob_tensor_shape(x);
    hob_dtype dtype = hob_tensor_dtype(x);
    hob_tensor *y = hob__part_up(scope, x);

    (void)output_size_count; /* two, the infer function says */
    y = resize(scope, y, 2, in[2], output_size[0], mode, align_corners);
    y = resize(scope, y, 3, in[3], output_size[1], mode, align_corners);
    return hob__part_down(scope, y, dtype);
}

/* Taps that meet at the edge are one: infinite gradients by weights of either
 * sign would be no number, where what counts is the weights' sum. */
static void join_taps(hob_scope *scope, struct reading *reading)
{
    for (uint32_t k = 0; k + 1 < reading->taps; k++) {
        hob_tensor **weights = &reading->weights[k];
        hob_tensor *meet = hob_equal(scope, reading->at[k], reading->at[k + 1]);
        hob_tensor *zero = hob__part_constant(scope, weights[0], hob_f64(0));

        weights[1] = hob_add(scope, weights[1],
                             hob_where(scope, meet, weights[0], zero));
        weights[0] = hob_where(scope, meet, zero, weights[0]);
    }
}

/* GRAD of what was resized from IN along dimension AXIS, of which was read. */
static hob_tensor *spread(hob_scope *scope, hob_tensor *grad, uint32_t axis,
                          int64_t in, enum hob_interpolate_mode mode,
                          int align_corners)
{
    int64_t shape[4];
    struct reading reading;
    hob_tensor *sum;

    memcpy(shape, hob_tensor_shape(grad), sizeof(shape));
    read_axis(scope, grad, in, shape[axis], mode, align_corners, &reading);
    join_taps(scope, &reading);
    shape[axis] = in;
    sum = hob__part_full(scope, grad, shape, 4, hob_f64(0));
    for (uint32_t k = 0; k < reading.taps; k++)
        sum = hob_select_add(scope, hob_move(scope, sum), reading.at[k],
                             weighed(scope, grad, axis, &reading, k),
                             (int64_t)axis);
    return sum;
}

hob_tensor *hob__body_interpolate_backward(
    hob_scope *scope, hob_tensor *grad, const int64_t *input_size,
    uint32_t input_size_count, enum hob_interpolate_backward_mode given,
    int align_corners)
{
    enum hob_interpolate_mode mode = (enum hob_interpolate_mode)given;
    hob_dtype dtype = hob_tensor_dtype(grad);
    hob_tensor *y = hob__part_up(scope, grad);

    (void)input_size_count; /* two, the infer function says */
    y = spread(scope, y, 3, input_size[1], mode, align_corners);
    y = spread(scope, y, 2, input_size[0], mode, align_corners);
    return hob__part_down(scope, y, dtype);
}

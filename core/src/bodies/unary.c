/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unary.c - bodies of the elementwise functions of one tensor.
 */
#include "bodies.h"
#include "util.h"

#include <math.h>

static const double ln2 = 0.69314718055994530942;
/* From here on x^2 + 1 and x^2 - 1 are x^2, in f64 too. */
static const double huge_from = 268435456.0;

/* 0 - x and not x * -1, which an unsigned dtype could not hold; for floats it
 * is the other way round, since 0 - 0 has no sign. */
hob_tensor *hob__body_neg(hob_scope *scope, hob_tensor *x)
{
    if (hob__part_is(hob_tensor_dtype(x), HOB_MASK_FLOAT))
        return hob_mul_scalar(scope, x, hob_i64(-1));
    return hob_sub(scope, hob__part_constant(scope, x, hob_i64(0)), x);
}

/* x <= 0 rather than x < 0: -0 becomes 0 - (-0) = +0. */
hob_tensor *hob__body_abs(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *zero = hob__part_constant(scope, x, hob_i64(0));

    return hob_where(scope, hob_less_equal(scope, x, zero),
                     hob_sub(scope, zero, x), x);
}

hob_tensor *hob__body_sign(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *zero = hob__part_constant(scope, x, hob_i64(0));
    hob_dtype dtype = hob_tensor_dtype(x);
    hob_tensor *above = hob_cast(scope, hob_greater(scope, x, zero), dtype);
    hob_tensor *below = hob_cast(scope, hob_less(scope, x, zero), dtype);

    return hob_sub(scope, above, below);
}

hob_tensor *hob__body_square(hob_scope *scope, hob_tensor *x)
{
    return hob_mul(scope, x, x);
}

hob_tensor *hob__body_recip(hob_scope *scope, hob_tensor *x)
{
    return hob_div(scope, hob__part_constant(scope, x, hob_i64(1)), x);
}

/*
 * With u = 1 + x rounded, log(u) * x / (u - 1) corrects for the rounding
 * (Kahan, "Accurate eigenvalues of a symmetric tridiagonal matrix", 1966).
 */
hob_tensor *hob__body_log1p(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *a = hob__part_up(scope, x);
    hob_tensor *u = hob_add_scalar(scope, a, hob_i64(1));
    hob_tensor *d = hob_sub_scalar(scope, u, hob_i64(1));
    hob_tensor *y = hob_mul(scope, hob_log(scope, u), hob_div(scope, a, d));

    y = hob_where(scope, hob_equal_scalar(scope, d, hob_i64(0)), a, y);
    y = hob_where(scope, hob_equal_scalar(scope, u, hob_f64(INFINITY)), u, y);
    return hob__part_down(scope, y, hob_tensor_dtype(x));
}

hob_tensor *hob__body_tan(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *a = hob__part_up(scope, x);

    return hob__part_down(scope,
                          hob_div(scope, hob_sin(scope, a), hob_cos(scope, a)),
                          hob_tensor_dtype(x));
}

/* exp(|x|) / 2 and exp(-|x|) / 2, from exp(|x| / 2), which overflows no
 * earlier than they do. */
static void half_exponentials(hob_scope *scope, hob_tensor *magnitude,
                              hob_tensor **out_grown, hob_tensor **out_shrunk)
{
    hob_tensor *e =
        hob_exp(scope, hob_mul_scalar(scope, magnitude, hob_f64(0.5)));
    hob_tensor *half = hob__part_constant(scope, e, hob_f64(0.5));

    *out_grown = hob_mul(scope, hob_mul(scope, half, e), e);
    *out_shrunk = hob_div(scope, hob_div(scope, half, e), e);
}

/* Below 1 the exponentials cancel; there 2 t / (1 - t^2), t = tanh(x / 2). */
hob_tensor *hob__body_sinh(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *a = hob__part_up(scope, x), *grown, *shrunk;
    hob_tensor *magnitude = hob_abs(scope, a);
    hob_tensor *t = hob_tanh(scope, hob_mul_scalar(scope, a, hob_f64(0.5)));
    hob_tensor *small =
        hob_div(scope, hob_mul_scalar(scope, t, hob_i64(2)),
                hob_rsub_scalar(scope, hob_mul(scope, t, t), hob_i64(1)));
    hob_tensor *large;

    half_exponentials(scope, magnitude, &grown, &shrunk);
    large = hob_mul(scope, hob_sign(scope, a), hob_sub(scope, grown, shrunk));
    return hob__part_down(
        scope,
        hob_where(scope, hob_less_scalar(scope, magnitude, hob_i64(1)), small,
                  large),
        hob_tensor_dtype(x));
}

hob_tensor *hob__body_cosh(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *a = hob__part_up(scope, x), *grown, *shrunk;

    half_exponentials(scope, hob_abs(scope, a), &grown, &shrunk);
    return hob__part_down(scope, hob_add(scope, grown, shrunk),
                          hob_tensor_dtype(x));
}

/* (1 - x) and (1 + x), whose product keeps its digits near +-1. */
static void around_one(hob_scope *scope, hob_tensor *x, hob_tensor **out_minus,
                       hob_tensor **out_plus)
{
    *out_minus = hob_rsub_scalar(scope, x, hob_i64(1));
    *out_plus = hob_add_scalar(scope, x, hob_i64(1));
}

hob_tensor *hob__body_asin(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *a = hob__part_up(scope, x), *minus, *plus;

    around_one(scope, a, &minus, &plus);
    return hob__part_down(
        scope,
        hob_atan2(scope, a, hob_sqrt(scope, hob_mul(scope, minus, plus))),
        hob_tensor_dtype(x));
}

hob_tensor *hob__body_acos(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *a = hob__part_up(scope, x), *minus, *plus, *half;

    around_one(scope, a, &minus, &plus);
    half = hob_atan2(scope, hob_sqrt(scope, minus), hob_sqrt(scope, plus));
    return hob__part_down(scope, hob_mul_scalar(scope, half, hob_i64(2)),
                          hob_tensor_dtype(x));
}

hob_tensor *hob__body_atan(hob_scope *scope, hob_tensor *x)
{
    return hob_atan2(scope, x, hob__part_constant(scope, x, hob_i64(1)));
}

/* log(x) + ln 2 for X so great that this is asinh and acosh. */
static hob_tensor *log_twice(hob_scope *scope, hob_tensor *x)
{
    return hob_add_scalar(scope, hob_log(scope, x), hob_f64(ln2));
}

/* Y with X's sign; where X is a zero, X, which may be -0. */
static hob_tensor *with_sign_of(hob_scope *scope, hob_tensor *x, hob_tensor *y)
{
    y = hob_where(scope, hob_less_scalar(scope, x, hob_i64(0)),
                  hob_neg(scope, y), y);
    return hob_where(scope, hob_equal_scalar(scope, x, hob_i64(0)), x, y);
}

/* log1p(a + a^2 / (1 + sqrt(1 + a^2))) for a = |x|: no digits lost near 0. */
hob_tensor *hob__body_asinh(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *a = hob_abs(scope, v);
    hob_tensor *square = hob_mul(scope, a, a);
    hob_tensor *root =
        hob_sqrt(scope, hob_add_scalar(scope, square, hob_i64(1)));
    hob_tensor *y = hob_log1p(
        scope, hob_add(scope, a,
                       hob_div(scope, square,
                               hob_add_scalar(scope, root, hob_i64(1)))));

    y = hob_where(scope, hob_greater_scalar(scope, a, hob_f64(huge_from)),
                  log_twice(scope, a), y);
    return hob__part_down(scope, with_sign_of(scope, v, y),
                          hob_tensor_dtype(x));
}

/* With t = x - 1: log1p(t + sqrt(t (t + 2))). */
hob_tensor *hob__body_acosh(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *t = hob_sub_scalar(scope, v, hob_i64(1));
    hob_tensor *root = hob_sqrt(
        scope, hob_mul(scope, t, hob_add_scalar(scope, t, hob_i64(2))));
    hob_tensor *y = hob_log1p(scope, hob_add(scope, t, root));

    y = hob_where(scope, hob_greater_scalar(scope, v, hob_f64(huge_from)),
                  log_twice(scope, v), y);
    y = hob_mask_fill(scope, y, hob_less_scalar(scope, v, hob_i64(1)),
                      hob_f64(NAN));
    return hob__part_down(scope, y, hob_tensor_dtype(x));
}

/* Of the magnitude: near -1 the ratio would be near -1, where log1p is steep.
 */
hob_tensor *hob__body_atanh(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *a = hob_abs(scope, v);
    hob_tensor *ratio = hob_div(scope, hob_mul_scalar(scope, a, hob_i64(2)),
                                hob_rsub_scalar(scope, a, hob_i64(1)));
    hob_tensor *y =
        hob_mul_scalar(scope, hob_log1p(scope, ratio), hob_f64(0.5));

    return hob__part_down(scope, with_sign_of(scope, v, y),
                          hob_tensor_dtype(x));
}

hob_tensor *hob__body_ceil(hob_scope *scope, hob_tensor *x)
{
    return hob_neg(scope, hob_floor(scope, hob_neg(scope, x)));
}

/* Half to even: the floor, or the next integer where the rest says so. */
hob_tensor *hob__body_round(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *low = hob_floor(scope, v);
    hob_tensor *rest = hob_sub(scope, v, low);
    hob_tensor *half = hob_mul_scalar(scope, low, hob_f64(0.5));
    hob_tensor *odd = hob_not_equal(scope, hob_floor(scope, half), half);
    hob_tensor *tie = hob_equal_scalar(scope, rest, hob_f64(0.5));
    hob_tensor *up =
        hob_logical_or(scope, hob_greater_scalar(scope, rest, hob_f64(0.5)),
                       hob_logical_and(scope, tie, odd));
    hob_tensor *y =
        hob_where(scope, up, hob_add_scalar(scope, low, hob_i64(1)), low);

    /* A zero has x's sign. */
    y = hob_where(scope, hob_equal_scalar(scope, y, hob_i64(0)),
                  hob_mul_scalar(scope, v, hob_i64(0)), y);
    return hob__part_down(scope, y, hob_tensor_dtype(x));
}

hob_tensor *hob__body_trunc(hob_scope *scope, hob_tensor *x)
{
    return hob_where(scope, hob_less_scalar(scope, x, hob_i64(0)),
                     hob_ceil(scope, x), hob_floor(scope, x));
}

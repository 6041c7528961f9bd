/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic.c - bodies of the binary ops and those with a scalar.
 */
#include "bodies.h"
#include "util.h"

#include <math.h>

hob_tensor *hob__body_maximum(hob_scope *scope, hob_tensor *lhs,
                              hob_tensor *rhs)
{
    hob_tensor *takes_lhs = hob_greater(scope, lhs, rhs);

    /* No comparison holds with NaN: a NaN on the right is taken anyway. */
    if (hob__part_is(hob_tensor_dtype(lhs), HOB_MASK_FLOAT))
        takes_lhs = hob_logical_or(scope, takes_lhs, hob_is_nan(scope, lhs));
    return hob_where(scope, takes_lhs, lhs, rhs);
}

hob_tensor *hob__body_minimum(hob_scope *scope, hob_tensor *lhs,
                              hob_tensor *rhs)
{
    hob_tensor *takes_lhs = hob_less(scope, lhs, rhs);

    if (hob__part_is(hob_tensor_dtype(lhs), HOB_MASK_FLOAT))
        takes_lhs = hob_logical_or(scope, takes_lhs, hob_is_nan(scope, lhs));
    return hob_where(scope, takes_lhs, lhs, rhs);
}

/* The greater of the two times sqrt(1 + ratio^2): only the result overflows. */
hob_tensor *hob__body_hypot(hob_scope *scope, hob_tensor *lhs, hob_tensor *rhs)
{
    hob_tensor *a = hob_abs(scope, hob__part_up(scope, lhs));
    hob_tensor *b = hob_abs(scope, hob__part_up(scope, rhs));
    hob_tensor *most = hob_maximum(scope, a, b);
    hob_tensor *ratio = hob_div(scope, hob_minimum(scope, a, b), most);
    hob_tensor *root = hob_sqrt(
        scope, hob_add_scalar(scope, hob_mul(scope, ratio, ratio), hob_i64(1)));
    hob_tensor *y = hob_mul(scope, most, root);
    hob_tensor *infinite =
        hob_logical_or(scope, hob_is_inf(scope, a), hob_is_inf(scope, b));

    y = hob_mask_fill(scope, y, hob_equal_scalar(scope, most, hob_i64(0)),
                      hob_i64(0));
    y = hob_mask_fill(scope, y, infinite, hob_f64(INFINITY));
    return hob__part_down(scope, y, hob_tensor_dtype(lhs));
}

hob_tensor *hob__body_add_scalar(hob_scope *scope, hob_tensor *x,
                                 hob_scalar scalar)
{
    return hob_add(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_sub_scalar(hob_scope *scope, hob_tensor *x,
                                 hob_scalar scalar)
{
    return hob_sub(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_mul_scalar(hob_scope *scope, hob_tensor *x,
                                 hob_scalar scalar)
{
    return hob_mul(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_div_scalar(hob_scope *scope, hob_tensor *x,
                                 hob_scalar scalar)
{
    return hob_div(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_remainder_scalar(hob_scope *scope, hob_tensor *x,
                                       hob_scalar scalar)
{
    return hob_remainder(scope, x, hob__part_constant(scope, x, scalar));
}

static double scalar_value(hob_scalar scalar)
{
    switch (scalar.tag) {
    case HOB_TAG_F64:
        return scalar.u.f64;
    case HOB_TAG_U64:
        return (double)scalar.u.u64;
    default:
        return (double)scalar.u.i64;
    }
}

hob_tensor *hob__body_pow_scalar(hob_scope *scope, hob_tensor *x,
                                 hob_scalar scalar)
{
    double exponent = scalar_value(scalar);

    if (exponent == 0)
        return hob__part_full(scope, x, hob_tensor_shape(x),
                              (uint32_t)hob_tensor_rank(x), hob_i64(1));
    if (exponent == 1)
        return hob__part_same(scope, x);
    if (exponent == 2)
        return hob_mul(scope, x, x);
    if (hob__part_is(hob_tensor_dtype(x), HOB_MASK_FLOAT)) {
        if (exponent == -1)
            return hob_recip(scope, x);
        if (exponent == -2)
            return hob_recip(scope, hob_mul(scope, x, x));
    }
    return hob_pow(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_rsub_scalar(hob_scope *scope, hob_tensor *x,
                                  hob_scalar scalar)
{
    return hob_sub(scope, hob__part_constant(scope, x, scalar), x);
}

hob_tensor *hob__body_clamp(hob_scope *scope, hob_tensor *x, hob_scalar min,
                            hob_scalar max)
{
    hob_tensor *y = x;

    /* By comparisons, which NaN passes; the last one wins. */
    if (max.tag != HOB_TAG_ABSENT)
        y = hob_mask_fill(scope, y, hob_greater_scalar(scope, y, max), max);
    if (min.tag != HOB_TAG_ABSENT)
        y = hob_mask_fill(scope, y, hob_less_scalar(scope, y, min), min);
    return y == x ? hob__part_same(scope, x) : y;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - bodies of the comparisons, from equal and greater. None holds
 * on NaN but not_equal, so "not less" is not "greater or equal".
 */
#include "bodies.h"
#include "util.h"

#include <math.h>

hob_tensor *hob__body_not_equal(hob_scope *scope, hob_tensor *lhs,
                                hob_tensor *rhs)
{
    return hob_logical_not(scope, hob_equal(scope, lhs, rhs));
}

hob_tensor *hob__body_greater_equal(hob_scope *scope, hob_tensor *lhs,
                                    hob_tensor *rhs)
{
    return hob_logical_or(scope, hob_greater(scope, lhs, rhs),
                          hob_equal(scope, lhs, rhs));
}

hob_tensor *hob__body_less(hob_scope *scope, hob_tensor *lhs, hob_tensor *rhs)
{
    return hob_greater(scope, rhs, lhs);
}

hob_tensor *hob__body_less_equal(hob_scope *scope, hob_tensor *lhs,
                                 hob_tensor *rhs)
{
    return hob_greater_equal(scope, rhs, lhs);
}

hob_tensor *hob__body_equal_scalar(hob_scope *scope, hob_tensor *x,
                                   hob_scalar scalar)
{
    return hob_equal(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_not_equal_scalar(hob_scope *scope, hob_tensor *x,
                                       hob_scalar scalar)
{
    return hob_not_equal(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_greater_scalar(hob_scope *scope, hob_tensor *x,
                                     hob_scalar scalar)
{
    return hob_greater(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_greater_equal_scalar(hob_scope *scope, hob_tensor *x,
                                           hob_scalar scalar)
{
    return hob_greater_equal(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_less_scalar(hob_scope *scope, hob_tensor *x,
                                  hob_scalar scalar)
{
    return hob_less(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_less_equal_scalar(hob_scope *scope, hob_tensor *x,
                                        hob_scalar scalar)
{
    return hob_less_equal(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_is_nan(hob_scope *scope, hob_tensor *x)
{
    return hob_not_equal(scope, x, x);
}

hob_tensor *hob__body_is_inf(hob_scope *scope, hob_tensor *x)
{
    return hob_equal_scalar(scope, hob_abs(scope, x), hob_f64(INFINITY));
}

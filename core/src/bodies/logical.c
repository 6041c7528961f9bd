/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logical.c - bodies of the logical and bitwise ops and of mask_fill.
 */
#include "bodies.h"
#include "util.h"

hob_tensor *hob__body_logical_and(hob_scope *scope, hob_tensor *lhs,
                                  hob_tensor *rhs)
{
    return hob_where(scope, lhs, rhs,
                     hob__part_constant(scope, lhs, hob_bool(0)));
}

hob_tensor *hob__body_logical_or(hob_scope *scope, hob_tensor *lhs,
                                 hob_tensor *rhs)
{
    return hob_where(scope, lhs, hob__part_constant(scope, lhs, hob_bool(1)),
                     rhs);
}

hob_tensor *hob__body_logical_xor(hob_scope *scope, hob_tensor *lhs,
                                  hob_tensor *rhs)
{
    return hob_not_equal(scope, lhs, rhs);
}

hob_tensor *hob__body_logical_not(hob_scope *scope, hob_tensor *x)
{
    return hob_equal_scalar(scope, x, hob_bool(0));
}

/* a + b counts the bits that both have twice. */
hob_tensor *hob__body_bitwise_or(hob_scope *scope, hob_tensor *lhs,
                                 hob_tensor *rhs)
{
    return hob_sub(scope, hob_add(scope, lhs, rhs),
                   hob_bitwise_and(scope, lhs, rhs));
}

hob_tensor *hob__body_bitwise_xor(hob_scope *scope, hob_tensor *lhs,
                                  hob_tensor *rhs)
{
    hob_tensor *both = hob_bitwise_and(scope, lhs, rhs);

    return hob_sub(scope, hob_sub(scope, hob_add(scope, lhs, rhs), both), both);
}

/* All ones less x: no bit borrows. */
hob_tensor *hob__body_bitwise_not(hob_scope *scope, hob_tensor *x)
{
    hob_dtype dtype = hob_tensor_dtype(x);
    hob_scalar ones = hob_i64(-1);

    if (hob__part_is(dtype, HOB_MASK_UNSIGNED))
        ones = hob_u64(UINT64_MAX >> (64 - 8 * hob_dtype_size(dtype)));
    return hob_sub(scope, hob__part_constant(scope, x, ones), x);
}

hob_tensor *hob__body_bitwise_and_scalar(hob_scope *scope, hob_tensor *x,
                                         hob_scalar scalar)
{
    return hob_bitwise_and(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_bitwise_or_scalar(hob_scope *scope, hob_tensor *x,
                                        hob_scalar scalar)
{
    return hob_bitwise_or(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_bitwise_xor_scalar(hob_scope *scope, hob_tensor *x,
                                         hob_scalar scalar)
{
    return hob_bitwise_xor(scope, x, hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_bitwise_left_shift_scalar(hob_scope *scope, hob_tensor *x,
                                                hob_scalar scalar)
{
    return hob_bitwise_left_shift(scope, x,
                                  hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_bitwise_right_shift_scalar(hob_scope *scope,
                                                 hob_tensor *x,
                                                 hob_scalar scalar)
{
    return hob_bitwise_right_shift(scope, x,
                                   hob__part_constant(scope, x, scalar));
}

hob_tensor *hob__body_mask_fill(hob_scope *scope, hob_tensor *x,
                                hob_tensor *mask, hob_scalar value)
{
    return hob_where(scope, mask, hob__part_constant(scope, x, value), x);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics.c - bodies of medians, variances and norms.
 */
#include "bodies.h"
#include "util.h"

#include <math.h>

/* ---- medians ---- */

/* Sorting puts NaN last, so where there is one it is looked for apart. */
hob_status hob__body_median_dim_with_indices(hob_scope *scope, hob_tensor *x,
                                             int64_t dim, hob_dtype index_dtype,
                                             hob_tensor **out_0,
                                             hob_tensor **out_1)
{
    uint32_t axis = hob__part_axis(x, dim);
    int64_t count = hob_tensor_shape(x)[axis], middle = (count - 1) / 2;
    hob_tensor *at;

    if (count == 0) { /* then there are no results either */
        at = hob_argmax(scope, x, dim, index_dtype);
    } else {
        at = hob__part_range(scope, hob_argsort(scope, x, dim, 0, index_dtype),
                             axis, middle, middle + 1);
    }
    if (count && hob__part_is(hob_tensor_dtype(x), HOB_MASK_FLOAT)) {
        hob_tensor *greatest = hob_argmax(scope, x, dim, index_dtype);
        hob_tensor *nan =
            hob_is_nan(scope, hob_gather(scope, x, greatest, dim));

        at = hob_where(scope, nan, greatest, at);
    }
    *out_1 = at;
    *out_0 = hob_gather(scope, x, at, dim);
    return hob_scope_host(scope)->scope_status(scope);
}

hob_tensor *hob__body_median_dim(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    int64_t count = hob_tensor_shape(x)[hob__part_axis(x, dim)];
    hob_tensor *values = NULL, *indices = NULL;

    /* A failure shows in the values: they are the error tensor. */
    (void)hob_median_dim_with_indices(
        scope, x, dim, hob__part_index_dtype(count), &values, &indices);
    return values;
}

hob_tensor *hob__body_median(hob_scope *scope, hob_tensor *x)
{
    return hob__part_item(scope,
                          hob_median_dim(scope, hob__part_flat(scope, x), 0));
}

/* ---- variances ---- */

/* In two passes: the square of the mean does not cancel. */
hob_tensor *hob__body_var_dim(hob_scope *scope, hob_tensor *x, int64_t dim,
                              int64_t correction)
{
    int64_t count = hob_tensor_shape(x)[hob__part_axis(x, dim)];
    double degrees = (double)count - (double)correction;
    hob_tensor *wide = hob__part_up(scope, x);
    hob_tensor *far =
        hob_square(scope, hob_sub(scope, wide, hob_mean_dim(scope, wide, dim)));

    return hob__part_down(
        scope,
        hob_div_scalar(scope, hob_sum_dim(scope, far, dim),
                       hob_f64(degrees > 0 ? degrees : (double)NAN)),
        hob_tensor_dtype(x));
}

hob_tensor *hob__body_var(hob_scope *scope, hob_tensor *x, int64_t correction)
{
    return hob__part_item(
        scope, hob_var_dim(scope, hob__part_flat(scope, x), 0, correction));
}

hob_tensor *hob__body_std_dim(hob_scope *scope, hob_tensor *x, int64_t dim,
                              int64_t correction)
{
    hob_tensor *wide = hob__part_up(scope, x);

    return hob__part_down(
        scope,
        hob__part_root(scope, hob_var_dim(scope, wide, dim, correction), 2),
        hob_tensor_dtype(x));
}

hob_tensor *hob__body_std(hob_scope *scope, hob_tensor *x, int64_t correction)
{
    return hob__part_item(
        scope, hob_std_dim(scope, hob__part_flat(scope, x), 0, correction));
}

/* ---- norms ---- */

static hob_tensor *norm_in_place(hob_scope *scope, hob_tensor *x, int64_t dim,
                                 double p)
{
    hob_tensor *sum;

    if (p == 0)
        return hob_sum_dim(scope,
                           hob_cast(scope,
                                    hob_not_equal_scalar(scope, x, hob_i64(0)),
                                    hob_tensor_dtype(x)),
                           dim);
    if (p == 2)
        return hob__part_root(scope,
                              hob_sum_dim(scope, hob_square(scope, x), dim), 2);
    x = hob_abs(scope, x);
    if (p == 1)
        return hob_sum_dim(scope, x, dim);
    if (isinf(p))
        return p > 0 ? hob_max_dim(scope, x, dim) : hob_min_dim(scope, x, dim);
    sum = hob_sum_dim(scope, hob_pow_scalar(scope, x, hob_f64(p)), dim);
    return p > 0 ? hob__part_root(scope, sum, p)
                 : hob_pow_scalar(scope, sum, hob_f64(1 / p));
}

hob_tensor *hob__body_norm_dim(hob_scope *scope, hob_tensor *x, int64_t dim,
                               double p)
{
    return hob__part_down(scope,
                          norm_in_place(scope, hob__part_up(scope, x), dim, p),
                          hob_tensor_dtype(x));
}

hob_tensor *hob__body_norm(hob_scope *scope, hob_tensor *x, double p)
{
    return hob__part_item(scope,
                          hob_norm_dim(scope, hob__part_flat(scope, x), 0, p));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - bodies of the reductions: whole ones from those along a
 * dimension, extrema from their position.
 */
#include "bodies.h"
#include "util.h"

hob_tensor *hob__body_sum(hob_scope *scope, hob_tensor *x)
{
    return hob__part_item(scope,
                          hob_sum_dim(scope, hob__part_flat(scope, x), 0));
}

hob_tensor *hob__body_prod(hob_scope *scope, hob_tensor *x)
{
    return hob__part_item(scope,
                          hob_prod_dim(scope, hob__part_flat(scope, x), 0));
}

/* A sum overflows where the mean does not: it is formed in a wider dtype. */
hob_tensor *hob__body_mean_dim(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    hob_dtype dtype = hob_tensor_dtype(x);
    int64_t count = hob_tensor_shape(x)[hob__part_axis(x, dim)];
    hob_tensor *wide = hob__part_up(scope, x);
    hob_tensor *total;

    if (hob__part_is(dtype, HOB_MASK_SIGNED))
        wide = hob_cast(scope, x, HOB_DTYPE_I64);
    if (hob__part_is(dtype, HOB_MASK_UNSIGNED))
        wide = hob_cast(scope, x, HOB_DTYPE_U64);
    total = hob_sum_dim(scope, wide, dim);
    /* Where an empty dimension got through, either 0 / 0 is NaN, or there is
     * no element to divide. */
    if (count == 0 && !hob__part_is(dtype, HOB_MASK_FLOAT))
        count = 1;
    return hob__part_down(scope, hob_div_scalar(scope, total, hob_i64(count)),
                          dtype);
}

hob_tensor *hob__body_mean(hob_scope *scope, hob_tensor *x)
{
    return hob__part_item(scope,
                          hob_mean_dim(scope, hob__part_flat(scope, x), 0));
}

hob_tensor *hob__body_max_dim(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    int64_t count = hob_tensor_shape(x)[hob__part_axis(x, dim)];

    return hob_gather(
        scope, x, hob_argmax(scope, x, dim, hob__part_index_dtype(count)), dim);
}

hob_tensor *hob__body_min_dim(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    int64_t count = hob_tensor_shape(x)[hob__part_axis(x, dim)];

    return hob_gather(
        scope, x, hob_argmin(scope, x, dim, hob__part_index_dtype(count)), dim);
}

hob_tensor *hob__body_max(hob_scope *scope, hob_tensor *x)
{
    return hob__part_item(scope,
                          hob_max_dim(scope, hob__part_flat(scope, x), 0));
}

hob_tensor *hob__body_min(hob_scope *scope, hob_tensor *x)
{
    return hob__part_item(scope,
                          hob_min_dim(scope, hob__part_flat(scope, x), 0));
}

/* Counted in i64, which is exact; NaN differs from 0 and so counts. */
hob_tensor *hob__body_any_dim(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    hob_tensor *truth = hob_tensor_dtype(x) == HOB_DTYPE_BOOL
                            ? x
                            : hob_not_equal_scalar(scope, x, hob_i64(0));
    hob_tensor *count =
        hob_sum_dim(scope, hob_cast(scope, truth, HOB_DTYPE_I64), dim);

    return hob_greater_scalar(scope, count, hob_i64(0));
}

hob_tensor *hob__body_all_dim(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    hob_tensor *falsity = hob_tensor_dtype(x) == HOB_DTYPE_BOOL
                              ? hob_logical_not(scope, x)
                              : hob_equal_scalar(scope, x, hob_i64(0));

    return hob_logical_not(scope, hob_any_dim(scope, falsity, dim));
}

hob_tensor *hob__body_any(hob_scope *scope, hob_tensor *x)
{
    return hob__part_item(scope,
                          hob_any_dim(scope, hob__part_flat(scope, x), 0));
}

hob_tensor *hob__body_all(hob_scope *scope, hob_tensor *x)
{
    return hob__part_item(scope,
                          hob_all_dim(scope, hob__part_flat(scope, x), 0));
}

/* Of integers the complement reverses the order, and unlike the negation it
 * does so for the least one and for unsigned ones too. */
hob_tensor *hob__body_argmin(hob_scope *scope, hob_tensor *x, int64_t dim,
                             hob_dtype index_dtype)
{
    hob_tensor *reversed = hob__part_is(hob_tensor_dtype(x), HOB_MASK_FLOAT)
                               ? hob_neg(scope, x)
                               : hob_bitwise_not(scope, x);

    return hob_argmax(scope, reversed, dim, index_dtype);
}

hob_status hob__body_max_dim_with_indices(hob_scope *scope, hob_tensor *x,
                                          int64_t dim, hob_dtype index_dtype,
                                          hob_tensor **out_0,
                                          hob_tensor **out_1)
{
    *out_1 = hob_argmax(scope, x, dim, index_dtype);
    *out_0 = hob_gather(scope, x, *out_1, dim);
    return hob_scope_host(scope)->scope_status(scope);
}

hob_status hob__body_min_dim_with_indices(hob_scope *scope, hob_tensor *x,
                                          int64_t dim, hob_dtype index_dtype,
                                          hob_tensor **out_0,
                                          hob_tensor **out_1)
{
    *out_1 = hob_argmin(scope, x, dim, index_dtype);
    *out_0 = hob_gather(scope, x, *out_1, dim);
    return hob_scope_host(scope)->scope_status(scope);
}

/* ---- running extrema ---- */

typedef hob_tensor *(*pair_fn)(hob_scope *scope, hob_tensor *a, hob_tensor *b);

/* By doubling: after each pass an element knows of twice as many before it. */
static hob_tensor *running(hob_scope *scope, hob_tensor *x, int64_t dim,
                           pair_fn most)
{
    uint32_t axis = hob__part_axis(x, dim);
    int64_t count = hob_tensor_shape(x)[axis];
    hob_tensor *y = x;

    for (int64_t step = 1; step < count; step *= 2) {
        hob_tensor *parts[2];

        parts[0] = hob__part_range(scope, y, axis, 0, step);
        parts[1] = most(scope, hob__part_range(scope, y, axis, 0, count - step),
                        hob__part_range(scope, y, axis, step, count));
        y = hob_cat(scope, parts, 2, (int64_t)axis);
    }
    return y == x ? hob__part_same(scope, x) : y;
}

hob_tensor *hob__body_cummax(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    return running(scope, x, dim, hob_maximum);
}

hob_tensor *hob__body_cummin(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    return running(scope, x, dim, hob_minimum);
}

/* ---- several dims ---- */

typedef hob_tensor *(*dim_fn)(hob_scope *scope, hob_tensor *x, int64_t dim);

/* Neighbours among DIMS of X as one dimension each: the sizes to OUT_SHAPE,
 * which of them are reduced to OUT_REDUCED; returns their number. */
static uint32_t merge_dims(const hob_tensor *x, const int64_t *dims,
                           uint32_t dims_count, int64_t *out_shape,
                           int *out_reduced)
{
    const uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int is_reduced[HOB_MAX_RANK] = {0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < dims_count; i++)
        is_reduced[hob__part_axis(x, dims[i])] = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (i > 0 && is_reduced[i] && is_reduced[i - 1]) {
            out_shape[count - 1] *= hob_tensor_shape(x)[i];
            continue;
        }
        out_shape[count] = hob_tensor_shape(x)[i];
        out_reduced[count++] = is_reduced[i];
    }
    return count;
}

/*
 * Neighbours go together, in one pass and, of half floats, with one rounding;
 * apart they go one after the other, from the last on, which reads x in order.
 */
static hob_tensor *reduce_dims(hob_scope *scope, hob_tensor *x,
                               const int64_t *dims, uint32_t dims_count,
                               dim_fn reduce)
{
    const uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t shape[HOB_MAX_RANK], kept[HOB_MAX_RANK];
    int is_reduced[HOB_MAX_RANK];
    hob_tensor *y = x;
    uint32_t count;

    /* One dimension, or nothing to read: as it is. */
    if (dims_count < 2 || hob_tensor_count(x) == 0) {
        for (uint32_t i = 0; i < dims_count; i++)
            y = reduce(scope, y, dims[i]);
        return y == x ? hob__part_same(scope, x) : y;
    }
    count = merge_dims(x, dims, dims_count, shape, is_reduced);
    if (count < rank)
        y = hob_reshape(scope, y, shape, count);
    for (uint32_t i = count; i-- > 0;)
        if (is_reduced[i])
            y = reduce(scope, y, (int64_t)i);
    if (count == rank)
        return y;
    for (uint32_t i = 0; i < rank; i++)
        kept[i] = hob_tensor_shape(x)[i];
    for (uint32_t i = 0; i < dims_count; i++)
        kept[hob__part_axis(x, dims[i])] = 1;
    return hob_reshape(scope, y, kept, rank);
}

hob_tensor *hob__body_sum_dims(hob_scope *scope, hob_tensor *x,
                               const int64_t *dims, uint32_t dims_count)
{
    return reduce_dims(scope, x, dims, dims_count, hob_sum_dim);
}

hob_tensor *hob__body_mean_dims(hob_scope *scope, hob_tensor *x,
                                const int64_t *dims, uint32_t dims_count)
{
    double count = 1;

    for (uint32_t i = 0; i < dims_count; i++)
        count *= (double)hob_tensor_shape(x)[hob__part_axis(x, dims[i])];
    return hob__part_down(
        scope,
        hob_div_scalar(
            scope,
            hob_sum_dims(scope, hob__part_up(scope, x), dims, dims_count),
            hob_f64(count)),
        hob_tensor_dtype(x));
}

hob_tensor *hob__body_max_dims(hob_scope *scope, hob_tensor *x,
                               const int64_t *dims, uint32_t dims_count)
{
    return reduce_dims(scope, x, dims, dims_count, hob_max_dim);
}

hob_tensor *hob__body_min_dims(hob_scope *scope, hob_tensor *x,
                               const int64_t *dims, uint32_t dims_count)
{
    return reduce_dims(scope, x, dims, dims_count, hob_min_dim);
}

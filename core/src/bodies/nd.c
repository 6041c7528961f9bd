/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd.c - bodies of the ops that put or find elements at positions: scatter
 * and select_assign with any update, gather_nd, scatter_nd, argwhere, nonzero.
 */
#include "bodies.h"
#include "util.h"

#include <string.h>

/* The updates of all three ops are numbered alike. */
enum update {
    ASSIGN = HOB_SCATTER_UPDATE_ASSIGN,
    ADD = HOB_SCATTER_UPDATE_ADD,
    MUL = HOB_SCATTER_UPDATE_MUL,
    MIN = HOB_SCATTER_UPDATE_MIN,
    MAX = HOB_SCATTER_UPDATE_MAX
};

/* FIRST, then SECOND put in the same place. */
static hob_tensor *combine(hob_scope *scope, enum update update,
                           hob_tensor *first, hob_tensor *second)
{
    switch (update) {
    case ADD:
        return hob_add(scope, first, second);
    case MUL:
        return hob_mul(scope, first, second);
    case MIN:
        return hob_minimum(scope, first, second);
    case MAX:
        return hob_maximum(scope, first, second);
    default:
        return second;
    }
}

/* Along AXIS equal PLACES stand together: combine all values of a run into
 * its last one, by doubling. */
static hob_tensor *combine_runs(hob_scope *scope, enum update update,
                                hob_tensor *values, hob_tensor *places,
                                uint32_t axis, int64_t count)
{
    for (int64_t step = 1; step < count && update != ASSIGN; step *= 2) {
        hob_tensor *later = hob__part_range(scope, values, axis, step, count);
        hob_tensor *before =
            hob__part_range(scope, values, axis, 0, count - step);
        hob_tensor *same =
            hob_equal(scope, hob__part_range(scope, places, axis, step, count),
                      hob__part_range(scope, places, axis, 0, count - step));
        hob_tensor *parts[2];

        parts[0] = hob__part_range(scope, values, axis, 0, step);
        parts[1] = hob_where(scope, same, combine(scope, update, before, later),
                             later);
        values = hob_cat(scope, parts, 2, (int64_t)axis);
    }
    return values;
}

/* 1, 2, .. COUNT along AXIS where a run of PLACES ends, 0 elsewhere. */
static hob_tensor *run_ends(hob_scope *scope, hob_tensor *places,
                            const int64_t *shape, uint32_t rank, uint32_t axis)
{
    hob_device *device = hob_scope_host(scope)->tensor_device(places);
    int64_t count = shape[axis], line[HOB_MAX_RANK], last[HOB_MAX_RANK];
    hob_tensor *numbers =
        hob_arange(scope, 1, count + 1, 1, device, HOB_DTYPE_I64);
    hob_tensor *parts[2];

    for (uint32_t i = 0; i < rank; i++)
        line[i] = i == axis ? count : 1;
    numbers =
        hob_expand(scope, hob_reshape(scope, numbers, line, rank), shape, rank);
    if (count == 1)
        return numbers;
    memcpy(last, shape, rank * sizeof(last[0]));
    last[axis] = 1;
    parts[0] =
        hob_not_equal(scope, hob__part_range(scope, places, axis, 1, count),
                      hob__part_range(scope, places, axis, 0, count - 1));
    parts[1] = hob_full(scope, last, rank, hob_bool(1), device, HOB_DTYPE_BOOL);
    return hob_where(scope, hob_cat(scope, parts, 2, (int64_t)axis), numbers,
                     hob__part_constant(scope, numbers, hob_i64(0)));
}

/*
 * Sorting brings the values for one place together, in their order. The last
 * of each run, which stands for all of it, is then looked up from its place:
 * no two meet there, so every update is exact.
 */
static hob_tensor *scatter_sorted(hob_scope *scope, hob_tensor *x,
                                  hob_tensor *indices, hob_tensor *value,
                                  uint32_t axis, enum update update)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(indices);
    const int64_t *shape = hob_tensor_shape(indices);
    int64_t reached[HOB_MAX_RANK], starts[HOB_MAX_RANK] = {0};
    hob_tensor *places = NULL, *order = NULL, *at, *hit, *result;
    int is_part = 0;

    memcpy(reached, hob_tensor_shape(x), rank * sizeof(reached[0]));
    for (uint32_t i = 0; i < rank; i++) {
        is_part |= i != axis && shape[i] != reached[i];
        reached[i] = i == axis ? reached[i] : shape[i];
    }
    /* A failure shows in the values: they are the error tensor. */
    (void)hob_sort_with_indices(scope, indices, (int64_t)axis, 0,
                                hob__part_index_dtype(shape[axis]), &places,
                                &order);
    value = combine_runs(scope, update,
                         hob_gather(scope, value, order, (int64_t)axis), places,
                         axis, shape[axis]);
    at = run_ends(scope, places, shape, rank, axis);
    at = hob_scatter_add(scope,
                         hob__part_full(scope, at, reached, rank, hob_i64(0)),
                         places, at, (int64_t)axis);
    hit = hob_greater_scalar(scope, at, hob_i64(0));
    at = hob_clamp(scope, hob_sub_scalar(scope, at, hob_i64(1)), hob_i64(0),
                   hob_none());
    value = hob_gather(scope, value, at, (int64_t)axis);
    result =
        is_part ? hob_slice(scope, x, starts, rank, reached, rank, NULL, 0) : x;
    result =
        hob_where(scope, hit, combine(scope, update, result, value), result);
    return is_part ? hob_slice_assign(scope, x, result, starts, rank, reached,
                                      rank, NULL, 0)
                   : result;
}

/* Of bool, as of the numbers 0 and 1, with addition that stays at 1. */
static hob_tensor *scatter_bool(hob_scope *scope, hob_tensor *x,
                                hob_tensor *indices, hob_tensor *value,
                                uint32_t axis, enum update update)
{
    enum update numeric = update == ADD ? MAX : update == MUL ? MIN : update;

    x = hob_cast(scope, x, HOB_DTYPE_U8);
    value = hob_cast(scope, value, HOB_DTYPE_U8);
    return hob_cast(scope,
                    scatter_sorted(scope, x, indices, value, axis, numeric),
                    HOB_DTYPE_BOOL);
}

hob_tensor *hob__body_scatter(hob_scope *scope, hob_tensor *x,
                              hob_tensor *indices, hob_tensor *value,
                              int64_t dim, enum hob_scatter_update given)
{
    enum update update = (enum update)given;
    hob_dtype dtype = hob_tensor_dtype(x);
    uint32_t axis = hob__part_axis(x, dim);

    if (hob_tensor_count(indices) == 0)
        return hob__part_same(scope, x);
    if (dtype == HOB_DTYPE_BOOL)
        return scatter_bool(scope, x, indices, value, axis, update);
    if (update == ADD)
        return hob_scatter_add(scope, x, indices, value, dim);
    if (update != MUL) /* a product is rounded once, at its end */
        return scatter_sorted(scope, x, indices, value, axis, update);
    return hob__part_down(scope,
                          scatter_sorted(scope, hob__part_up(scope, x), indices,
                                         hob__part_up(scope, value), axis,
                                         update),
                          dtype);
}

/* INDICES [count] as positions along AXIS for every place of VALUE. */
static hob_tensor *spread(hob_scope *scope, hob_tensor *value,
                          hob_tensor *indices, uint32_t axis)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(value);
    int64_t line[HOB_MAX_RANK];

    for (uint32_t i = 0; i < rank; i++)
        line[i] = i == axis ? hob_tensor_shape(indices)[0] : 1;
    return hob_expand(scope, hob_reshape(scope, indices, line, rank),
                      hob_tensor_shape(value), rank);
}

hob_tensor *hob__body_select_assign(hob_scope *scope, hob_tensor *x,
                                    hob_tensor *indices, hob_tensor *value,
                                    int64_t dim,
                                    enum hob_select_assign_update update)
{
    if ((enum update)update == ADD && hob_tensor_dtype(x) != HOB_DTYPE_BOOL)
        return hob_select_add(scope, x, indices, value, dim);
    return hob_scatter(scope, x,
                       spread(scope, value, indices, hob__part_axis(x, dim)),
                       value, dim, (enum hob_scatter_update)update);
}

/*
 * Each row of INDICES [.., k] as the position in X's first k dimensions taken
 * as one: [count of rows]. A coordinate outside makes it -1, which what uses
 * it refuses.
 */
static hob_tensor *flat_rows(hob_scope *scope, hob_tensor *x,
                             hob_tensor *indices)
{
    uint32_t last = (uint32_t)hob_tensor_rank(indices) - 1;
    int64_t k = hob_tensor_shape(indices)[last], dim = last;
    hob_tensor *all = hob_cast(scope, indices, HOB_DTYPE_I64);
    hob_tensor *position = NULL, *bad = NULL;

    for (int64_t i = 0; i < k; i++) {
        int64_t size = hob_tensor_shape(x)[i];
        hob_tensor *at = hob_squeeze(
            scope, hob__part_range(scope, all, last, i, i + 1), &dim, 1);
        hob_tensor *outside =
            hob_logical_or(scope, hob_less_scalar(scope, at, hob_i64(0)),
                           hob_greater_equal_scalar(scope, at, hob_i64(size)));

        bad = bad ? hob_logical_or(scope, bad, outside) : outside;
        position =
            position
                ? hob_add(scope, hob_mul_scalar(scope, position, hob_i64(size)),
                          at)
                : at;
    }
    position = hob_where(
        scope, bad, hob__part_constant(scope, position, hob_i64(-1)), position);
    return hob_reshape(
        scope, position,
        (const int64_t[]){hob__part_product(hob_tensor_shape(indices), last)},
        1);
}

/* X with the first K dimensions as one, and the others: [rows, slice]. */
static hob_tensor *as_rows(hob_scope *scope, hob_tensor *x, int64_t k)
{
    const int64_t *shape = hob_tensor_shape(x);
    uint32_t rank = (uint32_t)hob_tensor_rank(x), at = (uint32_t)k;
    int64_t pair[2];

    pair[0] = hob__part_product(shape, at);
    pair[1] = hob__part_product(shape + at, rank - at);
    return hob_reshape(scope, x, pair, 2);
}

hob_tensor *hob__body_gather_nd(hob_scope *scope, hob_tensor *x,
                                hob_tensor *indices)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    uint32_t rows = (uint32_t)hob_tensor_rank(indices) - 1;
    int64_t k = hob_tensor_shape(indices)[rows], shape[2 * HOB_MAX_RANK];

    memcpy(shape, hob_tensor_shape(indices), rows * sizeof(shape[0]));
    memcpy(shape + rows, hob_tensor_shape(x) + k,
           (rank - (uint32_t)k) * sizeof(shape[0]));
    return hob_reshape(scope,
                       hob_select(scope, as_rows(scope, x, k),
                                  flat_rows(scope, x, indices), 0),
                       shape, rows + rank - (uint32_t)k);
}

hob_tensor *hob__body_scatter_nd(hob_scope *scope, hob_tensor *x,
                                 hob_tensor *indices, hob_tensor *value,
                                 enum hob_scatter_nd_update update)
{
    uint32_t rows = (uint32_t)hob_tensor_rank(indices) - 1;
    int64_t k = hob_tensor_shape(indices)[rows];
    hob_tensor *y = hob_select_assign(
        scope, as_rows(scope, x, k), flat_rows(scope, x, indices),
        as_rows(scope, value, rows), 0, (enum hob_select_assign_update)update);

    return hob_reshape(scope, y, hob_tensor_shape(x),
                       (uint32_t)hob_tensor_rank(x));
}

/* ---- positions of what is not zero ---- */

/* The places in row-major order are picked, then taken apart. */
hob_tensor *hob__body_argwhere(hob_scope *scope, hob_tensor *x,
                               hob_dtype index_dtype)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t count = hob_tensor_count(x), inner = 1;
    hob_tensor *truth = hob__part_flat(scope, x);
    hob_tensor *places, *columns[HOB_MAX_RANK];

    if (hob_tensor_dtype(x) != HOB_DTYPE_BOOL)
        truth = hob_not_equal_scalar(scope, truth, hob_i64(0));
    places = hob_arange(scope, 0, count, 1,
                        hob_scope_host(scope)->tensor_device(x), HOB_DTYPE_I64);
    places = hob_mask_select(scope, places, truth);
    for (uint32_t i = rank; i-- > 0;) {
        int64_t size = hob_tensor_shape(x)[i];

        /* Without elements there is nothing to take apart. */
        columns[i] = hob_remainder_scalar(
            scope, hob_div_scalar(scope, places, hob_i64(inner ? inner : 1)),
            hob_i64(size ? size : 1));
        inner *= size;
    }
    places =
        rank ? hob_stack(scope, columns, rank, 1)
             : hob__part_range(scope, hob_unsqueeze(scope, places, 1), 1, 0, 0);
    return hob_cast(scope, places, index_dtype);
}

hob_status hob__body_nonzero(hob_scope *scope, hob_tensor *x,
                             hob_dtype index_dtype, hob_tensor **out,
                             uint32_t out_count)
{
    hob_tensor *places = hob_argwhere(scope, x, index_dtype);
    int64_t dim = 1;

    for (uint32_t i = 0; i < out_count; i++)
        out[i] = hob_squeeze(
            scope,
            hob__part_range(scope, places, 1, (int64_t)i, i + INT64_C(1)), &dim,
            1);
    return hob_scope_host(scope)->scope_status(scope);
}

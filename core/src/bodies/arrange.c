/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrange.c - bodies of the ops that put elements in other places.
 */
#include "bodies.h"
#include "util.h"

#include "../infer/util.h"

#include <string.h>

hob_tensor *hob__body_repeat(hob_scope *scope, hob_tensor *x,
                             const int64_t *times, uint32_t times_count)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t shape[HOB_MAX_RANK];
    hob_tensor *y = x;

    if (times_count > rank) { /* new dimensions in front */
        for (uint32_t i = 0; i < times_count; i++)
            shape[i] = i < times_count - rank
                           ? 1
                           : hob_tensor_shape(x)[i - (times_count - rank)];
        rank = times_count;
        y = hob_reshape(scope, x, shape, rank);
    }
    for (uint32_t i = 0; i < times_count; i++)
        if (times[i] != 1)
            y = hob_repeat_dim(scope, y, (int64_t)(rank - times_count + i),
                               times[i]);
    return y == x ? hob__part_same(scope, x) : y;
}

/* Along each dimension the last SHIFT elements come first. */
hob_tensor *hob__body_roll(hob_scope *scope, hob_tensor *x,
                           const int64_t *shifts, uint32_t shifts_count,
                           const int64_t *dims, uint32_t dims_count)
{
    int64_t shape[HOB_MAX_RANK];
    hob_tensor *y = x;

    (void)shifts_count; /* that of the dims */
    memcpy(shape, hob_tensor_shape(x),
           (uint32_t)hob_tensor_rank(x) * sizeof(shape[0]));
    for (uint32_t i = 0; i < dims_count; i++) {
        uint32_t axis = hob__part_axis(x, dims[i]);
        int64_t size = shape[axis], shift = size ? shifts[i] % size : 0;
        hob_tensor *parts[2];

        if (shift < 0)
            shift += size;
        if (!shift)
            continue;
        parts[0] = hob__part_range(scope, y, axis, size - shift, size);
        parts[1] = hob__part_range(scope, y, axis, 0, size - shift);
        y = hob_cat(scope, parts, 2, (int64_t)axis);
    }
    return y == x ? hob__part_same(scope, x) : y;
}

hob_tensor *hob__body_move_dims(hob_scope *scope, hob_tensor *x,
                                const int64_t *from, uint32_t from_count,
                                const int64_t *to, uint32_t to_count)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t order[HOB_MAX_RANK];

    (void)to_count; /* that of from; the infer function checked both */
    (void)hob__move_order(rank, from, to, from_count, order);
    return hob_permute(scope, x, order, rank);
}

/* ---- padding ---- */

/* Written into a field of VALUE; what negative padding crops goes first. */
static hob_tensor *pad_constant(hob_scope *scope, hob_tensor *x,
                                const int64_t *padding, uint32_t pairs,
                                hob_scalar value)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t whole[HOB_MAX_RANK], starts[HOB_MAX_RANK], ends[HOB_MAX_RANK];
    int64_t first[HOB_MAX_RANK] = {0}, last[HOB_MAX_RANK];

    for (uint32_t i = 0; i < rank; i++) {
        uint32_t pair = rank - 1 - i;
        int64_t before = pair < pairs ? padding[2 * pair] : 0;
        int64_t after = pair < pairs ? padding[2 * pair + 1] : 0;
        int64_t size = hob_tensor_shape(x)[i];

        whole[i] = size + before + after;
        starts[i] = before > 0 ? before : 0;
        ends[i] = whole[i] - (after > 0 ? after : 0);
        first[i] = before < 0 ? -before : 0;
        last[i] = size - (after < 0 ? -after : 0);
    }
    return hob_slice_assign(
        scope, hob__part_full(scope, x, whole, rank, value),
        hob_slice(scope, x, first, rank, last, rank, NULL, 0), starts, rank,
        ends, rank, NULL, 0);
}

/* COUNT elements that mirror what lies behind the edge of Y along AXIS. */
static hob_tensor *mirror(hob_scope *scope, hob_tensor *y, uint32_t axis,
                          int64_t start, int64_t end)
{
    const int64_t axes = (int64_t)axis;

    return hob_flip(scope, hob__part_range(scope, y, axis, start, end), &axes,
                    1);
}

/* The edge of Y at AT along AXIS, COUNT times. */
static hob_tensor *repeat_edge(hob_scope *scope, hob_tensor *y, uint32_t axis,
                               int64_t at, int64_t count)
{
    return hob_repeat_dim(scope, hob__part_range(scope, y, axis, at, at + 1),
                          (int64_t)axis, count);
}

hob_tensor *hob__body_pad(hob_scope *scope, hob_tensor *x,
                          const int64_t *padding, uint32_t padding_count,
                          enum hob_pad_mode mode, hob_scalar value)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    hob_tensor *y = x;

    if (mode == HOB_PAD_MODE_CONSTANT)
        return pad_constant(scope, x, padding, padding_count / 2, value);
    for (uint32_t i = 0; i < padding_count / 2; i++) {
        uint32_t axis = rank - 1 - i, count = 0;
        int64_t before = padding[2 * i], after = padding[2 * i + 1];
        int64_t size = hob_tensor_shape(x)[axis];
        int is_edge = mode == HOB_PAD_MODE_EDGE;
        hob_tensor *parts[3];

        if (before)
            parts[count++] = is_edge ? repeat_edge(scope, y, axis, 0, before)
                                     : mirror(scope, y, axis, 1, before + 1);
        parts[count++] = y;
        if (after)
            parts[count++] =
                is_edge ? repeat_edge(scope, y, axis, size - 1, after)
                        : mirror(scope, y, axis, size - 1 - after, size - 1);
        if (count > 1)
            y = hob_cat(scope, parts, count, (int64_t)axis);
    }
    return y == x ? hob__part_same(scope, x) : y;
}

/* ---- matrices ---- */

/* Of [.., m * n] every n + 1st element lies on a diagonal. */
hob_tensor *hob__body_diagonal(hob_scope *scope, hob_tensor *x, int64_t offset)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    const int64_t *shape = hob_tensor_shape(x);
    int64_t rows = shape[rank - 2], columns = shape[rank - 1];
    int64_t across, down, length, start, flat[HOB_MAX_RANK];
    hob_device *device = hob_scope_host(scope)->tensor_device(x);
    hob_tensor *places;

    /* Past the corners every diagonal is empty. */
    if (offset > columns)
        offset = columns;
    if (offset < -rows)
        offset = -rows;
    across = offset > 0 ? columns - offset : columns;
    down = offset < 0 ? rows + offset : rows;
    length = across < down ? across : down;
    start = offset > 0 ? offset : -offset * columns;
    memcpy(flat, shape, (rank - 2) * sizeof(flat[0]));
    flat[rank - 2] = rows * columns;
    if (length <= 0)
        length = start = 0;
    places =
        hob_arange(scope, start, start + length * (columns + 1), columns + 1,
                   device, hob__part_index_dtype(rows * columns));
    return hob_select(scope, hob_reshape(scope, x, flat, rank - 1), places,
                      (int64_t)rank - 2);
}

hob_tensor *hob__body_trace(hob_scope *scope, hob_tensor *x)
{
    const int64_t last = -1;

    return hob_squeeze(scope, hob_sum_dim(scope, hob_diagonal(scope, x, 0), -1),
                       &last, 1);
}

/* Where COLUMN - ROW is below OFFSET, [rows, columns]. */
static hob_tensor *below(hob_scope *scope, hob_tensor *x, int64_t offset)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t rows = hob_tensor_shape(x)[rank - 2];
    int64_t columns = hob_tensor_shape(x)[rank - 1];
    hob_device *device = hob_scope_host(scope)->tensor_device(x);
    hob_tensor *row = hob_unsqueeze(
        scope, hob_arange(scope, 0, rows, 1, device, HOB_DTYPE_I64), 1);
    hob_tensor *column =
        hob_arange(scope, 0, columns, 1, device, HOB_DTYPE_I64);

    return hob_less_scalar(scope, hob_sub(scope, column, row), hob_i64(offset));
}

hob_tensor *hob__body_triu(hob_scope *scope, hob_tensor *x, int64_t diagonal)
{
    return hob_where(scope, below(scope, x, diagonal),
                     hob__part_constant(scope, x, hob_i64(0)), x);
}

hob_tensor *hob__body_tril(hob_scope *scope, hob_tensor *x, int64_t diagonal)
{
    if (diagonal == INT64_MAX) /* all of it; one more would overflow */
        return hob__part_same(scope, x);
    return hob_where(scope, below(scope, x, diagonal + 1), x,
                     hob__part_constant(scope, x, hob_i64(0)));
}

hob_tensor *hob__body_eye(hob_scope *scope, int64_t size, hob_device *device,
                          hob_dtype dtype)
{
    hob_tensor *line = hob_arange(scope, 0, size, 1, device, HOB_DTYPE_I64);

    return hob_cast(
        scope, hob_equal(scope, line, hob_unsqueeze(scope, line, 1)), dtype);
}

/*
 * ON added to a field of OFF at the classes, so that the check of indices is
 * scatter_add's; a negative class counts from the end.
 */
hob_tensor *hob__body_one_hot(hob_scope *scope, hob_tensor *indices,
                              int64_t classes, int64_t dim, double on,
                              double off, hob_dtype dtype)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(indices);
    uint32_t axis = (uint32_t)(dim < 0 ? dim + rank + 1 : dim);
    hob_device *device = hob_scope_host(scope)->tensor_device(indices);
    int64_t shape[HOB_MAX_RANK], one[HOB_MAX_RANK];
    hob_tensor *at = hob_cast(scope, indices, HOB_DTYPE_I64);

    memcpy(shape, hob_tensor_shape(indices), axis * sizeof(shape[0]));
    memcpy(shape + axis + 1, hob_tensor_shape(indices) + axis,
           (rank - axis) * sizeof(shape[0]));
    memcpy(one, shape, (rank + 1) * sizeof(one[0]));
    shape[axis] = classes;
    one[axis] = 1;
    at = hob_where(scope, hob_less_scalar(scope, at, hob_i64(0)),
                   hob_add_scalar(scope, at, hob_i64(classes)), at);
    return hob_scatter_add(
        scope, hob_full(scope, shape, rank + 1, hob_f64(off), device, dtype),
        hob_unsqueeze(scope, at, (int64_t)axis),
        hob_full(scope, one, rank + 1, hob_f64(on - off), device, dtype),
        (int64_t)axis);
}

/* ---- vectors and statistics ---- */

/* a x b = (a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0). */
hob_tensor *hob__body_cross(hob_scope *scope, hob_tensor *lhs, hob_tensor *rhs,
                            int64_t dim)
{
    const hob_tensor *longer =
        hob_tensor_rank(lhs) >= hob_tensor_rank(rhs) ? lhs : rhs;
    int64_t back =
        hob_tensor_rank(longer) - (int64_t)hob__part_axis(longer, dim);
    hob_tensor *a[3], *b[3], *parts[3];

    for (uint32_t i = 0; i < 3; i++) {
        a[i] = hob__part_range(
            scope, lhs, (uint32_t)(hob_tensor_rank(lhs) - back), i, i + 1);
        b[i] = hob__part_range(
            scope, rhs, (uint32_t)(hob_tensor_rank(rhs) - back), i, i + 1);
    }
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t j = (i + 1) % 3, k = (i + 2) % 3;

        parts[i] = hob_sub(scope, hob_mul(scope, a[j], b[k]),
                           hob_mul(scope, a[k], b[j]));
    }
    return hob_cat(scope, parts, 3, -back);
}

/* Centred products over the observations, divided by their number less the
 * correction. */
hob_tensor *hob__body_cov(hob_scope *scope, hob_tensor *x, int64_t dim,
                          int64_t correction)
{
    uint32_t axis = hob__part_axis(x, dim);
    int64_t count = hob_tensor_shape(x)[axis];
    hob_dtype dtype = hob_tensor_dtype(x);
    hob_tensor *wide = hob__part_up(scope, x), *centred;

    centred = hob_sub(scope, wide, hob_mean_dim(scope, wide, (int64_t)axis));
    if (axis == 0)
        centred = hob_swap_dims(scope, centred, 0, 1);
    return hob__part_down(
        scope,
        hob_div_scalar(
            scope,
            hob_matmul(scope, centred, hob_swap_dims(scope, centred, 0, 1)),
            hob_f64((double)count - (double)correction)),
        dtype);
}

/* ---- windows, J. O. Smith, "Spectral Audio Signal Processing", ch. 3 ---- */

/* a0 - a1 cos(2 pi n / m) + a2 cos(4 pi n / m), m = SIZE or SIZE - 1; in
 * f64, because f32 has not enough digits for a long window's angles. */
static hob_tensor *cosines(hob_scope *scope, int64_t size, int periodic,
                           hob_device *device, hob_dtype dtype, double a0,
                           double a1, double a2)
{
    const double pi = 3.14159265358979323846;
    int64_t span = periodic ? size : size - 1;
    hob_tensor *n, *angle, *y;

    if (size < 2)
        return hob_ones(scope, &size, 1, device, dtype);
    n = hob_cast(scope, hob_arange(scope, 0, size, 1, device, HOB_DTYPE_I64),
                 HOB_DTYPE_F64);
    angle = hob_mul_scalar(scope, n, hob_f64(2 * pi / (double)span));
    y = hob_add_scalar(
        scope, hob_mul_scalar(scope, hob_cos(scope, angle), hob_f64(-a1)),
        hob_f64(a0));
    if (a2 != 0)
        y = hob_add(
            scope, y,
            hob_mul_scalar(
                scope, hob_cos(scope, hob_mul_scalar(scope, angle, hob_f64(2))),
                hob_f64(a2)));
    return hob__part_down(scope, y, dtype);
}

hob_tensor *hob__body_hann_window(hob_scope *scope, int64_t size, int periodic,
                                  hob_device *device, hob_dtype dtype)
{
    return cosines(scope, size, periodic, device, dtype, 0.5, 0.5, 0);
}

hob_tensor *hob__body_hamming_window(hob_scope *scope, int64_t size,
                                     int periodic, hob_device *device,
                                     hob_dtype dtype)
{
    return cosines(scope, size, periodic, device, dtype, 0.54, 0.46, 0);
}

hob_tensor *hob__body_blackman_window(hob_scope *scope, int64_t size,
                                      int periodic, hob_device *device,
                                      hob_dtype dtype)
{
    return cosines(scope, size, periodic, device, dtype, 0.42, 0.5, 0.08);
}

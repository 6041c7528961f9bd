/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decompose.c - bodies of det, lu and qr: one elimination or reflection a
 * column, on all matrices of a batch at once. They keep to what has a
 * gradient, so theirs follows.
 */
#include "bodies.h"
#include "util.h"

#include <string.h>

/* The matrices of a call as [batch, m, n]. */
struct matrices {
    hob_scope *scope;
    hob_tensor *x; /* f32 or f64 */
    int64_t batch, m, n, k;
    hob_tensor *rows;    /* 0, 1, .. as [1, m, 1] */
    hob_tensor *columns; /* as [1, 1, n] */
};

static hob_tensor *line(hob_scope *scope, hob_tensor *x, int64_t count,
                        int along_rows)
{
    hob_device *device = hob_scope_host(scope)->tensor_device(x);
    int64_t shape[3] = {1, 1, 1};

    shape[along_rows ? 1 : 2] = count;
    return hob_reshape(
        scope, hob_arange(scope, 0, count, 1, device, HOB_DTYPE_I64), shape, 3);
}

static struct matrices matrices_of(hob_scope *scope, hob_tensor *x)
{
    const int64_t *shape = hob_tensor_shape(x);
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    struct matrices a = {.scope = scope};

    a.batch = hob__part_product(shape, rank - 2);
    a.m = shape[rank - 2];
    a.n = shape[rank - 1];
    a.k = a.m < a.n ? a.m : a.n;
    a.x = hob_reshape(scope, hob__part_up(scope, x),
                      (const int64_t[]){a.batch, a.m, a.n}, 3);
    a.rows = line(scope, x, a.m, 1);
    a.columns = line(scope, x, a.n, 0);
    return a;
}

/* RESULT [batch, rows, columns] with X's batch dimensions and dtype. */
static hob_tensor *batched(hob_scope *scope, hob_tensor *result, hob_tensor *x,
                           int64_t rows, int64_t columns)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t shape[HOB_MAX_RANK];

    memcpy(shape, hob_tensor_shape(x), rank * sizeof(shape[0]));
    shape[rank - 2] = rows;
    shape[rank - 1] = columns;
    result = hob_reshape(scope, result, shape, rank);
    return hob__part_down(scope, result, hob_tensor_dtype(x));
}

/* Y, with 1 where it is 0: to divide by. */
static hob_tensor *no_zero(hob_scope *scope, hob_tensor *y)
{
    return hob_where(scope, hob_equal_scalar(scope, y, hob_i64(0)),
                     hob__part_constant(scope, y, hob_i64(1)), y);
}

/* LINE (0, 1, ..) with AT and OTHER exchanged. */
static hob_tensor *exchanged(hob_scope *scope, hob_tensor *numbers, int64_t at,
                             hob_tensor *other)
{
    hob_tensor *place = hob__part_constant(scope, numbers, hob_i64(at));

    return hob_where(
        scope, hob_equal_scalar(scope, numbers, hob_i64(at)), other,
        hob_where(scope, hob_equal(scope, numbers, other), place, numbers));
}

/* ---- det ---- */

/* Element I, J of all matrices X: [batch, 1, 1]. */
static hob_tensor *element(hob_scope *scope, hob_tensor *x, int64_t i,
                           int64_t j)
{
    return hob__part_range(scope, hob__part_range(scope, x, 1, i, i + 1), 2, j,
                           j + 1);
}

/*
 * Bring the greatest of all elements of X [batch, M, M] to the front; what is
 * returned is -1 or 1, the sign of the exchanges.
 */
static hob_tensor *pivot_both(hob_scope *scope, hob_tensor **x, int64_t batch,
                              int64_t m)
{
    int64_t whole[3] = {batch, m, m}, flat[2] = {batch, m * m};
    int64_t one[3] = {batch, 1, 1};
    hob_tensor *sizes = hob_reshape(scope, hob_abs(scope, *x), flat, 2);
    hob_tensor *at =
        hob_reshape(scope, hob_argmax(scope, sizes, 1, HOB_DTYPE_I64), one, 3);
    hob_tensor *row = hob_div_scalar(scope, at, hob_i64(m));
    hob_tensor *column = hob_remainder_scalar(scope, at, hob_i64(m));
    hob_tensor *order = exchanged(scope, line(scope, *x, m, 1), 0, row);
    hob_tensor *is_even;

    *x = hob_gather(scope, *x, hob_expand(scope, order, whole, 3), 1);
    order = exchanged(scope, line(scope, *x, m, 0), 0, column);
    *x = hob_gather(scope, *x, hob_expand(scope, order, whole, 3), 2);
    is_even = hob_equal(scope, hob_equal_scalar(scope, row, hob_i64(0)),
                        hob_equal_scalar(scope, column, hob_i64(0)));
    return hob_where(scope, is_even, hob__part_constant(scope, *x, hob_i64(1)),
                     hob__part_constant(scope, *x, hob_i64(-1)));
}

/*
 * With the greatest of all remaining elements as pivot, one that is 0 means
 * that all remaining are. So nothing is divided by 0 that matters, and the
 * gradient, which is that of the products, is right at singular matrices; the
 * second one too, down to where three rows are missing.
 */
hob_tensor *hob__body_det(hob_scope *scope, hob_tensor *x)
{
    struct matrices a = matrices_of(scope, x);
    hob_tensor *product = hob__part_full(
        scope, a.x, (const int64_t[]){a.batch, 1, 1}, 3, hob_i64(1));
    int64_t m = a.n;

    for (; m > 2; m--) {
        hob_tensor *sign = pivot_both(scope, &a.x, a.batch, m);
        hob_tensor *pivot = element(scope, a.x, 0, 0);
        hob_tensor *rest = hob__part_range(scope, a.x, 1, 1, m);
        hob_tensor *top = hob__part_range(
            scope, hob__part_range(scope, a.x, 1, 0, 1), 2, 1, m);

        product = hob_mul(scope, product, hob_mul(scope, sign, pivot));
        top = hob_div(scope, top, no_zero(scope, pivot));
        a.x =
            hob_sub(scope, hob__part_range(scope, rest, 2, 1, m),
                    hob_mul(scope, hob__part_range(scope, rest, 2, 0, 1), top));
    }
    if (m == 2)
        product = hob_mul(scope, product,
                          hob_sub(scope,
                                  hob_mul(scope, element(scope, a.x, 0, 0),
                                          element(scope, a.x, 1, 1)),
                                  hob_mul(scope, element(scope, a.x, 0, 1),
                                          element(scope, a.x, 1, 0))));
    if (m == 1)
        product = hob_mul(scope, product, a.x);
    product = hob_reshape(scope, product, hob_tensor_shape(x),
                          (uint32_t)hob_tensor_rank(x) - 2);
    return hob__part_down(scope, product, hob_tensor_dtype(x));
}

/* ---- lu ---- */

/* Bring the greatest of column J from row J on to row J; ORDER, the rows' old
 * places, follows. */
static void pivot_rows(struct matrices *a, hob_tensor **order, int64_t j)
{
    hob_scope *scope = a->scope;
    hob_tensor *column = hob__part_range(scope, a->x, 2, j, j + 1);
    hob_tensor *at = hob_argmax(
        scope, hob_abs(scope, hob__part_range(scope, column, 1, j, a->m)), 1,
        HOB_DTYPE_I64);
    hob_tensor *moved =
        exchanged(scope, a->rows, j, hob_add_scalar(scope, at, hob_i64(j)));

    *order = hob_gather(scope, *order, moved, 1);
    moved =
        hob_expand(scope, moved, (const int64_t[]){a->batch, a->m, a->n}, 3);
    a->x = hob_gather(scope, a->x, moved, 1);
}

/* Subtract multiples of row J from those below, and keep the multiples where
 * they made zeros. */
static void eliminate(struct matrices *a, int64_t j)
{
    hob_scope *scope = a->scope;
    hob_tensor *zero = hob__part_constant(scope, a->x, hob_i64(0));
    hob_tensor *below = hob_greater_scalar(scope, a->rows, hob_i64(j));
    hob_tensor *right = hob_greater_scalar(scope, a->columns, hob_i64(j));
    hob_tensor *column = hob__part_range(scope, a->x, 2, j, j + 1);
    hob_tensor *row = hob__part_range(scope, a->x, 1, j, j + 1);
    hob_tensor *pivot = hob__part_range(scope, column, 1, j, j + 1);
    hob_tensor *factor = hob_where(
        scope, below, hob_div(scope, column, no_zero(scope, pivot)), zero);
    hob_tensor *here = hob_logical_and(
        scope, below, hob_equal_scalar(scope, a->columns, hob_i64(j)));

    row = hob_where(scope, right, row, zero);
    a->x = hob_sub(scope, a->x, hob_mul(scope, factor, row));
    a->x = hob_where(scope, here, factor, a->x);
}

hob_status hob__body_lu(hob_scope *scope, hob_tensor *x, hob_tensor **out_0,
                        hob_tensor **out_1, hob_tensor **out_2)
{
    struct matrices a = matrices_of(scope, x);
    hob_tensor *order =
        hob_expand(scope, a.rows, (const int64_t[]){a.batch, a.m, 1}, 3);
    hob_tensor *p, *l, *u;

    for (int64_t j = 0; j < a.k; j++) {
        pivot_rows(&a, &order, j);
        eliminate(&a, j);
    }
    /* Row i of L U is row order[i] of x. */
    p = hob_equal(scope, a.rows, hob_swap_dims(scope, order, 1, 2));
    p = hob_cast(scope, p, hob_tensor_dtype(a.x));
    l = hob_where(scope, hob_equal(scope, a.rows, line(scope, x, a.k, 0)),
                  hob__part_constant(scope, a.x, hob_i64(1)),
                  hob_tril(scope, hob__part_range(scope, a.x, 2, 0, a.k), -1));
    u = hob_triu(scope, hob__part_range(scope, a.x, 1, 0, a.k), 0);
    *out_0 = batched(scope, p, x, a.m, a.m);
    *out_1 = batched(scope, l, x, a.m, a.k);
    *out_2 = batched(scope, u, x, a.k, a.n);
    return hob_scope_host(scope)->scope_status(scope);
}

/* ---- qr ---- */

/*
 * A reflection takes column j from row j on to its first element: it is
 * 1 - 2 v v' / v'v, v being 1 at row j and 0 before. What v has behind stands
 * in the column where the zeros would.
 */
static hob_tensor *reflector(const struct matrices *a, int64_t j,
                             hob_tensor *column)
{
    hob_scope *scope = a->scope;
    hob_tensor *at =
        hob_cast(scope, hob_equal_scalar(scope, a->rows, hob_i64(j)),
                 hob_tensor_dtype(a->x));

    return hob_where(scope, hob_greater_scalar(scope, a->rows, hob_i64(j)),
                     column, at);
}

/* Y, reflected by V. */
static hob_tensor *reflect(hob_scope *scope, hob_tensor *y, hob_tensor *v)
{
    hob_tensor *square = hob_sum_dim(scope, hob_square(scope, v), 1);
    hob_tensor *scaled =
        hob_div(scope, hob_mul_scalar(scope, v, hob_i64(2)), square);
    hob_tensor *flat = hob_swap_dims(scope, v, 1, 2);

    return hob_sub(scope, y,
                   hob_matmul(scope, scaled, hob_matmul(scope, flat, y)));
}

/* Reflect column J to its first element, and all columns behind with it. */
static void reflect_column(struct matrices *a, int64_t j)
{
    hob_scope *scope = a->scope;
    hob_tensor *rest = hob__part_range(scope, a->x, 2, j, a->n);
    hob_tensor *column = hob__part_range(scope, rest, 2, 0, 1);
    hob_tensor *first = hob__part_range(scope, column, 1, j, j + 1);
    hob_tensor *before = hob_less_scalar(scope, a->rows, hob_i64(j));
    hob_tensor *below = hob_greater_scalar(scope, a->rows, hob_i64(j));
    hob_tensor *length, *v, *parts[3];
    uint32_t count = 0;

    length = hob_where(scope, before,
                       hob__part_constant(scope, a->x, hob_i64(0)), column);
    length = hob_sum_dim(scope, hob_square(scope, length), 1);
    length = hob__part_root(scope, length, 2);
    /* Away from 0, so that nothing cancels. */
    length = hob_where(scope, hob_less_scalar(scope, first, hob_i64(0)),
                       hob_neg(scope, length), length);
    length = no_zero(scope, hob_add(scope, first, length));
    v = reflector(a, j, hob_div(scope, column, length));
    rest = reflect(scope, rest, v);
    if (j > 0)
        parts[count++] = hob__part_range(scope, a->x, 2, 0, j);
    parts[count++] =
        hob_where(scope, below, v, hob__part_range(scope, rest, 2, 0, 1));
    if (j + 1 < a->n)
        parts[count++] = hob__part_range(scope, rest, 2, 1, a->n - j);
    a->x = hob_cat(scope, parts, count, 2);
}

/* 1 or -1 for each of COUNT rows of R, so that its diagonal becomes positive:
 * [batch, count, 1]. */
static hob_tensor *row_signs(const struct matrices *a, hob_tensor *r,
                             int64_t count)
{
    hob_scope *scope = a->scope;
    hob_tensor *one = hob__part_constant(scope, a->x, hob_i64(1));
    hob_tensor *parts[2];

    parts[0] = hob_unsqueeze(scope, hob_diagonal(scope, r, 0), 2);
    parts[0] = hob_where(scope, hob_less_scalar(scope, parts[0], hob_i64(0)),
                         hob__part_constant(scope, a->x, hob_i64(-1)), one);
    if (count == a->k)
        return parts[0];
    parts[1] =
        hob_expand(scope, one, (const int64_t[]){a->batch, count - a->k, 1}, 3);
    return hob_cat(scope, parts, 2, 1);
}

hob_status hob__body_qr(hob_scope *scope, hob_tensor *x, int reduced,
                        hob_tensor **out_0, hob_tensor **out_1)
{
    struct matrices a = matrices_of(scope, x);
    int64_t count = reduced ? a.k : a.m;
    int64_t steps = a.n < a.m ? a.n : a.m - 1; /* one row is as it should be */
    hob_tensor *q, *r, *signs;

    for (int64_t j = 0; j < steps; j++)
        reflect_column(&a, j);
    q = hob_cast(scope, hob_equal(scope, a.rows, line(scope, x, count, 0)),
                 hob_tensor_dtype(a.x));
    q = hob_expand(scope, q, (const int64_t[]){a.batch, a.m, count}, 3);
    for (int64_t j = steps - 1; j >= 0; j--)
        q = reflect(scope, q,
                    reflector(&a, j, hob__part_range(scope, a.x, 2, j, j + 1)));
    r = hob_triu(scope, hob__part_range(scope, a.x, 1, 0, count), 0);
    signs = row_signs(&a, r, count);
    q = hob_mul(scope, q, hob_swap_dims(scope, signs, 1, 2));
    *out_0 = batched(scope, q, x, a.m, count);
    *out_1 = batched(scope, hob_mul(scope, r, signs), x, count, a.n);
    return hob_scope_host(scope)->scope_status(scope);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c - bodies of the real Fourier transforms.
 *
 * A product with the matrix of roots of unity: n^2 steps, any length. The
 * angles are 2 pi (j k mod n) / n, so that they are as exact for a long
 * transform as for a short one.
 */
#include "bodies.h"
#include "util.h"

#include <string.h>

static const double two_pi = 6.28318530717958647693;

/* cos or sin of 2 pi j k / n, [rows, columns] of DTYPE. */
static hob_tensor *roots(hob_scope *scope, hob_tensor *x, int64_t rows,
                         int64_t columns, int64_t n, int is_sine)
{
    hob_device *device = hob_scope_host(scope)->tensor_device(x);
    hob_tensor *j = hob_unsqueeze(
        scope, hob_arange(scope, 0, rows, 1, device, HOB_DTYPE_I64), 1);
    hob_tensor *k = hob_arange(scope, 0, columns, 1, device, HOB_DTYPE_I64);
    hob_tensor *turn =
        hob_remainder_scalar(scope, hob_mul(scope, j, k), hob_i64(n));
    hob_tensor *angle =
        hob_mul_scalar(scope, hob_cast(scope, turn, hob_tensor_dtype(x)),
                       hob_f64(two_pi / (double)n));

    return is_sine ? hob_sin(scope, angle) : hob_cos(scope, angle);
}

/* X with LENGTH elements along AXIS, cut or with zeros behind; AXIS last. */
static hob_tensor *lines(hob_scope *scope, hob_tensor *x, const int64_t *shape,
                         uint32_t rank, uint32_t axis, int64_t length)
{
    int64_t padding[2 * HOB_MAX_RANK] = {0};
    uint32_t pair = rank - 1 - axis;

    padding[2 * pair + 1] = length - shape[axis];
    if (padding[2 * pair + 1])
        x = hob_pad(scope, x, padding, 2 * (pair + 1), HOB_PAD_MODE_CONSTANT,
                    hob_i64(0));
    return hob_swap_dims(scope, x, (int64_t)axis, -1);
}

/* X [.., a] times MATRIX [a, b]; the last dimension goes back to AXIS. */
static hob_tensor *transformed(hob_scope *scope, hob_tensor *x,
                               hob_tensor *matrix, uint32_t rank, uint32_t axis)
{
    /* A matrix for a vector, too: leading sizes broadcast. */
    if (rank == 1)
        return hob__part_flat(
            scope, hob_matmul(scope, hob_unsqueeze(scope, x, 0), matrix));
    return hob_swap_dims(scope, hob_matmul(scope, x, matrix), (int64_t)axis,
                         -1);
}

hob_status hob__body_rfft(hob_scope *scope, hob_tensor *x, int64_t dim,
                          hob_scalar n, hob_tensor **out_re,
                          hob_tensor **out_im)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x), axis = hob__part_axis(x, dim);
    int64_t shape[HOB_MAX_RANK], length;
    hob_dtype dtype = hob_tensor_dtype(x);
    hob_tensor *v = hob__part_up(scope, x), *along;

    memcpy(shape, hob_tensor_shape(x), rank * sizeof(shape[0]));
    length = n.tag == HOB_TAG_ABSENT ? shape[axis] : n.u.i64;
    along = lines(scope, v, shape, rank, axis, length);
    *out_re = hob__part_down(
        scope,
        transformed(scope, along,
                    roots(scope, v, length, length / 2 + 1, length, 0), rank,
                    axis),
        dtype);
    *out_im = hob__part_down(
        scope,
        hob_neg(scope,
                transformed(scope, along,
                            roots(scope, v, length, length / 2 + 1, length, 1),
                            rank, axis)),
        dtype);
    return hob_scope_host(scope)->scope_status(scope);
}

/*
 * The sum over half a spectrum, in which what has a twin in the other half
 * counts twice: all but the first and, of an even length, the middle one.
 */
hob_tensor *hob__body_irfft(hob_scope *scope, hob_tensor *re, hob_tensor *im,
                            int64_t dim, hob_scalar n)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(re);
    uint32_t axis = hob__part_axis(re, dim);
    int64_t shape[HOB_MAX_RANK], length, half;
    hob_dtype dtype = hob_tensor_dtype(re);
    hob_tensor *a = hob__part_up(scope, re), *b = hob__part_up(scope, im);
    hob_device *device = hob_scope_host(scope)->tensor_device(re);
    hob_tensor *k, *has_twin, *twins, *y;

    memcpy(shape, hob_tensor_shape(re), rank * sizeof(shape[0]));
    length = n.tag == HOB_TAG_ABSENT ? 2 * (shape[axis] - 1) : n.u.i64;
    half = length / 2 + 1;
    k = hob_arange(scope, 0, half, 1, device, HOB_DTYPE_I64);
    has_twin = hob_logical_and(
        scope, hob_greater_scalar(scope, k, hob_i64(0)),
        hob_not_equal_scalar(scope, hob_mul_scalar(scope, k, hob_i64(2)),
                             hob_i64(length)));
    twins =
        hob_add_scalar(scope, hob_cast(scope, has_twin, hob_tensor_dtype(a)),
                       hob_i64(1));
    a = hob_mul(scope, lines(scope, a, shape, rank, axis, half), twins);
    b = hob_mul(scope, lines(scope, b, shape, rank, axis, half), twins);
    /* Their sines are 0, or nearly: a NaN would be one all the same. */
    b = hob_mask_fill(scope, b, hob_logical_not(scope, has_twin), hob_f64(0));
    y = hob_sub(scope,
                transformed(scope, a, roots(scope, a, half, length, length, 0),
                            rank, axis),
                transformed(scope, b, roots(scope, b, half, length, length, 1),
                            rank, axis));
    return hob__part_down(scope, hob_div_scalar(scope, y, hob_i64(length)),
                          dtype);
}

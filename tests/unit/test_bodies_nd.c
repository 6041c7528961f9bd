/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running extrema, updates at positions, positions of what is not zero,
 * medians, variances and norms: bodies and kernels against loops in double.
 */
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

static int on_device(int which)
{
    op_fixture_open(&f, which);
    return f.device != NULL;
}

/* Whether the ops that check positions have kernels on device WHICH: the
 * reference has none, and other devices than flex need not. */
static int has_kernel(int which)
{
    return which && test_device_is_flex();
}

/* The scope's error is STATUS and its message that of PART, "op: text", a
 * part of which may be enough; forget it. Without PART where a body leaves the
 * message to another op. */
static void fails(const char *what, hob_status status, const char *part)
{
    hob_error error = HOB_ERROR_INIT;
    const char *text = part ? strchr(part, ':') : NULL;

    ck_assert_msg(op_failure(&f, &error) == status, "%s: %s", what,
                  error.message ? error.message : "no error");
    if (part)
        ck_assert_msg(!strncmp(error.message, part, (size_t)(text - part)) &&
                          strstr(error.message, text),
                      "%s: \"%s\" is not in \"%s\"", what, part, error.message);
    hob_error_release(&error);
}

/* COUNT small numbers that every dtype holds; of bool 0 and 1. */
static void numbers(uint64_t *state, hob_dtype dtype, double *out,
                    int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double x = floor(op_random(state) * 4);

        if (HOB_DTYPE_BIT(dtype) & (HOB_MASK_UNSIGNED | HOB_MASK_BOOL))
            x = fabs(x);
        out[i] = dtype == HOB_DTYPE_BOOL ? x > 1 : x;
    }
}

/* ---- running extrema ---- */

START_TEST(test_nd_running_extrema)
{
    enum { ROWS = 3, N = 13 };
    uint64_t state = 5;

    if (!on_device(_i))
        return;
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype < HOB_DTYPE_BOOL; dtype++) {
        int64_t shape[] = {N, ROWS};
        double in[N * ROWS], most[N * ROWS], least[N * ROWS];
        hob_tensor *x;

        numbers(&state, dtype, in, N * ROWS);
        if (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) {
            in[4 * ROWS + 1] = NAN;
            in[2 * ROWS + 2] = -INFINITY;
        }
        for (int r = 0; r < ROWS; r++)
            for (int i = 0; i < N; i++) {
                int at = i * ROWS + r, before = i ? at - ROWS : at;
                double x_at = in[at];
                int nan = isnan(x_at) || isnan(most[before]);

                most[at] = i == 0 ? x_at : nan ? NAN : fmax(most[before], x_at);
                least[at] = i == 0 ? x_at
                            : nan  ? NAN
                                   : fmin(least[before], x_at);
            }
        x = op_tensor(&f, dtype, in, shape, 2);
        op_check(&f, "cummax", hob_cummax(f.scope, x, 0), most, N * ROWS, 0);
        op_check(&f, "cummin", hob_cummin(f.scope, x, -2), least, N * ROWS, 0);
        /* The same along the fast dimension of a view. */
        x = hob_swap_dims(f.scope, x, 0, 1);
        op_check(&f, "cummax of a view",
                 hob_swap_dims(f.scope, hob_cummax(f.scope, x, 1), 0, 1), most,
                 N * ROWS, 0);
        op_check(&f, "cummin of a view",
                 hob_swap_dims(f.scope, hob_cummin(f.scope, x, -1), 0, 1),
                 least, N * ROWS, 0);
    }
    {
        int64_t empty[] = {2, 0};
        hob_tensor *x = op_tensor(&f, HOB_DTYPE_F32, NULL, empty, 2);

        ck_assert_int_eq(hob_tensor_count(hob_cummax(f.scope, x, 1)), 0);
        (void)hob_cummin(f.scope, x, 2);
        fails("dim", HOB_ERR_RANGE, "cummin: dim 2 is out of range");
    }
}
END_TEST

/* More elements than a block of the kernels, so that the carry counts. */
START_TEST(test_nd_running_extrema_of_long_rows)
{
    enum { N = 9001 };
    static double in[N], most[N];
    double greatest = -INFINITY;
    uint64_t state = 11;
    hob_tensor *x;

    if (!on_device(_i))
        return;
    for (int i = 0; i < N; i++) {
        in[i] = floor(op_random(&state) * 30000) - 5 + i * 0.0;
        greatest = fmax(greatest, in[i]);
        most[i] = greatest;
    }
    x = op_vector(&f, HOB_DTYPE_I16, in, N);
    op_check(&f, "cummax i16", hob_cummax(f.scope, x, 0), most, N, 0);
    x = hob_unsqueeze(f.scope, op_vector(&f, HOB_DTYPE_F32, in, N), 1);
    op_check(&f, "cummax f32", hob_cummax(f.scope, x, 0), most, N, 0);
}
END_TEST

/* ---- scatter ---- */

static double update_of(int update, double x, double value, hob_dtype dtype)
{
    int is_bool = dtype == HOB_DTYPE_BOOL;

    switch (update) {
    case HOB_SCATTER_UPDATE_ADD:
        return is_bool ? (x != 0 || value != 0) : x + value;
    case HOB_SCATTER_UPDATE_MUL:
        return x * value;
    case HOB_SCATTER_UPDATE_MIN:
        return isnan(x) || isnan(value) ? NAN : fmin(x, value);
    case HOB_SCATTER_UPDATE_MAX:
        return isnan(x) || isnan(value) ? NAN : fmax(x, value);
    default:
        return value;
    }
}

/* VALUE as an integer of DTYPE holds it. */
static double wrapped(hob_dtype dtype, double value)
{
    uint32_t bits = 8 * hob_dtype_size(dtype);
    double span = ldexp(1, (int)bits);

    /* Nothing here is as large as 64 bits. */
    if (!(HOB_DTYPE_BIT(dtype) & HOB_MASK_INT) || bits == 64)
        return value;
    value -= floor(value / span) * span;
    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED && value >= span / 2)
        value -= span;
    return value;
}

START_TEST(test_nd_scatter_updates)
{
    int64_t x_shape[] = {3, 5, 2}, v_shape[] = {2, 7, 2};
    double at[28], x_data[30], v_data[28], expected[30];
    uint64_t state = 17;

    if (!on_device(_i))
        return;
    for (int i = 0; i < 28; i++)
        at[i] = floor((op_random(&state) + 1) * 2.5);
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (int update = 0; update < 5; update++) {
            hob_tensor *x, *indices, *value, *y;
            char what[64];

            if (test_device_skips(dtype, update, 5))
                continue;
            numbers(&state, dtype, x_data, 30);
            numbers(&state, dtype, v_data, 28);
            if (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT)
                v_data[3] = NAN;
            memcpy(expected, x_data, sizeof(expected));
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 7; j++)
                    for (int k = 0; k < 2; k++) {
                        int from = (i * 7 + j) * 2 + k;
                        int to = (i * 5 + (int)at[from]) * 2 + k;

                        expected[to] =
                            wrapped(dtype, update_of(update, expected[to],
                                                     v_data[from], dtype));
                    }
            x = op_tensor(&f, dtype, x_data, x_shape, 3);
            value = op_tensor(&f, dtype, v_data, v_shape, 3);
            indices = op_tensor(&f, update % 2 ? HOB_DTYPE_I32 : HOB_DTYPE_U8,
                                at, v_shape, 3);
            y = hob_scatter(f.scope, x, indices, value, 1,
                            (enum hob_scatter_update)update);
            snprintf(what, sizeof(what), "scatter %d %s", update,
                     hob_dtype_name(dtype));
            op_check(&f, what, y, expected, 30, 0);
        }
}
END_TEST

START_TEST(test_nd_select_assign_updates)
{
    int64_t x_shape[] = {2, 3, 2}, v_shape[] = {2, 4, 2};
    double at[] = {2, 0, 2, 2}, x_data[12], v_data[16], expected[12];
    uint64_t state = 23;

    if (!on_device(_i))
        return;
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (int update = 0; update < 5; update++) {
            hob_tensor *y;
            char what[64];

            if (test_device_skips(dtype, update, 5))
                continue;
            numbers(&state, dtype, x_data, 12);
            numbers(&state, dtype, v_data, 16);
            memcpy(expected, x_data, sizeof(expected));
            for (int i = 0; i < 16; i++) {
                int row = i / 8, j = i / 2 % 4;
                int to = (row * 3 + (int)at[j]) * 2 + i % 2;

                expected[to] = wrapped(
                    dtype, update_of(update, expected[to], v_data[i], dtype));
            }
            y = hob_select_assign(f.scope,
                                  op_tensor(&f, dtype, x_data, x_shape, 3),
                                  op_vector(&f, HOB_DTYPE_I64, at, 4),
                                  op_tensor(&f, dtype, v_data, v_shape, 3), -2,
                                  (enum hob_select_assign_update)update);
            snprintf(what, sizeof(what), "select_assign %d %s", update,
                     hob_dtype_name(dtype));
            op_check(&f, what, y, expected, 12, 0);
        }
}
END_TEST

/* A product of halves is rounded once: 2^-14 squared is lost in f16, and comes
 * back times 2^14. A -0 that is assigned keeps its sign. */
START_TEST(test_nd_scatter_is_exact)
{
    double got[2];
    hob_tensor *x, *at, *value;

    if (!on_device(_i))
        return;
    x = op_vector(&f, HOB_DTYPE_F16, (double[]){1, 1}, 2);
    at = op_vector(&f, HOB_DTYPE_I32, (double[]){1, 1, 1, 1}, 4);
    value = op_vector(
        &f, HOB_DTYPE_F16,
        (double[]){ldexp(1, -14), ldexp(1, -14), ldexp(1, 14), ldexp(1, 14)},
        4);
    op_check(&f, "product of halves",
             hob_scatter(f.scope, x, at, value, 0, HOB_SCATTER_UPDATE_MUL),
             (double[]){1, 1}, 2, 0);
    x = op_vector(&f, HOB_DTYPE_F32, (double[]){1, 1}, 2);
    at = op_vector(&f, HOB_DTYPE_I32, (double[]){0}, 1);
    value = op_vector(&f, HOB_DTYPE_F32, (double[]){-0.0}, 1);
    op_read(&f,
            hob_scatter(f.scope, x, at, value, 0, HOB_SCATTER_UPDATE_ASSIGN),
            got, 2);
    ck_assert(got[0] == 0 && signbit(got[0]) && got[1] == 1);
}
END_TEST

/* A device may know that indices are good: not of other ones at the same place,
 * nor for a tensor of fewer elements. */
START_TEST(test_nd_indices_that_were_good)
{
    const char *const text =
        has_kernel(_i) ? "select: indices[1] is 10, outside of 0..9" : NULL;
    double numbers[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const int32_t good[] = {0, 9, 3};
    const int64_t count = 3;
    hob_tensor *x, *few, *at, *classes;

    if (!on_device(_i))
        return;
    x = op_vector(&f, HOB_DTYPE_F32, numbers, 10);
    few = op_vector(&f, HOB_DTYPE_F32, numbers, 9);
    at = hob_from_i32(f.scope, f.device, good, &count, 1);
    for (int i = 0; i < 2; i++)
        op_check(&f, "good", hob_select(f.scope, x, at, 0),
                 (double[]){0, 9, 3}, 3, 0);
    (void)hob_select(f.scope, few, at, 0);
    fails("fewer elements", HOB_ERR_RANGE, NULL);
    op_check(&f, "good again", hob_select(f.scope, x, at, 0),
             (double[]){0, 9, 3}, 3, 0);
    at = hob_add_scalar(f.scope, hob_move(f.scope, at), hob_i64(1));
    (void)hob_select(f.scope, x, at, 0);
    fails("in place", HOB_ERR_RANGE, text);
    for (int i = 0; i < 4; i++) { /* memory that is given back and taken */
        const int32_t bad[] = {0, i % 2 ? 10 : 5, 3};
        hob_scope *scope = hob_scope_child(f.scope);

        at = hob_from_i32(scope, f.device, bad, &count, 1);
        at = hob_select(f.scope, x, at, 0);
        if (i % 2)
            fails("given back", HOB_ERR_RANGE, text);
        else
            op_check(&f, "given back", at, (double[]){0, 5, 3}, 3, 0);
        hob_scope_close(scope);
    }
    /* What one op found good is known to the next, on the device itself. */
    classes = op_vector(&f, HOB_DTYPE_I64, (double[]){1, 0, 2}, 3);
    classes = hob_add_scalar(f.scope, classes, hob_i64(0));
    for (int i = 0; i < 2; i++)
        op_check(&f, "classes", hob_select(f.scope, x, classes, 0),
                 (double[]){1, 0, 2}, 3, 0);
    classes = hob_mul_scalar(f.scope, hob_move(f.scope, classes), hob_i64(10));
    (void)hob_select(f.scope, x, classes, 0);
    fails("multiplied", HOB_ERR_RANGE, NULL);
}
END_TEST

START_TEST(test_nd_scatter_refuses)
{
    int64_t shape[] = {2, 3}, none[] = {0, 3};
    double zeros[6] = {0};
    hob_tensor *x, *at, *value;

    if (!on_device(_i))
        return;
    x = op_tensor(&f, HOB_DTYPE_F32, zeros, shape, 2);
    at = op_tensor(&f, HOB_DTYPE_I32, (double[]){0, 1, 2, 0, 3, 1}, shape, 2);
    for (int update = 0; update < 5; update++) {
        (void)hob_scatter(f.scope, x, at, x, 1,
                          (enum hob_scatter_update)update);
        fails("scatter", HOB_ERR_RANGE,
              has_kernel(_i) ? "scatter: indices[1, 1] is 3, outside of 0..2" : NULL);
    }
    at = op_vector(&f, HOB_DTYPE_I32, (double[]){-1, 0}, 2);
    (void)hob_select_assign(f.scope, x, at, x, 0, HOB_SELECT_ASSIGN_UPDATE_MAX);
    fails("select_assign", HOB_ERR_RANGE,
          has_kernel(_i) ? "select_assign: indices[0] is -1" : NULL);
    value = op_tensor(&f, HOB_DTYPE_F32, zeros, none, 2);
    (void)hob_select_assign(f.scope, x, at, value, 0,
                            HOB_SELECT_ASSIGN_UPDATE_ASSIGN);
    fails("value", HOB_ERR_SHAPE,
          "select_assign: value is f32[0,3]; it must have the shape of the "
          "selected slices, [2,3]");
    /* Nothing to do, on nothing. */
    x = op_tensor(&f, HOB_DTYPE_F32, zeros, none, 2);
    at = op_tensor(&f, HOB_DTYPE_I32, zeros, none, 2);
    ck_assert_int_eq(hob_tensor_count(hob_scatter(f.scope, x, at, x, 0,
                                                  HOB_SCATTER_UPDATE_MUL)),
                     0);
}
END_TEST

/* ---- coordinates ---- */

START_TEST(test_nd_gather_nd)
{
    int64_t shape[] = {2, 3, 4}, rows[] = {2, 3, 2}, all[] = {2, 3};
    double at[] = {0, 0, 1, 2, 0, 2, 1, 0, 0, 1, 1, 2}, data[24], expected[24];
    hob_tensor *x, *view;

    if (!on_device(_i))
        return;
    for (int i = 0; i < 24; i++)
        data[i] = i;
    for (int i = 0; i < 24; i++)
        expected[i] =
            data[((int)at[i / 4 * 2] * 3 + (int)at[i / 4 * 2 + 1]) * 4 + i % 4];
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype < HOB_DTYPE_BOOL; dtype++) {
        x = op_tensor(&f, dtype, data, shape, 3);
        op_check(&f, "gather_nd",
                 hob_gather_nd(f.scope, x,
                               op_tensor(&f, HOB_DTYPE_I32, at, rows, 3)),
                 expected, 24, 0);
        /* As a view that is neither row-major nor forward. */
        view = hob_flip(
            f.scope,
            hob_contiguous(
                f.scope,
                hob_swap_dims(f.scope, hob_flip(f.scope, x, (int64_t[]){1}, 1),
                              0, 2)),
            (int64_t[]){1}, 1);
        view = hob_swap_dims(f.scope, view, 0, 2);
        op_check(&f, "gather_nd of a view",
                 hob_gather_nd(f.scope, view,
                               op_tensor(&f, HOB_DTYPE_I64, at, rows, 3)),
                 expected, 24, 0);
    }
    x = op_tensor(&f, HOB_DTYPE_F32, data, shape, 3);
    op_check(&f, "whole coordinates",
             hob_gather_nd(f.scope, x,
                           op_tensor(&f, HOB_DTYPE_U16,
                                     (double[]){1, 2, 3, 0, 1, 2}, all, 2)),
             (double[]){23, 6}, 2, 0);
}
END_TEST

START_TEST(test_nd_scatter_nd)
{
    int64_t shape[] = {2, 3, 2}, rows[] = {4, 2}, v_shape[] = {4, 2};
    double at[] = {1, 2, 0, 0, 1, 2, 1, 2}, x_data[12], v_data[8], expected[12];
    uint64_t state = 31;

    if (!on_device(_i))
        return;
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (int update = 0; update < 5; update++) {
            hob_tensor *y;
            char what[64];

            if (test_device_skips(dtype, update, 5))
                continue;
            numbers(&state, dtype, x_data, 12);
            numbers(&state, dtype, v_data, 8);
            memcpy(expected, x_data, sizeof(expected));
            for (int i = 0; i < 8; i++) {
                int row = i / 2;
                int to =
                    ((int)at[2 * row] * 3 + (int)at[2 * row + 1]) * 2 + i % 2;

                expected[to] = wrapped(
                    dtype, update_of(update, expected[to], v_data[i], dtype));
            }
            y = hob_scatter_nd(f.scope, op_tensor(&f, dtype, x_data, shape, 3),
                               op_tensor(&f, HOB_DTYPE_I32, at, rows, 2),
                               op_tensor(&f, dtype, v_data, v_shape, 2),
                               (enum hob_scatter_nd_update)update);
            snprintf(what, sizeof(what), "scatter_nd %d %s", update,
                     hob_dtype_name(dtype));
            op_check(&f, what, y, expected, 12, 0);
        }
}
END_TEST

/* Row 0, column 3 of [2, 3] is no element, though a flat index would find
 * one: every coordinate is checked for itself. */
START_TEST(test_nd_coordinates_are_checked_one_by_one)
{
    int64_t shape[] = {2, 3}, pair[] = {2, 2}, wide[] = {1, 3}, none[] = {0, 2};
    double zeros[6] = {0};
    hob_tensor *x, *at, *value;

    if (!on_device(_i))
        return;
    x = op_tensor(&f, HOB_DTYPE_F32, zeros, shape, 2);
    value = op_vector(&f, HOB_DTYPE_F32, zeros, 2);
    at = op_tensor(&f, HOB_DTYPE_I32, (double[]){1, 0, 0, 3}, pair, 2);
    (void)hob_gather_nd(f.scope, x, at);
    fails("column", HOB_ERR_RANGE,
          has_kernel(_i) ? "gather_nd: indices[1, 1] is 3, outside of 0..2, dimension 1 "
               "of x"
             : NULL);
    at = op_tensor(&f, HOB_DTYPE_I64, (double[]){1, -1, 0, 0}, pair, 2);
    (void)hob_gather_nd(f.scope, x, at);
    fails("negative", HOB_ERR_RANGE,
          has_kernel(_i) ? "gather_nd: indices[0, 1] is -1" : NULL);
    (void)hob_scatter_nd(f.scope, x, at, value, HOB_SCATTER_ND_UPDATE_ADD);
    fails("negative", HOB_ERR_RANGE, has_kernel(_i) ? "scatter_nd: indices[0, 1]" : NULL);
    at = op_tensor(&f, HOB_DTYPE_I32, zeros, wide, 2);
    (void)hob_gather_nd(f.scope, x, at);
    fails("too many", HOB_ERR_SHAPE,
          "gather_nd: indices is i32[1,3], x is f32[2,3]; the last size of "
          "indices counts coordinates and must be in 1..2");
    at = op_tensor(&f, HOB_DTYPE_I32, zeros, NULL, 0);
    (void)hob_gather_nd(f.scope, x, at);
    fails("a scalar", HOB_ERR_SHAPE,
          "gather_nd: indices is i32[]; its last dimension must hold");
    at = op_tensor(&f, HOB_DTYPE_I32, zeros, pair, 2);
    (void)hob_scatter_nd(f.scope, x, at, x, HOB_SCATTER_ND_UPDATE_MAX);
    fails("value", HOB_ERR_SHAPE, "scatter_nd: value is f32[2,3]");
    at = op_tensor(&f, HOB_DTYPE_I32, zeros, none, 2);
    ck_assert_int_eq(hob_tensor_count(hob_gather_nd(f.scope, x, at)), 0);
    value = op_vector(&f, HOB_DTYPE_F32, zeros, 0);
    op_check(&f, "no rows",
             hob_scatter_nd(f.scope, x, at, value, HOB_SCATTER_ND_UPDATE_MIN),
             zeros, 6, 0);
}
END_TEST

/* ---- positions of what is not zero ---- */

START_TEST(test_nd_argwhere)
{
    int64_t shape[] = {2, 2, 3}, empty[] = {3, 0};
    double data[] = {0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 1};
    double expected[] = {0, 0, 2, 0, 1, 1, 1, 1, 0, 1, 1, 2};
    double columns[3][4] = {{0, 0, 1, 1}, {0, 1, 1, 1}, {2, 1, 0, 2}};
    hob_tensor *x, *y, *out[3];
    uint32_t count = 0;

    if (!on_device(_i))
        return;
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++) {
        x = op_tensor(&f, dtype, data, shape, 3);
        y = hob_argwhere(f.scope, x,
                         dtype % 2 ? HOB_DTYPE_I64 : HOB_DTYPE_NONE);
        ck_assert_int_eq(hob_tensor_dtype(y),
                         dtype % 2 ? HOB_DTYPE_I64 : HOB_DTYPE_I32);
        ck_assert_int_eq(hob_tensor_shape(y)[0], 4);
        ck_assert_int_eq(hob_tensor_shape(y)[1], 3);
        op_check(&f, "argwhere", y, expected, 12, 0);
        ck_assert_int_eq(
            hob_nonzero(f.scope, x, HOB_DTYPE_NONE, out, 3, &count), HOB_OK);
        ck_assert_int_eq(count, 3);
        for (int i = 0; i < 3; i++)
            op_check(&f, "nonzero", out[i], columns[i], 4, 0);
    }
    /* NaN is not zero, -0 is. */
    x = op_vector(&f, HOB_DTYPE_F32, (double[]){-0.0, NAN, 0, 1e-30}, 4);
    op_check(&f, "specials", hob_argwhere(f.scope, x, HOB_DTYPE_NONE),
             (double[]){1, 3}, 2, 0);
    y = hob_argwhere(f.scope, op_tensor(&f, HOB_DTYPE_I8, data, empty, 2),
                     HOB_DTYPE_NONE);
    ck_assert_int_eq(hob_tensor_shape(y)[0], 0);
    ck_assert_int_eq(hob_tensor_shape(y)[1], 2);
    /* A scalar has no coordinates, only whether it is there. */
    y = hob_argwhere(f.scope, op_tensor(&f, HOB_DTYPE_F32, data + 2, NULL, 0),
                     HOB_DTYPE_NONE);
    ck_assert_int_eq(hob_tensor_shape(y)[0], 1);
    ck_assert_int_eq(hob_tensor_shape(y)[1], 0);
    (void)hob_nonzero(f.scope, op_tensor(&f, HOB_DTYPE_F32, data, NULL, 0),
                      HOB_DTYPE_NONE, out, 3, &count);
    fails("nonzero", HOB_ERR_SHAPE, "nonzero: x is f32[] and has no");
    (void)hob_argwhere(f.scope, x, HOB_DTYPE_F32);
    fails("dtype", HOB_ERR_DTYPE, "argwhere: index_dtype is f32");
}
END_TEST

/* ---- medians, variances, norms ---- */

START_TEST(test_nd_medians)
{
    int64_t shape[] = {3, 4};
    double data[] = {4, 1, 3, 2, 7, 7, 5, 7, 2, 9, 0, 6};
    hob_tensor *x, *values = NULL, *indices = NULL;

    if (!on_device(_i))
        return;
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype < HOB_DTYPE_BOOL; dtype++) {
        x = op_tensor(&f, dtype, data, shape, 2);
        op_check(&f, "median", hob_median(f.scope, x), (double[]){4}, 1, 0);
        op_check(&f, "median_dim", hob_median_dim(f.scope, x, 1),
                 (double[]){2, 7, 2}, 3, 0);
        ck_assert_int_eq(hob_median_dim_with_indices(
                             f.scope, x, 0, HOB_DTYPE_I64, &values, &indices),
                         HOB_OK);
        op_check(&f, "medians", values, (double[]){4, 7, 3, 6}, 4, 0);
        op_check(&f, "places", indices, (double[]){0, 1, 0, 2}, 4, 0);
    }
    x = op_vector(&f, HOB_DTYPE_F32, (double[]){1, NAN, 3, 2, NAN, 5}, 6);
    ck_assert_int_eq(hob_median_dim_with_indices(f.scope, x, 0, HOB_DTYPE_NONE,
                                                 &values, &indices),
                     HOB_OK);
    op_check(&f, "median with NaN", values, (double[]){NAN}, 1, 0);
    op_check(&f, "its place", indices, (double[]){1}, 1, 0);
    x = op_vector(&f, HOB_DTYPE_F32, data, 0);
    (void)hob_median(f.scope, x);
    fails("empty", HOB_ERR_SHAPE, "median: x is f32[0]");
    shape[0] = 0;
    x = op_tensor(&f, HOB_DTYPE_F32, data, shape, 2);
    ck_assert_int_eq(hob_tensor_count(hob_median_dim(f.scope, x, 1)), 0);
    x = hob_swap_dims(f.scope, x, 0, 1); /* [4, 0]: along 1 there is none */
    (void)hob_median_dim(f.scope, x, 1);
    fails("empty", HOB_ERR_SHAPE, "median_dim: x is f32[4,0]");
}
END_TEST

START_TEST(test_nd_variances)
{
    static const double means[] = {0, 1e2, 1e3, 1e4};
    enum { N = 37 };
    double data[2 * N], shifted[N];
    int64_t shape[] = {2, N};
    uint64_t state = 41;
    hob_tensor *x;

    if (!on_device(_i))
        return;
    for (int i = 0; i < 2 * N; i++)
        data[i] = floor(op_random(&state) * 8) / 4;
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16; dtype++)
        for (int64_t correction = 0; correction < 3; correction++) {
            double tolerance = dtype == HOB_DTYPE_F64   ? 1e-13
                               : dtype == HOB_DTYPE_F32 ? 1e-6
                                                        : 8e-3;
            double var[2], std[2];

            if (test_device_skips(dtype, (int)correction, 3))
                continue;
            for (int r = 0; r < 2; r++) {
                double mean = 0, sum = 0;

                for (int i = 0; i < N; i++)
                    mean += data[r * N + i] / N;
                for (int i = 0; i < N; i++)
                    sum += (data[r * N + i] - mean) * (data[r * N + i] - mean);
                var[r] = sum / (double)(N - correction);
                std[r] = sqrt(var[r]);
            }
            x = op_tensor(&f, dtype, data, shape, 2);
            op_check(&f, "var_dim", hob_var_dim(f.scope, x, 1, correction), var,
                     2, tolerance);
            op_check(&f, "std_dim", hob_std_dim(f.scope, x, -1, correction),
                     std, 2, tolerance);
            x = op_vector(&f, dtype, data, N);
            op_check(&f, "var", hob_var(f.scope, x, correction), var, 1,
                     tolerance);
            op_check(&f, "std", hob_std(f.scope, x, correction), std, 1,
                     tolerance);
        }
    /* A mean far from 0 does not drown what is around it: in f64 the numbers
     * are exact, so var is that of i / 1000. */
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < N; i++)
            shifted[i] = means[k] + i * ldexp(1, -10);
        x = op_vector(&f, HOB_DTYPE_F32, shifted, N);
        op_check(&f, "var around a mean",
                 hob_mul_scalar(f.scope, hob_var(f.scope, x, 0), hob_f64(1e4)),
                 (double[]){1e4 * (N * N - 1) / 12 * ldexp(1, -20)}, 1, 1e-2);
    }
    x = op_vector(&f, HOB_DTYPE_F32, data, 1);
    op_check(&f, "var of one", hob_var(f.scope, x, 1), (double[]){NAN}, 1, 0);
    op_check(&f, "var of one", hob_var(f.scope, x, 2), (double[]){NAN}, 1, 0);
    op_check(&f, "std of one", hob_std(f.scope, x, 0), (double[]){0}, 1, 0);
    op_check(&f, "var of none",
             hob_var(f.scope, op_vector(&f, HOB_DTYPE_F32, data, 0), 0),
             (double[]){NAN}, 1, 0);
}
END_TEST

START_TEST(test_nd_norms)
{
    static const double powers[] = {0, 1, 2, 3, INFINITY, -INFINITY, -1, 0.5};
    int64_t shape[] = {2, 3};
    double data[] = {1, -2, 2, 0, 0.5, -4};
    hob_tensor *x;

    if (!on_device(_i))
        return;
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16; dtype++)
        for (int p = 0; p < 8; p++) {
            double tolerance = dtype == HOB_DTYPE_F64   ? 1e-14
                               : dtype == HOB_DTYPE_F32 ? 1e-6
                                                        : 8e-3;
            double norms[2];

            if (test_device_skips(dtype, p, 8))
                continue;
            for (int r = 0; r < 2; r++) {
                double sum = 0, most = 0, least = INFINITY;
                double power = powers[p];

                for (int i = 0; i < 3; i++) {
                    double size = fabs(data[3 * r + i]);

                    sum += power == 0 ? size != 0 : pow(size, power);
                    most = fmax(most, size);
                    least = fmin(least, size);
                }
                norms[r] = power == 0           ? sum
                           : power == INFINITY  ? most
                           : power == -INFINITY ? least
                                                : pow(sum, 1 / power);
            }
            x = op_tensor(&f, dtype, data, shape, 2);
            op_check(&f, "norm_dim", hob_norm_dim(f.scope, x, 1, powers[p]),
                     norms, 2, tolerance);
            x = op_vector(&f, dtype, data, 3);
            op_check(&f, "norm", hob_norm(f.scope, x, powers[p]), norms, 1,
                     tolerance);
        }
    x = op_vector(&f, HOB_DTYPE_F32, data, 0);
    op_check(&f, "norm of none", hob_norm(f.scope, x, 2), (double[]){0}, 1, 0);
    (void)hob_norm(f.scope, x, INFINITY);
    fails("norm of none", HOB_ERR_SHAPE, "norm: x is f32[0]");
    (void)hob_norm_dim(f.scope, x, 0, NAN);
    fails("p", HOB_ERR_ARGUMENT, "norm_dim: p is NaN");
}
END_TEST

/* ---- reductions of several dims ---- */

enum { SEVERAL = 4, SEVERAL_COUNT = 5 * 2 * 3 * 4 };
static const int64_t several_shape[SEVERAL] = {5, 2, 3, 4};

/* Sums, maxima and minima of IN along the dims in MASK; returns their number,
 * OUT_SHAPE their shape. */
static int64_t reduce_several(const double *in, uint32_t mask, double *sums,
                              double *most, double *least, int64_t *out_shape)
{
    int64_t count = 1;

    for (int d = 0; d < SEVERAL; d++) {
        out_shape[d] = mask >> d & 1 ? 1 : several_shape[d];
        count *= out_shape[d];
    }
    for (int64_t i = 0; i < count; i++) {
        sums[i] = 0;
        most[i] = -INFINITY;
        least[i] = INFINITY;
    }
    for (int64_t i = 0; i < SEVERAL_COUNT; i++) {
        int64_t left = i, at = 0, step = 1;

        for (int d = SEVERAL - 1; d >= 0; d--) {
            at += mask >> d & 1 ? 0 : left % several_shape[d] * step;
            step *= out_shape[d];
            left /= several_shape[d];
        }
        sums[at] += in[i];
        most[at] = fmax(most[at], in[i]);
        least[at] = fmin(least[at], in[i]);
    }
    return count;
}

/* All sets of dims, in either order, counted from either end. */
START_TEST(test_nd_reductions_of_several_dims)
{
    static const hob_dtype dtypes[] = {HOB_DTYPE_F64, HOB_DTYPE_F32,
                                       HOB_DTYPE_I32};
    uint64_t state = 11;

    if (!on_device(_i))
        return;
    for (uint32_t run = 0; run < 3 * (1u << SEVERAL) * 4; run++) {
        const hob_dtype dtype = dtypes[run % 3];
        const uint32_t mask = run / 3 % (1u << SEVERAL);
        const uint32_t way = run / 3 >> SEVERAL;
        double in[SEVERAL_COUNT], sums[SEVERAL_COUNT], most[SEVERAL_COUNT],
            least[SEVERAL_COUNT];
        int64_t dims[SEVERAL], shape[SEVERAL], count;
        uint32_t n = 0;
        hob_tensor *x, *sum;

        if (test_device_skips(dtype, (int)mask, 4))
            continue;
        for (int i = 0; i < SEVERAL; i++) {
            const int d = way & 1 ? SEVERAL - 1 - i : i;

            if (mask >> d & 1)
                dims[n++] = way & 2 ? d - SEVERAL : d;
        }
        numbers(&state, dtype, in, SEVERAL_COUNT);
        count = reduce_several(in, mask, sums, most, least, shape);
        x = op_tensor(&f, dtype, in, several_shape, SEVERAL);
        if (run % 5 == 0) /* a view, whose rows are apart */
            x = hob_swap_dims(
                f.scope,
                hob_contiguous(f.scope, hob_swap_dims(f.scope, x, 0, 3)), 0, 3);
        sum = hob_sum_dims(f.scope, x, dims, n);
        op_check(&f, "sum_dims", sum, sums, count, 0);
        ck_assert_int_eq(hob_tensor_rank(sum), SEVERAL);
        ck_assert(!memcmp(hob_tensor_shape(sum), shape, sizeof(shape)));
        op_check(&f, "max_dims", hob_max_dims(f.scope, x, dims, n), most, count,
                 0);
        op_check(&f, "min_dims", hob_min_dims(f.scope, x, dims, n), least,
                 count, 0);
    }
    {
        double zero = 0;
        hob_tensor *x =
            op_tensor(&f, HOB_DTYPE_F32, NULL, (int64_t[]){2, 0, 3}, 3);

        ck_assert_int_eq(
            hob_tensor_count(hob_sum_dims(f.scope, x, (int64_t[]){0, 2}, 2)),
            0);
        x = hob_sum_dims(f.scope, x, (int64_t[]){0, 1, 2}, 3);
        op_check(&f, "sum of none", x, &zero, 1, 0);
    }
}
END_TEST

/*
 * Sums of columns: one row and more than one launch does, some columns and
 * more than a group has, of rows that lie apart, at odd addresses too. Numbers
 * are quarters, whose sums f32 holds; what is not finite stays in its column.
 */
START_TEST(test_nd_sums_of_columns)
{
    static const int64_t sizes[][2] = {{1, 5},    {2, 8},      {5000, 7},
                                       {1024, 3}, {2100, 264}, {40, 2056},
                                       {0, 6},    {1500, 1}};
    static const hob_dtype dtypes[] = {HOB_DTYPE_F64, HOB_DTYPE_F32,
                                       HOB_DTYPE_F16, HOB_DTYPE_BF16};
    enum { GAP = 24 };
    uint64_t state = 12;

    if (!on_device(_i))
        return;
    for (int run = 0; run < 32; run++) {
        const int64_t rows = sizes[run / 4][0], columns = sizes[run / 4][1];
        const hob_dtype dtype = dtypes[run % 4];
        const int64_t step = columns + (run % 3 ? GAP : 0);
        const int64_t first = run % 3; /* of the columns that are summed */
        double *in = calloc((size_t)(rows * step) + 1, sizeof(*in));
        double *sums = calloc((size_t)columns, sizeof(*sums));
        hob_tensor *x;

        ck_assert(in && sums);
        for (int64_t i = 0; i < rows * step; i++)
            in[i] = floor(op_random(&state) * 8) / 4;
        if (rows > 1 && columns > 2) {
            in[step + first + 1] = INFINITY;
            in[(rows - 1) * step + first + 2] = NAN;
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                sums[c] += in[r * step + first + c];
        x = op_tensor(&f, dtype, in, (int64_t[]){rows, step}, 2);
        if (step > columns)
            x = hob_slice(f.scope, x, (int64_t[]){0, first}, 2,
                          (int64_t[]){rows, first + columns}, 2, NULL, 0);
        op_check(&f, "sums of columns", hob_sum_dim(f.scope, x, 0), sums,
                 columns,
                 dtype == HOB_DTYPE_BF16  ? 4e-3
                 : dtype == HOB_DTYPE_F16 ? 5e-4
                                          : 0);
        free(in);
        free(sums);
    }
}
END_TEST

/* Two to five tensors that lie alike, row-major or not, and one among them that
 * does not; along each dimension. */
START_TEST(test_nd_cat_of_likes)
{
    static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_BF16,
                                       HOB_DTYPE_U8};
    static const int64_t shapes[][3] = {{2, 3, 8}, {3, 1, 5}, {1, 2, 16}};
    enum { MOST = 5, ELEMENTS = 48 };

    if (!on_device(_i))
        return;
    for (int run = 0; run < 3 * 3 * 3 * 4 * 3; run++) {
        const hob_dtype dtype = dtypes[run % 3];
        const int64_t *shape = shapes[run / 3 % 3];
        const int dim = run / 9 % 3, parts = 2 + run / 27 % 4;
        const int way = run / 108; /* as they are, turned, one of them turned */
        const int64_t count = shape[0] * shape[1] * shape[2];
        double in[ELEMENTS], all[MOST * ELEMENTS];
        hob_tensor *x[MOST], *turned;
        int64_t inner = 1;

        for (int d = dim; d < 3; d++)
            inner *= shape[d];
        for (int p = 0; p < parts; p++) {
            for (int64_t i = 0; i < count; i++) {
                in[i] = (double)((p * 41 + i * 7) % 100);
                all[i / inner * inner * parts + p * inner + i % inner] = in[i];
            }
            x[p] = op_tensor(&f, dtype, in, shape, 3);
            turned =
                hob_contiguous(f.scope, hob_swap_dims(f.scope, x[p], 0, 2));
            if (way == 1 || (way == 2 && p == 1))
                x[p] = hob_swap_dims(f.scope, turned, 0, 2);
        }
        op_check(&f, "cat", hob_cat(f.scope, x, (uint32_t)parts, dim), all,
                 count * parts, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bodies_nd");
    TCase *tc = tcase_create("devices");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_nd_running_extrema, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_running_extrema_of_long_rows, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_scatter_updates, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_select_assign_updates, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_scatter_is_exact, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_indices_that_were_good, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_scatter_refuses, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_gather_nd, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_scatter_nd, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_coordinates_are_checked_one_by_one, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_argwhere, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_medians, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_variances, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_norms, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_sums_of_columns, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_cat_of_likes, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_nd_reductions_of_several_dims, 0,
                        OP_DEVICE_COUNT);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

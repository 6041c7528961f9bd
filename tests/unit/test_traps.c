/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other runtimes got wrong, on the reference backend (bodies), on flex
 * and on autodiff(flex). TRAPS.md lists where each behaviour is tested.
 */
#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const hob_dtype F64 = HOB_DTYPE_F64;
static const hob_dtype F32 = HOB_DTYPE_F32;
static const hob_dtype F16 = HOB_DTYPE_F16;
static const hob_dtype BF16 = HOB_DTYPE_BF16;
static const hob_dtype I64 = HOB_DTYPE_I64;
static const hob_dtype I32 = HOB_DTYPE_I32;
static const hob_dtype I8 = HOB_DTYPE_I8;
static const hob_dtype U64 = HOB_DTYPE_U64;
static const hob_dtype U8 = HOB_DTYPE_U8;
static const hob_dtype BOOL = HOB_DTYPE_BOOL;

#define COUNT(type, ...) (sizeof((const type[]){__VA_ARGS__}) / sizeof(type))
/* A list of sizes or positions and how many there are. */
#define LIST(...)                                                              \
    (const int64_t[]){__VA_ARGS__}, (uint32_t)COUNT(int64_t, __VA_ARGS__)
/* A tensor of DTYPE and SHAPE, a LIST in brackets, with these elements. */
#define TENSOR(dtype, shape, ...)                                              \
    make(dtype, (const double[]){__VA_ARGS__}, COUNT(double, __VA_ARGS__),     \
         AS_IS shape)
#define AS_IS(...) __VA_ARGS__
#define VECTOR(dtype, ...)                                                     \
    op_vector(&f, dtype, (const double[]){__VA_ARGS__},                        \
              (int64_t)COUNT(double, __VA_ARGS__))
/* The tensor has these elements, exactly or within TOLERANCE. */
#define NEAR(tolerance, tensor, ...)                                           \
    op_check(&f, #tensor, tensor, (const double[]){__VA_ARGS__},               \
             (int64_t)COUNT(double, __VA_ARGS__), tolerance)
#define SAME(tensor, ...) NEAR(0, tensor, __VA_ARGS__)
/* The call fails with STATUS. */
#define FAILS(status, call)                                                    \
    do {                                                                       \
        (void)(call);                                                          \
        op_check_fails(&f, #call, status);                                     \
    } while (0)

enum { DEVICES = OP_DEVICE_TRACKED + 1 };

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

static hob_tensor *make(hob_dtype dtype, const double *data, size_t count,
                        const int64_t *shape, uint32_t rank)
{
    int64_t product = 1;

    for (uint32_t i = 0; i < rank; i++)
        product *= shape[i];
    ck_assert_int_eq(product, (int64_t)count);
    return op_tensor(&f, dtype, data, shape, (int32_t)rank);
}

static hob_tensor *filled(hob_dtype dtype, double value, const int64_t *shape,
                          uint32_t rank)
{
    return hob_full(f.scope, shape, rank, hob_f64(value), f.device, dtype);
}

/* From START, COUNT elements STEP apart. */
static hob_tensor *sliced(hob_tensor *x, int64_t start, int64_t end,
                          int64_t step)
{
    return hob_slice(f.scope, x, &start, 1, &end, 1, &step, 1);
}

static hob_tensor *reversed(hob_tensor *x, int64_t axis)
{
    return hob_flip(f.scope, x, &axis, 1);
}

static void check_shape(hob_tensor *x, const int64_t *shape, uint32_t rank)
{
    ck_assert_int_eq(hob_tensor_rank(x), rank);
    for (uint32_t i = 0; i < rank; i++)
        ck_assert_int_eq(hob_tensor_shape(x)[i], shape[i]);
}

static int64_t single(hob_tensor *x)
{
    double value;

    op_read(&f, x, &value, 1);
    return (int64_t)value;
}

static hob_tensor *leaf(hob_tensor *x)
{
    return hob_require_grad(f.scope, x);
}

/* The gradient of the sum of Y with respect to X. */
static hob_tensor *gradient(hob_tensor *y, hob_tensor *x)
{
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    hob_tensor *out = NULL;

    ck_assert_hob_ok(hob_scope_error(f.scope, &error));
    ck_assert_hob_ok(
        hob_backward(f.scope, y, HOB_BACKWARD_RETAIN, &grads, &error));
    ck_assert_hob_ok(hob_grad(f.scope, x, grads, &out, &error));
    hob_grads_free(grads);
    ck_assert_ptr_nonnull(out);
    return out;
}

/* ---- extrema, order ---- */

START_TEST(test_traps_extrema_keep_nan_wherever_it_is)
{
    if (!on_device(_i))
        return;
    for (int64_t size = 1; size < 40; size += 6)
        for (int64_t at = 0; at < size; at++) {
            double data[40];
            hob_tensor *x;
            for (int64_t i = 0; i < size; i++)
                data[i] = i == at ? NAN : (double)i - 20;
            x = op_vector(&f, F32, data, size);
            SAME(hob_max(f.scope, x), NAN);
            SAME(hob_min(f.scope, x), NAN);
            SAME(hob_max_dim(f.scope, x, 0), NAN);
            SAME(hob_min_dim(f.scope, x, 0), NAN);
            ck_assert_int_eq(single(hob_argmax(f.scope, x, 0, I64)), at);
            ck_assert_int_eq(single(hob_argmin(f.scope, x, 0, I64)), at);
        }
}
END_TEST

START_TEST(test_traps_extrema_see_the_view_only)
{
    hob_tensor *x, *one;

    if (!on_device(_i))
        return;
    x = sliced(VECTOR(F32, NAN, 1, 9, 2, NAN, 9), 1, 5, 2);
    SAME(x, 1, 2);
    SAME(hob_max(f.scope, x), 2);
    SAME(hob_min(f.scope, reversed(x, 0)), 1);
    one = hob_expand(f.scope, sliced(VECTOR(F32, NAN, 3, NAN), 1, 2, 1),
                     LIST(2, 1));
    SAME(hob_max(f.scope, hob_expand(f.scope, one, LIST(2, 5))), 3);
}
END_TEST

START_TEST(test_traps_arg_extrema_take_the_first)
{
    hob_tensor *x, *two;

    if (!on_device(_i))
        return;
    x = VECTOR(F32, 1, NAN, 5, NAN);
    SAME(hob_argmax(f.scope, x, 0, I64), 1);
    SAME(hob_argmin(f.scope, x, 0, I64), 1);
    SAME(hob_argmax(f.scope, reversed(x, 0), 0, I64), 0);
    two = TENSOR(F32, (LIST(2, 3)), 2, 7, 7, 2, 7, 1);
    SAME(hob_argmax(f.scope, two, 1, I64), 1, 1);
    SAME(hob_argmax(f.scope, two, 0, I64), 0, 0, 0);
    SAME(hob_argmax(f.scope, hob_swap_dims(f.scope, two, 0, 1), 0, I64), 1, 1);
    SAME(hob_argmax(f.scope, reversed(two, 1), 1, I64), 0, 1);
    /* Longer than vectors and than one task. */
    x = filled(F32, 1, LIST(100003));
    ck_assert_int_eq(single(hob_argmax(f.scope, x, 0, I64)), 0);
    ck_assert_int_eq(single(hob_argmin(f.scope, x, 0, I64)), 0);
}
END_TEST

START_TEST(test_traps_cummax_keeps_nan)
{
    hob_tensor *x;

    if (!on_device(_i))
        return;
    x = VECTOR(F32, 2, 1, NAN, 5, 9);
    SAME(hob_cummax(f.scope, x, 0), 2, 2, NAN, NAN, NAN);
    SAME(hob_cummin(f.scope, x, 0), 2, 1, NAN, NAN, NAN);
}
END_TEST

START_TEST(test_traps_sort_puts_nan_last)
{
    hob_tensor *x;

    if (!on_device(_i))
        return;
    x = VECTOR(F32, 3, NAN, INFINITY, -INFINITY, NAN, 1);
    SAME(hob_sort(f.scope, x, 0, 0), -INFINITY, 1, 3, INFINITY, NAN, NAN);
    SAME(hob_sort(f.scope, x, 0, 1), NAN, NAN, INFINITY, 3, 1, -INFINITY);
    SAME(hob_argsort(f.scope, x, 0, 0, I64), 3, 5, 0, 2, 1, 4);
}
END_TEST

/* ---- reductions ---- */

START_TEST(test_traps_empty_reductions)
{
    hob_tensor *none, *no_rows;

    if (!on_device(_i))
        return;
    none = filled(F32, 0, LIST(0));
    SAME(hob_sum(f.scope, none), 0);
    SAME(hob_prod(f.scope, none), 1);
    SAME(hob_mean(f.scope, none), NAN);
    SAME(hob_any(f.scope, filled(BOOL, 0, LIST(0))), 0);
    SAME(hob_all(f.scope, filled(BOOL, 0, LIST(0))), 1);
    FAILS(HOB_ERR_SHAPE, hob_max(f.scope, none));
    FAILS(HOB_ERR_SHAPE, hob_argmin(f.scope, none, 0, I64));
    no_rows = filled(F32, 0, LIST(0, 3));
    SAME(hob_sum_dim(f.scope, no_rows, 0), 0, 0, 0);
    FAILS(HOB_ERR_SHAPE, hob_max_dim(f.scope, no_rows, 0));
    /* Nothing comes out, so nothing is missing. */
    ck_assert_int_eq(hob_tensor_count(hob_max_dim(f.scope, no_rows, 1)), 0);
}
END_TEST

START_TEST(test_traps_halves_accumulate_in_f32)
{
    hob_tensor *ones, *sums;

    if (!on_device(_i))
        return;
    SAME(
        hob_mean(f.scope,
                 hob_cast(f.scope,
                          hob_arange(f.scope, 0, 1024, 1, f.device, I64), F16)),
        511.5);
    ones = filled(BF16, 1, LIST(70000));
    SAME(hob_sum(f.scope, ones), 70144); /* the nearest bf16 */
    SAME(hob_mean(f.scope, ones), 1);
    SAME(hob_sum(f.scope, filled(F16, 1, LIST(20000))), 20000);
    SAME(hob_sum(f.scope, filled(F16, 1, LIST(70000))), INFINITY);
    SAME(hob_mean(f.scope, filled(F16, 1, LIST(70000))), 1);
    sums = hob_cumsum(f.scope, filled(F16, 1, LIST(20000)), 0);
    SAME(sliced(sums, 19999, 20000, 1), 20000);
}
END_TEST

START_TEST(test_traps_products_keep_signs_and_zeros)
{
    if (!on_device(_i))
        return;
    SAME(hob_prod(f.scope, VECTOR(F32, -2, 3, -1, -4)), -24);
    SAME(hob_prod(f.scope, VECTOR(F32, -2, 0, -1)), 0);
    SAME(hob_cumprod(f.scope, VECTOR(F32, -2, 3, 0, 5), 0), -2, -6, 0, 0);
}
END_TEST

/* One false among more than an f32 counts. */
START_TEST(test_traps_all_is_exact_for_many)
{
    enum { MANY = (1 << 24) + 3 };
    hob_tensor *x, *one;
    const int64_t at = MANY - 2, end = MANY - 1, step = 1;

    if (_i == 0 || !on_device(_i)) {
        if (_i == 0) /* the reference backend's loops are too slow */
            op_fixture_open(&f, _i);
        return;
    }
    x = filled(BOOL, 1, LIST(MANY));
    SAME(hob_all(f.scope, x), 1);
    one = filled(BOOL, 0, LIST(1));
    x = hob_slice_assign(f.scope, x, one, &at, 1, &end, 1, &step, 1);
    SAME(hob_all(f.scope, x), 0);
    x = hob_logical_not(f.scope, x);
    SAME(hob_any(f.scope, x), 1);
}
END_TEST

START_TEST(test_traps_nan_is_not_found_by_sums)
{
    hob_tensor *x, *y;

    if (!on_device(_i))
        return;
    x = VECTOR(F32, INFINITY, -INFINITY, 1);
    SAME(hob_any(f.scope, hob_is_nan(f.scope, x)), 0);
    x = VECTOR(F32, NAN, 1);
    y = VECTOR(F32, NAN, 1);
    SAME(hob_equal(f.scope, x, y), 0, 1);
    SAME(hob_not_equal(f.scope, x, y), 1, 0);
    SAME(hob_less_equal(f.scope, x, y), 0, 1);
}
END_TEST

START_TEST(test_traps_maximum_equals_an_element)
{
    uint64_t state = 3;
    double data[999];
    hob_tensor *x;

    if (!on_device(_i))
        return;
    for (int i = 0; i < 999; i++)
        data[i] = op_random(&state) / 3;
    x = op_vector(&f, F16, data, 999);
    SAME(hob_any(f.scope, hob_equal(f.scope, x, hob_max(f.scope, x))), 1);
}
END_TEST

/* ---- numbers ---- */

START_TEST(test_traps_remainder_and_division)
{
    const hob_dtype dtypes[] = {F64, F16, I64, I8};

    if (!on_device(_i))
        return;
    for (int i = 0; i < 4; i++) {
        hob_tensor *x = VECTOR(dtypes[i], -5, 5, -5, 5, -6);
        hob_tensor *y = VECTOR(dtypes[i], 3, -3, -3, 3, 3);
        SAME(hob_remainder(f.scope, x, y), 1, -1, -2, 2, 0);
    }
    SAME(hob_div(f.scope, VECTOR(I32, -7, 7, -7), VECTOR(I32, 2, -2, -2)), -3,
         -3, 3);
    SAME(hob_mean(f.scope, VECTOR(I32, -7, 0)), -3);
    FAILS(HOB_ERR_RANGE,
          hob_div(f.scope, VECTOR(I32, 1, 2), VECTOR(I32, 1, 0)));
    FAILS(HOB_ERR_RANGE,
          hob_remainder(f.scope, VECTOR(U8, 1, 2), VECTOR(U8, 1, 0)));
    /* The quotient that does not fit wraps. */
    SAME(hob_div(f.scope, VECTOR(I8, -128), VECTOR(I8, -1)), -128);
    SAME(hob_remainder(f.scope, VECTOR(I8, -128), VECTOR(I8, -1)), 0);
}
END_TEST

START_TEST(test_traps_integers_wrap)
{
    hob_tensor *large;

    if (!on_device(_i))
        return;
    SAME(hob_add(f.scope, VECTOR(I8, 100), VECTOR(I8, 100)), -56);
    SAME(hob_mul(f.scope, VECTOR(U8, 16), VECTOR(U8, 17)), 16);
    SAME(hob_abs(f.scope, VECTOR(I8, -128)), -128);
    SAME(hob_bitwise_not(f.scope, VECTOR(U8, 0)), 255);
    SAME(hob_bitwise_left_shift(f.scope, VECTOR(I8, 1), VECTOR(I8, 9)), 2);
    large = VECTOR(U64, 0x1p63, 0x1p63 + 2048);
    SAME(hob_div(f.scope, large, VECTOR(U64, 2, 2)), 0x1p62, 0x1p62 + 1024);
    SAME(hob_max(f.scope, large), 0x1p63 + 2048);
    SAME(hob_greater(f.scope, large, VECTOR(U64, 1, 1)), 1, 1);
    SAME(hob_cast(f.scope, large, F64), 0x1p63, 0x1p63 + 2048);
}
END_TEST

START_TEST(test_traps_round_sign_trunc)
{
    double read[2];

    if (!on_device(_i))
        return;
    SAME(hob_round(f.scope, VECTOR(F32, 0.5, 1.5, 2.5, -0.5, -2.5)), 0, 2, 2, 0,
         -2);
    SAME(hob_sign(f.scope, VECTOR(F32, -3, NAN, 2)), -1, 0, 1);
    op_read(&f, hob_sign(f.scope, VECTOR(F32, -0.0, 0)), read, 2);
    ck_assert(!signbit(read[0]) && !signbit(read[1]));
    op_read(&f, hob_trunc(f.scope, VECTOR(F32, -0.0, -0.5)), read, 2);
    ck_assert(signbit(read[0]) && read[0] == 0 && read[1] == 0);
    SAME(hob_trunc(f.scope, VECTOR(F32, -INFINITY, NAN, -1.9)), -INFINITY, NAN,
         -1);
}
END_TEST

START_TEST(test_traps_powers_of_negative_bases)
{
    hob_tensor *x;

    if (!on_device(_i))
        return;
    SAME(hob_pow(f.scope, VECTOR(F64, -2, -2, -2), VECTOR(F64, 3, 2, 0.5)), -8,
         4, NAN);
    x = VECTOR(F32, -3, 0, 0.1f);
    SAME(hob_pow_scalar(f.scope, x, hob_f64(0)), 1, 1, 1);
    SAME(hob_pow_scalar(f.scope, x, hob_f64(1)), -3, 0, 0.1f);
    SAME(hob_pow_scalar(f.scope, x, hob_f64(2)), 9, 0, 0.1f * 0.1f);
    SAME(hob_pow_scalar(f.scope, x, hob_f64(-1)), -1.f / 3, INFINITY, 1 / 0.1f);
}
END_TEST

START_TEST(test_traps_casts)
{
    if (!on_device(_i))
        return;
    SAME(hob_cast(f.scope, VECTOR(F32, -1.9, 1.9), I32), -1, 1);
    SAME(hob_cast(f.scope, VECTOR(F32, -0.5, 0, NAN), BOOL), 1, 0, 1);
    SAME(hob_cast(f.scope, VECTOR(I32, -256, 0, 2), BOOL), 1, 0, 1);
    FAILS(HOB_ERR_DTYPE, hob_add(f.scope, VECTOR(F32, 1), VECTOR(I32, 1)));
    FAILS(HOB_ERR_DTYPE, hob_add(f.scope, VECTOR(F32, 1), VECTOR(F64, 1)));
    FAILS(HOB_ERR_DTYPE, hob_sqrt(f.scope, VECTOR(I32, 1)));
    ck_assert_int_eq(
        hob_tensor_dtype(hob_equal(f.scope, VECTOR(F32, 1), VECTOR(F32, 1))),
        BOOL);
}
END_TEST

/* An attribute is used or refused. */
START_TEST(test_traps_dtype_attributes_are_used)
{
    const hob_dtype dtypes[] = {I64, I32};
    hob_tensor *x;

    if (!on_device(_i))
        return;
    x = VECTOR(F32, 1, 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(hob_tensor_dtype(hob_argmax(f.scope, x, 0, dtypes[i])),
                         dtypes[i]);
    (void)hob_argmax(f.scope, x, 0, F32);
    ck_assert_int_ne(hob_scope_error(f.scope, NULL), HOB_OK);
    hob_scope_clear_error(f.scope);
}
END_TEST

/* ---- views, shapes, indices ---- */

START_TEST(test_traps_slices)
{
    hob_tensor *x, *m;

    if (!on_device(_i))
        return;
    x = hob_arange(f.scope, 0, 10, 1, f.device, I64);
    SAME(sliced(x, 2, 8, -2), 7, 5, 3);
    SAME(sliced(x, 7, 100, 1), 7, 8, 9);
    ck_assert_int_eq(hob_tensor_count(sliced(x, 8, 2, 1)), 0);
    SAME(hob_slice_assign(f.scope, x, VECTOR(I64, -1, -2, -3), LIST(2), LIST(8),
                          LIST(-2)),
         0, 1, 2, -3, 4, -2, 6, -1, 8, 9);
    m = hob_reshape(f.scope, x, LIST(2, 5));
    SAME(sliced(m, 1, 2, 1), 5, 6, 7, 8, 9);
    FAILS(HOB_ERR_ARGUMENT,
          hob_slice(f.scope, x, LIST(0, 0), LIST(1, 1), LIST(1, 1)));
}
END_TEST

START_TEST(test_traps_gather_and_scatter_shapes)
{
    hob_tensor *x, *view;

    if (!on_device(_i))
        return;
    x = TENSOR(F32, (LIST(2, 3)), 0, 1, 2, 3, 4, 5);
    SAME(hob_gather(f.scope, x, TENSOR(I64, (LIST(1, 2)), 2, 0), 1), 2, 0);
    view = hob_expand(f.scope, TENSOR(I32, (LIST(2, 1)), 1, 1), LIST(2, 3));
    SAME(hob_gather(f.scope, x, view, 0), 3, 4, 5, 3, 4, 5);
    SAME(hob_scatter_add(f.scope, x, view,
                         TENSOR(F32, (LIST(2, 3)), 1, 1, 1, 2, 2, 2), 0),
         0, 1, 2, 6, 7, 8);
    FAILS(HOB_ERR_SHAPE,
          hob_scatter_add(f.scope, x, view, VECTOR(F32, 1, 2), 0));
    FAILS(HOB_ERR_RANGE,
          hob_gather(f.scope, x, TENSOR(I64, (LIST(1, 1)), 3), 1));
    check_shape(hob_select(f.scope, x, filled(I64, 0, LIST(0)), 1), LIST(2, 0));
}
END_TEST

/* Who knows of indices that they were good must see that they are no more. */
START_TEST(test_traps_indices_that_change_in_place)
{
    hob_tensor *x, *at;

    if (!on_device(_i))
        return;
    x = VECTOR(F32, 5, 6, 7, 8);
    at = VECTOR(I32, 3, 0);
    SAME(hob_select(f.scope, x, at, 0), 8, 5);
    at = hob_add_scalar(f.scope, hob_move(f.scope, at), hob_i64(1));
    FAILS(HOB_ERR_RANGE, hob_select(f.scope, x, at, 0));
    at = hob_sub_scalar(f.scope, VECTOR(I64, 3, 0), hob_i64(1));
    FAILS(HOB_ERR_RANGE, hob_gather(f.scope, x, at, 0));
    at = hob_argmax(f.scope,
                    TENSOR(F32, (LIST(2, 5)), 0, 1, 2, 3, 4, 4, 3, 2, 1, 0), 1,
                    I32);
    FAILS(HOB_ERR_RANGE,
          hob_select(f.scope, x, hob_reshape(f.scope, at, LIST(2)), 0));
    at = hob_clamp(f.scope, VECTOR(I32, -9, 2, 70), hob_i64(0), hob_i64(3));
    SAME(hob_select(f.scope, x, at, 0), 5, 7, 8);
    at = hob_clamp(f.scope, VECTOR(I32, -9, 2, 70), hob_i64(0), hob_i64(4));
    FAILS(HOB_ERR_RANGE, hob_select(f.scope, x, at, 0));
}
END_TEST

START_TEST(test_traps_singletons_have_any_stride)
{
    hob_tensor *one, *x, *flat;

    if (!on_device(_i))
        return;
    one = hob_expand(f.scope, VECTOR(F32, 3), LIST(1, 1, 1));
    x = hob_expand(f.scope, one, LIST(1, 4, 1));
    SAME(hob_reshape(f.scope, x, LIST(2, 2)), 3, 3, 3, 3);
    SAME(hob_sum_dim(f.scope, x, 1), 12);
    SAME(hob_unfold(f.scope, x, 1, 3, 1), 3, 3, 3, 3, 3, 3);
    flat = sliced(TENSOR(F32, (LIST(3, 2)), 1, 2, 3, 4, 5, 6), 1, 2, 7);
    SAME(hob_reshape(f.scope, flat, LIST(2)), 3, 4);
    SAME(hob_matmul(f.scope, flat, hob_swap_dims(f.scope, flat, 0, 1)), 25);
    SAME(hob_sort(f.scope, hob_swap_dims(f.scope, flat, 0, 1), 0, 1), 4, 3);
}
END_TEST

START_TEST(test_traps_matmul_of_an_expanded_batch)
{
    enum { B = 3, N = 5, K = 4, M = 7 };
    double a[N * K], b[B * K * M], y[2 * B * N * M];
    uint64_t state = 5;
    hob_tensor *lhs, *rhs;

    if (!on_device(_i))
        return;
    for (int i = 0; i < N * K; i++)
        a[i] = floor(op_random(&state) * 8);
    for (int i = 0; i < B * K * M; i++)
        b[i] = floor(op_random(&state) * 8);
    for (int i = 0; i < 2 * B * N * M; i++) {
        const double *row = a + i / M % N * K;
        const double *column = b + i / (N * M) % B * K * M + i % M;
        y[i] = 0;
        for (int k = 0; k < K; k++)
            y[i] += row[k] * column[k * M];
    }
    lhs = hob_expand(f.scope, op_tensor(&f, F32, a, (int64_t[]){N, K}, 2),
                     LIST(2, B, N, K));
    rhs = hob_expand(f.scope, op_tensor(&f, F32, b, (int64_t[]){B, K, M}, 3),
                     LIST(2, B, K, M));
    op_check(&f, "matmul", hob_matmul(f.scope, lhs, rhs), y, 2 * B * N * M, 0);
}
END_TEST

START_TEST(test_traps_zero_lengths)
{
    hob_tensor *none;

    if (!on_device(_i))
        return;
    SAME(hob_matmul(f.scope, filled(F32, 1, LIST(2, 0)),
                    filled(F32, 1, LIST(0, 2))),
         0, 0, 0, 0);
    none = hob_mul(f.scope, filled(F32, 1, LIST(0, 3)),
                   filled(F32, 1, LIST(1, 3)));
    check_shape(none, LIST(0, 3));
    check_shape(hob_matmul(f.scope, filled(F32, 1, LIST(0, 2, 3)),
                           filled(F32, 1, LIST(1, 3, 4))),
                LIST(0, 2, 4));
    check_shape(hob_softmax(f.scope, none, 1), LIST(0, 3));
    check_shape(hob_sort(f.scope, none, 0, 0), LIST(0, 3));
}
END_TEST

START_TEST(test_traps_sizes_that_overflow)
{
    hob_tensor *wide;
    int64_t big = INT64_C(1) << 31;

    if (!on_device(_i))
        return;
    wide = hob_expand(f.scope, VECTOR(U8, 1), LIST(big));
    ck_assert_int_eq(hob_tensor_count(wide), big);
    FAILS(HOB_ERR_SHAPE,
          hob_expand(f.scope, wide, LIST(INT64_C(1) << 40, big)));
    FAILS(HOB_ERR_SHAPE, filled(F32, 0, LIST(INT64_C(1) << 62, 4)));
    FAILS(HOB_ERR_MEMORY, filled(F32, 0, LIST(INT64_C(1) << 50)));
}
END_TEST

START_TEST(test_traps_cross_takes_any_dim)
{
    hob_tensor *x, *y;

    if (!on_device(_i))
        return;
    x = TENSOR(F32, (LIST(3, 2)), 1, 0, 0, 1, 0, 0);
    y = TENSOR(F32, (LIST(3, 2)), 0, 0, 1, 0, 0, 1);
    SAME(hob_cross(f.scope, x, y, 0), 0, 1, 0, 0, 1, 0);
    SAME(hob_cross(f.scope, hob_swap_dims(f.scope, x, 0, 1),
                   hob_swap_dims(f.scope, y, 0, 1), 1),
         0, 0, 1, 1, 0, 0);
    check_shape(hob_unfold(f.scope, x, 0, 2, 1), LIST(2, 2, 2));
    SAME(hob_unfold(f.scope, x, 0, 2, 1), 1, 0, 0, 1, 0, 0, 1, 0);
}
END_TEST

/* ---- layers ---- */

START_TEST(test_traps_max_pool_of_negatives_and_infinities)
{
    hob_tensor *x, *y = NULL, *at = NULL;

    if (!on_device(_i))
        return;
    x = TENSOR(F32, (LIST(1, 1, 2, 3)), -5, -1, -2, -6, -3, -4);
    (void)hob_max_pool2d_with_indices(f.scope, x, LIST(2), LIST(2), LIST(1),
                                      LIST(1), 1, I64, &y, &at);
    SAME(y, -5, -1, -6, -3);
    SAME(at, 0, 1, 3, 4);
    /* All elements are -inf; a tap of the first window lies before them. */
    x = filled(F32, -INFINITY, LIST(1, 1, 3, 3));
    (void)hob_max_pool2d_with_indices(f.scope, x, LIST(2), LIST(1), LIST(1),
                                      LIST(2), 0, I64, &y, &at);
    check_shape(at, LIST(1, 1, 3, 3));
    SAME(at, 4, 3, 4, 1, 0, 1, 4, 3, 4);
    FAILS(HOB_ERR_SHAPE,
          hob_max_pool2d(f.scope, filled(F32, 1, LIST(1, 1, 2, 2)), LIST(2),
                         LIST(1), LIST(2), LIST(4), 0));
}
END_TEST

START_TEST(test_traps_ceil_mode)
{
    hob_tensor *x;

    if (!on_device(_i))
        return;
    x = TENSOR(F32, (LIST(1, 1, 1, 3)), 2, 4, 9);
    /* A third window would lie in the padding. */
    SAME(hob_max_pool2d(f.scope, x, LIST(1, 2), LIST(1, 2), LIST(0, 1), LIST(1),
                        1),
         2, 9);
    /* Padding counts in the divisor, the overhang does not. */
    SAME(hob_avg_pool2d(f.scope, x, LIST(1, 2), LIST(1, 2), LIST(0, 1), 1, 1),
         1, 6.5);
    SAME(hob_avg_pool2d(f.scope, x, LIST(1, 2), LIST(1, 2), LIST(0), 1, 1), 3,
         9);
}
END_TEST

/* Query 0 is hidden by causal and mask together. */
START_TEST(test_traps_attention_of_hidden_rows)
{
    hob_tensor *q, *k, *v, *mask, *y;

    if (!on_device(_i))
        return;
    q = TENSOR(F32, (LIST(1, 2, 1)), 1, 1);
    k = TENSOR(F32, (LIST(1, 2, 1)), 1, 1);
    v = TENSOR(F32, (LIST(1, 2, 1)), 3, 5);
    mask = TENSOR(BOOL, (LIST(1, 2, 2)), 1, 0, 0, 0);
    if (_i == OP_DEVICE_TRACKED) {
        q = leaf(q);
        k = leaf(k);
        v = leaf(v);
    }
    y = hob_attention(f.scope, q, k, v, mask, NULL, hob_none(), hob_none(), 1);
    SAME(y, 0, 4);
    if (_i != OP_DEVICE_TRACKED)
        return;
    SAME(gradient(y, q), 0, 0);
    NEAR(1e-7, gradient(y, v), 0.5, 0.5); /* weights come back from a log */
    NEAR(1e-6, gradient(y, k), -0.5, 0.5);
    mask = TENSOR(BOOL, (LIST(1, 2, 2)), 1, 1, 1, 1);
    y = hob_attention(f.scope, q, k, v, mask, NULL, hob_none(), hob_none(), 0);
    SAME(y, 0, 0);
    SAME(gradient(y, q), 0, 0);
    SAME(gradient(y, v), 0, 0);
}
END_TEST

/* Three queries see five keys: the last sees all. */
START_TEST(test_traps_attention_order_and_alignment)
{
    hob_tensor *q, *k, *v;

    if (!on_device(_i))
        return;
    q = filled(F64, 0, LIST(3, 2));
    k = filled(F64, 0, LIST(5, 2));
    v = TENSOR(F64, (LIST(5, 1)), 1, 2, 3, 4, 5);
    NEAR(1e-12,
         hob_attention(f.scope, q, k, v, NULL, NULL, hob_none(), hob_none(), 1),
         2, 2.5, 3);
    /* The cap is inside of the mask: a hidden key stays hidden. */
    NEAR(1e-12,
         hob_attention(f.scope, q, k, v, NULL, NULL, hob_none(), hob_f64(2), 1),
         2, 2.5, 3);
    SAME(hob_softmax(f.scope, VECTOR(F32, -INFINITY, -INFINITY), 0), NAN, NAN);
}
END_TEST

START_TEST(test_traps_attention_in_f16_stays_finite)
{
    hob_tensor *q, *v;

    if (!on_device(_i))
        return;
    q = filled(F16, 300, LIST(1, 3, 64)); /* q k^T is 5.8e6 */
    v = filled(F16, 2, LIST(1, 3, 4));
    SAME(hob_attention(f.scope, q, q, v, NULL, NULL, hob_none(), hob_none(), 0),
         2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2);
}
END_TEST

START_TEST(test_traps_layer_norm_of_large_means)
{
    static const double means[] = {0, 1e2, 1e3, 1e4};
    double x[16], y[16];

    if (!on_device(_i))
        return;
    for (int row = 0; row < 4; row++) {
        double mean = 0, variance = 0;
        for (int i = 0; i < 16; i++) {
            x[i] = (float)(means[row] + i * 1e-3);
            mean += x[i] / 16;
        }
        for (int i = 0; i < 16; i++)
            variance += (x[i] - mean) * (x[i] - mean) / 16;
        for (int i = 0; i < 16; i++)
            y[i] = (x[i] - mean) / sqrt(variance + 1e-12);
        /* The mean has an f32's error, of the size of some steps at 1e4. */
        op_check(&f, "layer_norm",
                 hob_layer_norm(f.scope, op_vector(&f, F32, x, 16),
                                filled(F32, 1, LIST(16)), NULL, 1e-12),
                 y, 16, row < 3 ? 1e-1 : 0.5);
    }
}
END_TEST

START_TEST(test_traps_activations_at_the_ends)
{
    hob_tensor *x;

    if (!on_device(_i))
        return;
    x = VECTOR(F16, -60000, -20, 0, 60000, NAN);
    NEAR(1e-3, hob_sigmoid(f.scope, x), 0, 0, 0.5, 1, NAN);
    NEAR(1e-3, hob_log_sigmoid(f.scope, x), -60000, -20, -0.6931, 0, NAN);
    NEAR(1e-3, hob_hard_sigmoid(f.scope, x, 0.2, 0.5), 0, 0, 0.5, 1, NAN);
    SAME(hob_relu(f.scope, x), 0, 0, 0, 60000, NAN);
    SAME(hob_clamp(f.scope, x, hob_f64(-1), hob_f64(1)), -1, -1, 0, 1, NAN);
    NEAR(1e-12, hob_gelu(f.scope, VECTOR(F64, 1)), 0.84134474606854293);
}
END_TEST

START_TEST(test_traps_layouts_of_weights)
{
    hob_tensor *x;

    if (!on_device(_i))
        return;
    x = TENSOR(F32, (LIST(1, 2)), 1, 10);
    SAME(hob_linear(f.scope, x, TENSOR(F32, (LIST(2, 3)), 1, 2, 3, 4, 5, 6),
                    NULL),
         41, 52, 63);
    x = TENSOR(F32, (LIST(1, 2, 3)), 1, 2, 3, 4, 5, 6);
    SAME(hob_conv1d(f.scope, x, TENSOR(F32, (LIST(2, 1, 2)), 1, 0, 0, 1), NULL,
                    LIST(1), LIST(0), LIST(1), 2),
         1, 2, 5, 6);
}
END_TEST

/* ---- gradients ---- */

START_TEST(test_traps_gradients_of_broadcast_ties_and_repeats)
{
    hob_tensor *x, *y, *indices;

    if (!on_device(OP_DEVICE_TRACKED))
        return;
    x = leaf(TENSOR(F32, (LIST(2, 1)), 1, 2));
    y = hob_mul(f.scope, x, TENSOR(F32, (LIST(3)), 1, 2, 3));
    check_shape(gradient(y, x), LIST(2, 1));
    SAME(gradient(y, x), 6, 6);
    x = leaf(VECTOR(F32, 3, 7, 7));
    SAME(gradient(hob_max_dim(f.scope, x, 0), x), 0, 1, 0);
    indices = VECTOR(I64, 1, 1, 0);
    SAME(gradient(hob_select(f.scope, x, indices, 0), x), 1, 2, 0);
    SAME(gradient(hob_gather(f.scope, x, indices, 0), x), 1, 2, 0);
    x = leaf(VECTOR(F64, 2, 0, 3));
    SAME(gradient(hob_prod(f.scope, x), x), 0, 6, 0);
    /* 2, 2 b, 2 b c: by a 1 + b + b c, by b a + a c, by c a b. */
    SAME(gradient(hob_cumprod(f.scope, x, 0), x), 1, 8, 0);
    x = leaf(VECTOR(F64, 0, 0, 3));
    SAME(gradient(hob_prod(f.scope, x), x), 0, 0, 0);
}
END_TEST

START_TEST(test_traps_gradient_of_a_dropped_tail)
{
    hob_tensor *x, *y;

    if (!on_device(OP_DEVICE_TRACKED))
        return;
    x = leaf(TENSOR(F32, (LIST(1, 1, 6)), 1, 2, 3, 4, 5, 6));
    y = hob_conv1d(f.scope, x, TENSOR(F32, (LIST(1, 1, 2)), 1, 10), NULL,
                   LIST(4), LIST(0), LIST(1), 1);
    SAME(y, 21, 65);
    SAME(gradient(y, x), 1, 10, 0, 0, 1, 10);
    y = hob_conv1d(f.scope, x, TENSOR(F32, (LIST(1, 1, 2)), 1, 10), NULL,
                   LIST(3), LIST(0), LIST(1), 1);
    SAME(y, 21, 54);
    SAME(gradient(y, x), 1, 10, 0, 1, 10, 0);
}
END_TEST

/* ---- large sizes ---- */

/* Some gigabytes and some minutes: with HOB_TEST_LARGE=1 only. */
START_TEST(test_traps_offsets_past_31_bits)
{
    const int64_t rows = 262144, width = 8960, row = 255999;
    hob_tensor *x, *y, *one;

    if (!getenv("HOB_TEST_LARGE") || !on_device(1)) {
        op_fixture_open(&f, 0);
        return;
    }
    x = filled(U8, 1, LIST(rows, width));
    one = filled(U8, 7, LIST(1, width));
    y = hob_slice_assign(f.scope, x, one, LIST(row), LIST(row + 1), LIST(1));
    y = hob_select(f.scope, y, VECTOR(I64, 0, (double)row), 0);
    ck_assert_int_eq(single(hob_min(f.scope, sliced(y, 0, 1, 1))), 1);
    ck_assert_int_eq(single(hob_min(f.scope, sliced(y, 1, 2, 1))), 7);
    y = hob_sum_dim(f.scope, hob_expand(f.scope, one, LIST(rows, width)), 0);
    ck_assert_int_eq(single(hob_min(f.scope, y)), (7 * rows) & 255);
    y = hob_expand(f.scope, filled(I64, 1, LIST(1)), LIST(rows * width));
    ck_assert_int_eq(single(hob_sum(f.scope, y)), rows * width);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("traps");
    TCase *tc = tcase_create("ops");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_traps_extrema_keep_nan_wherever_it_is, 0,
                        DEVICES);
    tcase_add_loop_test(tc, test_traps_extrema_see_the_view_only, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_arg_extrema_take_the_first, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_cummax_keeps_nan, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_sort_puts_nan_last, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_empty_reductions, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_halves_accumulate_in_f32, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_products_keep_signs_and_zeros, 0,
                        DEVICES);
    tcase_add_loop_test(tc, test_traps_all_is_exact_for_many, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_nan_is_not_found_by_sums, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_maximum_equals_an_element, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_remainder_and_division, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_integers_wrap, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_round_sign_trunc, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_powers_of_negative_bases, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_casts, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_dtype_attributes_are_used, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_slices, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_gather_and_scatter_shapes, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_indices_that_change_in_place, 0,
                        DEVICES);
    tcase_add_loop_test(tc, test_traps_singletons_have_any_stride, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_matmul_of_an_expanded_batch, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_zero_lengths, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_sizes_that_overflow, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_cross_takes_any_dim, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_max_pool_of_negatives_and_infinities, 0,
                        DEVICES);
    tcase_add_loop_test(tc, test_traps_ceil_mode, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_attention_of_hidden_rows, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_attention_order_and_alignment, 0,
                        DEVICES);
    tcase_add_loop_test(tc, test_traps_attention_in_f16_stays_finite, 0,
                        DEVICES);
    tcase_add_loop_test(tc, test_traps_layer_norm_of_large_means, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_activations_at_the_ends, 0, DEVICES);
    tcase_add_loop_test(tc, test_traps_layouts_of_weights, 0, DEVICES);
    tcase_add_test(tc, test_traps_gradients_of_broadcast_ties_and_repeats);
    tcase_add_test(tc, test_traps_gradient_of_a_dropped_tail);
    tcase_add_test(tc, test_traps_offsets_past_31_bits);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

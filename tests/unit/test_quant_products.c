/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products by quantized matrices, against products of what they stand for.
 */
#include "hob_check.h"
#include "op_fixture.h"

#include <hob/ext/quant.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { MOST = 3000 };

static struct op_fixture f;
static hob_error error;

static void teardown(void)
{
    hob_error_release(&error);
    op_fixture_close(&f);
}

static int on_device(int which)
{
    op_fixture_open(&f, which);
    return f.device != NULL;
}

/* X with the scheme of one scale for all, or BLOCK. */
static hob_tensor *quantized(hob_tensor *x, uint32_t value, int64_t block)
{
    return hob_quantize_dynamic(
        f.scope, x, (enum hob_quantize_dynamic_value)(value - 1), &block,
        block != 0, HOB_DTYPE_F32, 0, HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
        HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
}

/* The scope failed with STATUS and a message with PART; forget it. */
static void check_fails(hob_status status, const char *part)
{
    ck_assert_hob_fails(hob_scope_error(f.scope, &error), status, part);
    hob_scope_clear_error(f.scope);
}

/* |Y - WANT| against what sums of f32 may lose, for X of magnitude 1. */
static void check_product(const char *what, hob_tensor *y, hob_tensor *want,
                          int64_t k, double unit)
{
    static double got[MOST * 4], numbers[MOST * 4];
    const int64_t count = hob_tensor_count(want);
    double most = 0;

    ck_assert_msg(hob_tensor_count(y) == count && count <= MOST * 4, "%s",
                  what);
    op_read(&f, y, got, count);
    op_read(&f, want, numbers, count);
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(numbers[i]));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - numbers[i]) <=
                          unit * (most + sqrt((double)k)),
                      "%s: element %" PRId64 " is %.9g, not %.9g", what, i,
                      got[i], numbers[i]);
}

static hob_tensor *random_matrix(hob_dtype dtype, int64_t rows, int64_t columns)
{
    static double data[MOST * 60];
    uint64_t seed = UINT64_C(88172645463325252) + (uint64_t)(rows * columns);
    const int64_t shape[] = {rows, columns};

    ck_assert_int_le(rows * columns, MOST * 60);
    for (int64_t i = 0; i < rows * columns; i++)
        data[i] = op_random(&seed);
    return op_tensor(&f, dtype, data, shape, 2);
}

static hob_tensor *wide(hob_tensor *x)
{
    return hob_tensor_dtype(x) == HOB_DTYPE_QUANT
               ? hob_dequantize(f.scope, x, HOB_DTYPE_F64)
               : hob_cast(f.scope, x, HOB_DTYPE_F64);
}

/* Sizes around those of panels; rows that begin inside a byte of codes. */
START_TEST(test_quant_products_by_panels)
{
    static const int64_t sizes[][3] = {
        {1, 1, 1},    {1, 300, 515}, {3, 31, 33}, {9, 520, 65},
        {20, 257, 1}, {2, 64, 1025}, {4, 0, 5},   {40, 130, 258}};
    static const int64_t blocks[][2] = {
        {0, 0}, {1, 32}, {0, 1}, {1, 0}, {16, 16}};
    static const double units[] = {0, 0, 1e-6, 1e-3, 8e-3}; /* by dtype */
    const int64_t m = sizes[_i / 2][0], k = sizes[_i / 2][1];
    const int64_t n = sizes[_i / 2][2];
    char what[80];

    if (!on_device(_i % 2) || (_i % 2 == 0 && m * k * n > 5000))
        return; /* the reference is slow */
    /* A fourth of the formats and blocks for each, others for the next. */
    for (uint32_t c = (uint32_t)_i / 2 % 4; c < 9 * 5; c += 4) {
        const uint32_t value = c % 9, b = c / 9;
        const hob_dtype dtype =
            c % 4 == 3 ? HOB_DTYPE_BF16 : (hob_dtype)(HOB_DTYPE_F32 + c % 2);
        const double unit = units[dtype];
        hob_tensor *x, *w, *q, *y, *bias;

        x = random_matrix(dtype, m, k);
        if (c % 3 == 1) /* strided */
            x = hob_swap_dims(f.scope, random_matrix(dtype, k, m), 0, 1);
        w = random_matrix(HOB_DTYPE_F32, k, n);
        q = hob_quantize_dynamic(f.scope, w,
                                 (enum hob_quantize_dynamic_value)value,
                                 blocks[b], b ? 2 : 0, HOB_DTYPE_F32, b == 3,
                                 HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
                                 HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
        snprintf(what, sizeof(what), "%s x %u, blocks %u, %d %d %d",
                 hob_dtype_name(dtype), value, b, (int)m, (int)k, (int)n);
        y = hob_matmul(f.scope, x, q);
        ck_assert_int_eq(hob_tensor_dtype(y), (int)dtype);
        w = hob_matmul(f.scope, wide(x), wide(q));
        check_product(what, y, w, k, unit);
        bias = hob_reshape(f.scope, random_matrix(dtype, 1, n),
                           (const int64_t[]){n}, 1);
        check_product(what, hob_linear(f.scope, x, q, bias),
                      hob_add(f.scope, w, wide(bias)), k, 2 * unit);
        /* x of one dimension, and of three. */
        y = hob_linear(f.scope,
                       hob_reshape(f.scope, x, (const int64_t[]){1, m, k}, 3),
                       q, NULL);
        ck_assert_int_eq(hob_tensor_rank(y), 3);
        check_product(what, y, w, k, unit);
        /* The matrix on the left, and transposed. */
        y = hob_matmul(f.scope, hob_swap_dims(f.scope, q, 0, 1),
                       hob_swap_dims(f.scope, x, 0, 1));
        check_product(what, hob_swap_dims(f.scope, y, 0, 1), w, k, unit);
        check_product(what,
                      hob_matmul_quantized(f.scope, x,
                                           hob_swap_dims(f.scope, q, 0, 1), 1),
                      w, k, unit);
        q = quantized(q, HOB_QUANT_Q8S, 0);
        y = quantized(x, HOB_QUANT_Q8S, 7);
        check_product(what, hob_matmul(f.scope, y, q),
                      hob_matmul(f.scope, wide(y), wide(q)), k, 1e-6);
    }
}
END_TEST

START_TEST(test_quant_products_name_what_does_not_fit)
{
    hob_tensor *x, *q;

    if (!on_device(1))
        return;
    x = random_matrix(HOB_DTYPE_F32, 2, 3);
    q = quantized(random_matrix(HOB_DTYPE_F32, 4, 5), HOB_QUANT_Q4S, 0);
    hob_matmul(f.scope, x, q);
    check_fails(HOB_ERR_SHAPE, "matmul");
    hob_matmul_quantized(f.scope, x, q, 0);
    check_fails(HOB_ERR_SHAPE, "x is f32[2,3], weight is q4s[4,5]; x's last "
                               "must equal weight's first");
    hob_matmul_quantized(f.scope, x, q, 1);
    check_fails(HOB_ERR_SHAPE, "second (with transpose, weight is [out, in])");
}
END_TEST

/* A sum of many equal numbers, of which f32 loses its share one by one. */
START_TEST(test_quant_long_products_do_not_lose)
{
    const int64_t k = 1 << 16, n = 64;
    double got[64];
    hob_tensor *x, *w, *y;

    if (!on_device(1))
        return;
    x = hob_full(f.scope, (const int64_t[]){1, k}, 2, hob_f64(0.1), f.device,
                 HOB_DTYPE_F32);
    w = hob_full(f.scope, (const int64_t[]){k, n}, 2, hob_f64(1), f.device,
                 HOB_DTYPE_F32);
    y = hob_matmul(f.scope, x, quantized(w, HOB_QUANT_Q8S, 0));
    op_read(&f, y, got, n);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs(got[i] / ((double)0.1f * (double)k) - 1) < 2e-5,
                      "%.9g", got[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quant_products");
    TCase *tc = tcase_create("quant_products");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, test_quant_products_by_panels, 0, 16);
    tcase_add_test(tc, test_quant_products_name_what_does_not_fit);
    tcase_add_test(tc, test_quant_long_products_do_not_lose);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

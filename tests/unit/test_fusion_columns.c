/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups with reductions over dimensions that are not the last ones, where flex
 * takes them in: that they are one kernel with what comes before and after,
 * that threads change nothing, and that sums are those of float64.
 */
#include "fusion_fixture.h"
#include "hob_check.h"
#include "test_device.h"

#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fusion_fixture f;
static hob_device *single; /* as f.lazy, on one thread */

static void setup(void)
{
    hob_error error = HOB_ERROR_INIT;

    fusion_open(&f);
    ck_assert_hob_ok(
        hob_device_open(f.runtime, "fusion(flex{threads=1})", &single, &error));
}

static void teardown(void)
{
    hob_device_unref(single);
    fusion_close(&f);
}

static double *read_all(hob_tensor *tensor)
{
    const int64_t count = hob_tensor_count(tensor);
    double *out = malloc((size_t)(count + 1) * sizeof(*out));
    hob_error error = HOB_ERROR_INIT;

    ck_assert_ptr_nonnull(out);
    ck_assert_hob_ok(hob_read_f64(tensor, out, count, &error));
    return out;
}

/* What is in memory then, on DEVICE. */
static hob_tensor *input(hob_device *device, hob_dtype dtype,
                         const int64_t *shape, int32_t rank, uint64_t seed)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = hob_cast(
        f.scope, fusion_numbers(f.scope, device, shape, rank, seed), dtype);

    ck_assert_hob_ok(hob_eval(&x, 1, &error));
    fusion_forget(&f);
    return x;
}

static double unit_of(hob_dtype dtype)
{
    return dtype == HOB_DTYPE_F32    ? 0x1p-24
           : dtype == HOB_DTYPE_F16  ? 0x1p-11
           : dtype == HOB_DTYPE_BF16 ? 0x1p-8
                                     : 0x1p-50;
}

/* GOT is WANTED, sums whose parts add up to ABSOLUTE, rounded to DTYPE. */
static void check_sum(double got, double wanted, double absolute,
                      hob_dtype dtype, int64_t at)
{
    if (isnan(wanted)) {
        ck_assert(isnan(got));
        return;
    }
    ck_assert_msg(fabs(got - wanted) <=
                      1.5 * unit_of(dtype) * fabs(wanted) + 0x1p-48 * absolute,
                  "sum %d is %.17g, not %.17g", (int)at, got, wanted);
}

/* ---- the gradient of a bias ---- */

/* Columns few and many, in one block and in several, rows likewise. */
static const int64_t matrices[][2] = {
    {257, 130}, {9, 5000}, {3001, 3},  {40, 64}, {1000, 1},
    {2, 33},    {5000, 7}, {70, 2051}, {1, 100}, {1030, 48}};
enum { MATRICES = sizeof(matrices) / sizeof(matrices[0]) };

static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_BF16, HOB_DTYPE_F16,
                                   HOB_DTYPE_F64};
enum { DTYPES = sizeof(dtypes) / sizeof(dtypes[0]) };

static void check_gradient(const int64_t *shape, hob_dtype dtype)
{
    const int64_t rows = shape[0], columns = shape[1];
    double *dx[2], *db[2], *y, *grad;

    for (int i = 0; i < 2; i++) {
        hob_device *device = i ? single : f.lazy;
        hob_tensor *in[] = {input(device, dtype, shape, 2, 3),
                            input(device, dtype, shape, 2, 4)};
        hob_tensor *out[2];
        hob_error error = HOB_ERROR_INIT;

        out[0] = hob_relu_backward(f.scope, in[0], in[1]);
        out[1] = hob_sum_dim(f.scope, out[0], 0);
        ck_assert_hob_ok(hob_eval(out, 2, &error));
        if (i == 0 && rows > 1) {
            const uint64_t size = hob_dtype_size(dtype);

            ck_assert_int_eq(f.seen.groups, 1);
            ck_assert_int_eq(f.seen.singles, 0);
            ck_assert_str_eq(f.seen.name[0], "relu_backward+sum_dim");
            ck_assert_uint_eq(f.seen.written[0],
                              (uint64_t)(rows * columns + columns) * size);
            ck_assert_uint_eq(f.seen.read[0],
                              2 * (uint64_t)(rows * columns) * size);
        }
        dx[i] = read_all(out[0]);
        db[i] = read_all(out[1]);
        y = read_all(in[0]);
        grad = read_all(in[1]);
        for (int64_t c = 0; c < columns; c++) {
            double sum = 0, absolute = 0;

            for (int64_t r = 0; r < rows; r++) {
                const int64_t at = r * columns + c;
                const double one = y[at] > 0 ? grad[at] : 0;

                ck_assert_double_eq(dx[i][at], one);
                sum += one;
                absolute += fabs(one);
            }
            check_sum(db[i][c], sum, absolute, dtype, c);
        }
        free(y);
        free(grad);
    }
    ck_assert_mem_eq(db[0], db[1], (size_t)columns * sizeof(double));
    for (int i = 0; i < 2; i++) {
        free(dx[i]);
        free(db[i]);
    }
}

START_TEST(test_fusion_gradient_of_a_bias)
{
    for (int i = 0; i < DTYPES; i++)
        check_gradient(matrices[_i], dtypes[i]);
}
END_TEST

/* ---- channels ---- */

/* [batch, channel, height, width], summed over all but the channels; rows of
 * an image in a block, an image in several. */
static const int64_t images[][4] = {{5, 6, 7, 7},
                                    {3, 33, 2, 65},
                                    {2, 3, 130, 120},
                                    {17, 1, 3, 11},
                                    {4, 64, 8, 8}};
enum { IMAGES = sizeof(images) / sizeof(images[0]) };

START_TEST(test_fusion_sum_of_channels)
{
    const int64_t dims[] = {0, -1, 2};
    const int64_t *shape = images[_i];
    const int64_t area = shape[2] * shape[3];
    hob_tensor *in[] = {input(f.lazy, HOB_DTYPE_F32, shape, 4, 3),
                        input(f.lazy, HOB_DTYPE_F32, shape, 4, 4)};
    double *a = read_all(in[0]), *b = read_all(in[1]), *got[2];
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *out[2];

    out[0] = hob_sum_dims(f.scope, hob_mul(f.scope, in[0], in[1]), dims, 3);
    out[1] = hob_max_dims(f.scope, in[0], dims, 3);
    ck_assert_hob_ok(hob_eval(out, 2, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_str_eq(f.seen.name[0], "mul+sum_dims+max_dims");
    ck_assert_uint_eq(f.seen.written[0], 2 * 4 * (uint64_t)shape[1]);
    got[0] = read_all(out[0]);
    got[1] = read_all(out[1]);
    for (int64_t c = 0; c < shape[1]; c++) {
        double sum = 0, absolute = 0, most = -INFINITY;

        for (int64_t n = 0; n < shape[0]; n++)
            for (int64_t i = 0; i < area; i++) {
                const int64_t at = (n * shape[1] + c) * area + i;
                const double product = (double)(float)(a[at] * b[at]);

                sum += product;
                absolute += fabs(product);
                most = fmax(most, a[at]);
            }
        check_sum(got[0][c], sum, absolute, HOB_DTYPE_F32, c);
        ck_assert_double_eq(got[1][c], most);
    }
    for (int i = 0; i < 2; i++)
        free(got[i]);
    free(a);
    free(b);
}
END_TEST

/* ---- what follows ---- */

/* Columns less their mean, over the root of their mean square. What needs a
 * reduction for each element is in the kernel too where that saves more than
 * reading once more: of what is in memory, the first mean is an op of its own.
 */
static void check_standardised(const int64_t *shape, int is_computed)
{
    const int64_t rows = shape[0], columns = shape[1];
    hob_tensor *x = input(f.lazy, HOB_DTYPE_F32, shape, 2, 3);
    double *in = read_all(x), *got;
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *y = x, *scale;

    if (is_computed)
        y = hob_neg(f.scope, hob_neg(f.scope, x));
    y = hob_sub(f.scope, y, hob_mean_dim(f.scope, y, 0));
    scale = hob_add_scalar(f.scope,
                           hob_mean_dim(f.scope, hob_square(f.scope, y), 0),
                           hob_f64(1e-3));
    y = hob_mul(f.scope, y, hob_recip(f.scope, hob_sqrt(f.scope, scale)));
    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    if (rows > 1 && columns > 1) {
        ck_assert_int_eq(f.seen.groups, 1);
        ck_assert_int_eq(f.seen.singles, !is_computed);
        ck_assert_uint_eq(f.seen.ops[0], is_computed ? 10 : 7);
    }
    got = read_all(y);
    for (int64_t c = 0; c < columns; c++) {
        double mean = 0, square = 0;

        for (int64_t r = 0; r < rows; r++)
            mean += in[r * columns + c] / (double)rows;
        for (int64_t r = 0; r < rows; r++)
            square += pow(in[r * columns + c] - mean, 2) / (double)rows;
        for (int64_t r = 0; r < rows; r++)
            ck_assert_double_eq_tol(
                got[r * columns + c],
                (in[r * columns + c] - mean) / sqrt(square + 1e-3), 2e-5);
    }
    free(in);
    free(got);
}

START_TEST(test_fusion_columns_are_standardised)
{
    check_standardised(matrices[_i], 0);
    check_standardised(matrices[_i], 1);
}
END_TEST

/* The middle of three dimensions, with vectors for rows and columns; what is
 * read is turned and every second element. */
START_TEST(test_fusion_sum_in_the_middle)
{
    enum { A = 7, B = 40, C = 33 };
    const int64_t shape[] = {C, 2 * B, A}, first[] = {0, 1, 0};
    const int64_t last[] = {C, 2 * B, A}, steps[] = {1, 2, 1}, columns = C;
    hob_tensor *x = input(f.lazy, HOB_DTYPE_F32, shape, 3, 3);
    hob_tensor *v = input(f.lazy, HOB_DTYPE_F32, &columns, 1, 4);
    double *in = read_all(x), *vector = read_all(v), *got;
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *y;

    x = hob_swap_dims(f.scope,
                      hob_slice(f.scope, x, first, 3, last, 3, steps, 3), 0, 2);
    y = hob_sum_dim(f.scope, hob_mul(f.scope, x, v), 1);
    y = hob_mul_scalar(f.scope, y, hob_f64(0.5));
    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    ck_assert_str_eq(f.seen.name[0], "mul+sum_dim+mul_scalar");
    got = read_all(y);
    for (int64_t a = 0; a < A; a++)
        for (int64_t c = 0; c < C; c++) {
            double sum = 0, absolute = 0;

            for (int64_t b = 0; b < B; b++) {
                const double one =
                    (double)(float)(in[(c * 2 * B + 2 * b + 1) * A + a] *
                                    vector[c]);

                sum += one / 2;
                absolute += fabs(one);
            }
            check_sum(got[a * C + c], sum, absolute, HOB_DTYPE_F32, a * C + c);
        }
    free(in);
    free(vector);
    free(got);
}
END_TEST

/* ---- what is special ---- */

START_TEST(test_fusion_columns_with_nan)
{
    enum { ROWS = 300, COLUMNS = 5 };
    const int64_t shape[] = {ROWS, COLUMNS};
    float data[ROWS * COLUMNS];
    double got[COLUMNS], most[COLUMNS];
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x, *y[2];

    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = (float)(i % 7);
    data[290 * COLUMNS + 1] = NAN;
    data[0 * COLUMNS + 2] = INFINITY;
    data[3 * COLUMNS + 3] = INFINITY;
    data[250 * COLUMNS + 3] = -INFINITY;
    x = hob_from_f32(f.scope, f.lazy, data, shape, 2);
    x = hob_neg(f.scope, x);
    y[0] = hob_sum_dim(f.scope, x, 0);
    y[1] = hob_max_dim(f.scope, x, 0);
    ck_assert_hob_ok(hob_eval(y, 2, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    ck_assert_hob_ok(hob_read_f64(y[0], got, COLUMNS, &error));
    ck_assert_hob_ok(hob_read_f64(y[1], most, COLUMNS, &error));
    ck_assert(isfinite(got[0]) && isfinite(got[4]));
    ck_assert(isnan(got[1]) && isnan(most[1]));
    ck_assert_double_eq(got[2], -INFINITY);
    ck_assert(isnan(got[3]));
    ck_assert_double_eq(most[3], INFINITY);
}
END_TEST

/* Nothing is 0, and of no columns there is nothing. */
START_TEST(test_fusion_columns_of_nothing)
{
    const int64_t shapes[][2] = {{0, 5}, {5, 0}};
    hob_error error = HOB_ERROR_INIT;
    double got[5] = {1, 1, 1, 1, 1};

    for (int i = 0; i < 2; i++) {
        hob_tensor *x = hob_zeros(f.scope, shapes[i], 2, f.lazy, HOB_DTYPE_F32);
        hob_tensor *y =
            hob_sum_dim(f.scope, hob_add_scalar(f.scope, x, hob_f64(1)), 0);

        ck_assert_int_eq(hob_tensor_count(y), shapes[i][1]);
        ck_assert_hob_ok(hob_read_f64(y, got, shapes[i][1], &error));
    }
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq(got[i], 0);
}
END_TEST

/* A million rows lose no more than one, in f64 too. */
START_TEST(test_fusion_columns_are_exact)
{
    const int64_t shape[] = {1000000, 3};
    const hob_dtype dtype = _i ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    hob_tensor *x = input(f.lazy, dtype, shape, 2, 3);
    double *in = read_all(x), got[3];
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *y = hob_sum_dim(f.scope, hob_square(f.scope, x), 0);

    ck_assert_hob_ok(hob_read_f64(y, got, 3, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    for (int c = 0; c < 3; c++) {
        double sum = 0, lost = 0; /* of each sum what it has no room for */

        for (int64_t r = 0; r < shape[0]; r++) {
            const double square = in[r * 3 + c] * in[r * 3 + c];
            const double one = (_i ? square : (double)(float)square) + lost;
            const double next = sum + one;

            lost = one - (next - sum);
            sum = next;
        }
        ck_assert_double_eq_tol(got[c], sum, sum * (_i ? 0x1p-48 : 0x1p-24));
    }
    free(in);
}
END_TEST

/* Rows and columns of one value are two groups: each element is read twice. */
START_TEST(test_fusion_rows_and_columns_are_two_groups)
{
    const int64_t shape[] = {20, 30};
    hob_tensor *x = input(f.lazy, HOB_DTYPE_F32, shape, 2, 3);
    hob_tensor *h = hob_square(f.scope, x), *y[3];
    double *in = read_all(x), rows[20], columns[30];
    hob_error error = HOB_ERROR_INIT;

    y[0] = hob_mul_scalar(f.scope, hob_sum_dim(f.scope, h, 0), hob_f64(2));
    y[1] = hob_mul_scalar(f.scope, hob_sum_dim(f.scope, h, 1), hob_f64(2));
    y[2] = h;
    ck_assert_hob_ok(hob_eval(y, 3, &error));
    ck_assert_int_eq(f.seen.groups, 2);
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_hob_ok(hob_read_f64(y[0], columns, 30, &error));
    ck_assert_hob_ok(hob_read_f64(y[1], rows, 20, &error));
    for (int64_t i = 0; i < 20; i++)
        for (int64_t k = 0; k < 30; k++) {
            const double one =
                2 * (double)(float)(in[i * 30 + k] * in[i * 30 + k]);

            rows[i] -= one;
            columns[k] -= one;
        }
    for (int i = 0; i < 30; i++)
        ck_assert_double_eq_tol(columns[i], 0, 1e-4);
    for (int i = 0; i < 20; i++)
        ck_assert_double_eq_tol(rows[i], 0, 1e-4);
    free(in);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion columns");
    TCase *tc = tcase_create("columns");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    if (test_device_is_flex()) {
        tcase_add_loop_test(tc, test_fusion_gradient_of_a_bias, 0, MATRICES);
        tcase_add_loop_test(tc, test_fusion_sum_of_channels, 0, IMAGES);
        tcase_add_loop_test(tc, test_fusion_columns_are_standardised, 0,
                            MATRICES);
        tcase_add_test(tc, test_fusion_sum_in_the_middle);
        tcase_add_test(tc, test_fusion_columns_with_nan);
        tcase_add_test(tc, test_fusion_columns_of_nothing);
        tcase_add_loop_test(tc, test_fusion_columns_are_exact, 0, 2);
        tcase_add_test(tc, test_fusion_rows_and_columns_are_two_groups);
    }
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * det, lu and qr, by body and by kernel. det against the sum over all
 * permutations in double; lu and qr by what they promise: the product is x,
 * and the factors have their form.
 */
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 3, MOST = BATCH * 12 * 12 };

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

/* The scope's error is STATUS and its message that of PART, "op: text", a
 * part of which may be enough; forget it. Without PART where a body leaves the
 * message to another op. */
static void fails(const char *what, hob_status status, const char *part)
{
    hob_error error = HOB_ERROR_INIT;
    const char *text = part ? strchr(part, ':') : NULL;

    ck_assert_msg(hob_scope_error(f.scope, &error) == status, "%s: %s", what,
                  error.message ? error.message : "no error");
    if (part)
        ck_assert_msg(!strncmp(error.message, part, (size_t)(text - part)) &&
                          strstr(error.message, text),
                      "%s: \"%s\" is not in \"%s\"", what, part, error.message);
    hob_error_release(&error);
    hob_scope_clear_error(f.scope);
}

/* A few units of the last place times the size of a small matrix. */
static double tolerance_of(hob_dtype dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-13
           : dtype == HOB_DTYPE_F32 ? 2e-5
           : dtype == HOB_DTYPE_F16 ? 2e-2
                                    : 1.5e-1;
}

/* Multiples of 1/4 in [-2, 2], which every dtype holds. */
static void numbers(uint64_t *state, double *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = floor((op_random(state) + 1) * 8.4) / 4 - 2;
}

/* The sum over the permutations of the rows from ROW on, with USED columns. */
static double leibniz(const double *x, int n, int row, uint32_t used)
{
    double sum = 0;
    int sign = 1;

    if (row == n)
        return 1;
    for (int c = 0; c < n; c++) {
        if (used >> c & 1)
            continue;
        sum += sign * x[row * n + c] * leibniz(x, n, row + 1, used | 1u << c);
        sign = -sign;
    }
    return sum;
}

START_TEST(test_decompose_det)
{
    double data[MOST], expected[BATCH];
    uint64_t state = 3;

    if (!on_device(_i))
        return;
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16; dtype++)
        for (int n = 0; n <= 6; n++) {
            int64_t shape[] = {BATCH, n, n};
            hob_tensor *x;
            char what[64];
            double bound = tolerance_of(dtype) * pow(2, n);

            numbers(&state, data, BATCH * n * n);
            for (int b = 0; b < BATCH; b++)
                expected[b] = leibniz(data + b * n * n, n, 0, 0);
            x = op_tensor(&f, dtype, data, shape, 3);
            snprintf(what, sizeof(what), "det %d %s", n, hob_dtype_name(dtype));
            op_check(&f, what, hob_det(f.scope, x), expected, BATCH, bound);
            /* Of the transpose, which is a view, it is the same. */
            op_check(&f, what,
                     hob_det(f.scope, hob_swap_dims(f.scope, x, 1, 2)),
                     expected, BATCH, bound);
        }
}
END_TEST

START_TEST(test_decompose_det_of_special_matrices)
{
    int64_t four[] = {2, 2, 3, 3}, none[] = {0, 2, 2}, three[] = {3, 3};
    double data[36];
    hob_tensor *x;

    if (!on_device(_i))
        return;
    for (int i = 0; i < 36; i++)
        data[i] = i % 9 % 4 == 0 ? i / 9 + 1 : 0;
    x = op_tensor(&f, HOB_DTYPE_F32, data, four, 4);
    op_check(&f, "batch of two dimensions", hob_det(f.scope, x),
             (double[]){1, 8, 27, 64}, 4, 0);
    ck_assert_int_eq(hob_tensor_rank(hob_det(f.scope, x)), 2);
    x = op_tensor(&f, HOB_DTYPE_F32, data, none, 3);
    ck_assert_int_eq(hob_tensor_count(hob_det(f.scope, x)), 0);
    /* Ranks 2, 1 and 0. */
    x = op_tensor(&f, HOB_DTYPE_F64, (double[]){1, 2, 3, 4, 5, 6, 5, 7, 9},
                  three, 2);
    op_check(&f, "rank 2", hob_det(f.scope, x), (double[]){0}, 1, 1e-14);
    x = op_tensor(&f, HOB_DTYPE_F64, (double[]){1, 2, 3, 2, 4, 6, 3, 6, 9},
                  three, 2);
    op_check(&f, "rank 1", hob_det(f.scope, x), (double[]){0}, 1, 1e-14);
    x = op_tensor(&f, HOB_DTYPE_F64, (double[9]){0}, three, 2);
    op_check(&f, "rank 0", hob_det(f.scope, x), (double[]){0}, 1, 0);
    x = op_tensor(&f, HOB_DTYPE_F64, (double[]){1, 2, 3, 4, NAN, 6, 5, 7, 9},
                  three, 2);
    op_check(&f, "NaN", hob_det(f.scope, x), (double[]){NAN}, 1, 0);
    x = op_vector(&f, HOB_DTYPE_F32, data, 3);
    (void)hob_det(f.scope, x);
    fails("a vector", HOB_ERR_SHAPE, "det: x is f32[3]; a determinant takes");
    four[3] = 2;
    (void)hob_det(f.scope, op_tensor(&f, HOB_DTYPE_F32, data, four, 4));
    fails("not square", HOB_ERR_SHAPE, "det: x is f32[2,2,3,2]; its last two");
}
END_TEST

/* ---- what lu and qr promise ---- */

static const int sizes[][2] = {{1, 1}, {2, 2}, {5, 5},   {7, 3}, {3, 7},
                               {4, 1}, {1, 4}, {12, 11}, {0, 3}, {3, 0}};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Element I, J of matrix B of [ROWS, COLUMNS] ones. */
static double at(const double *x, int b, int rows, int columns, int i, int j)
{
    return x[(b * rows + i) * columns + j];
}

/* A matrix that stresses the pivots: SPECIAL 1 has a column of zeros, 2 is
 * zero, 3 has rank 1. */
static void special_numbers(uint64_t *state, double *data, int m, int n,
                            int special)
{
    numbers(state, data, (int64_t)BATCH * m * n);
    for (int i = 0; i < BATCH * m * n; i++) {
        if ((special == 1 && i % n == n / 2) || special == 2)
            data[i] = 0;
        if (special == 3)
            data[i] = (i / n % m + 1) * ((i % n) - 1);
    }
}

static void check_lu(const char *what, hob_tensor *x, int m, int n,
                     double tolerance)
{
    static double p[MOST], l[MOST], u[MOST], given[MOST];
    int k = m < n ? m : n;
    hob_tensor *out[3] = {NULL};

    ck_assert_int_eq(hob_lu(f.scope, x, &out[0], &out[1], &out[2]), HOB_OK);
    op_read(&f, x, given, (int64_t)BATCH * m * n);
    op_check(&f, what,
             hob_matmul(f.scope, hob_matmul(f.scope, out[0], out[1]), out[2]),
             given, (int64_t)BATCH * m * n, tolerance);
    op_read(&f, out[0], p, (int64_t)BATCH * m * m);
    op_read(&f, out[1], l, (int64_t)BATCH * m * k);
    op_read(&f, out[2], u, (int64_t)BATCH * k * n);
    for (int b = 0; b < BATCH; b++) {
        for (int i = 0; i < m; i++) {
            double row = 0, column = 0;

            for (int j = 0; j < m; j++) {
                double one = at(p, b, m, m, i, j);

                ck_assert_msg(one == 0 || one == 1, "%s: P", what);
                row += one;
                column += at(p, b, m, m, j, i);
            }
            ck_assert_msg(row == 1 && column == 1, "%s: P", what);
        }
        for (int i = 0; i < m; i++)
            for (int j = 0; j < k; j++) {
                double e = at(l, b, m, k, i, j);

                ck_assert_msg(i < j    ? e == 0
                              : i == j ? e == 1
                                       : fabs(e) <= 1,
                              "%s: L[%d,%d] is %g", what, i, j, e);
            }
        for (int i = 0; i < k; i++)
            for (int j = 0; j < i && j < n; j++)
                ck_assert_msg(at(u, b, k, n, i, j) == 0, "%s: U", what);
    }
}

static void check_qr(const char *what, hob_tensor *x, int m, int n, int reduced,
                     double tolerance)
{
    static double ones[MOST], r[MOST], given[MOST];
    int k = reduced && n < m ? n : m;
    hob_tensor *out[2] = {NULL};

    ck_assert_int_eq(hob_qr(f.scope, x, reduced, &out[0], &out[1]), HOB_OK);
    op_read(&f, x, given, (int64_t)BATCH * m * n);
    op_check(&f, what, hob_matmul(f.scope, out[0], out[1]), given,
             (int64_t)BATCH * m * n, tolerance);
    for (int i = 0; i < BATCH * k * k; i++)
        ones[i] = i / k % k == i % k;
    op_check(&f, what,
             hob_matmul(f.scope, hob_swap_dims(f.scope, out[0], 1, 2), out[0]),
             ones, (int64_t)BATCH * k * k, tolerance);
    op_read(&f, out[1], r, (int64_t)BATCH * k * n);
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < k; i++)
            for (int j = 0; j <= i && j < n; j++) {
                double e = at(r, b, k, n, i, j);

                ck_assert_msg(i == j ? e >= 0 : e == 0, "%s: R[%d,%d] is %g",
                              what, i, j, e);
            }
}

/* By default bodies a matrix is hundreds of launches, and what special numbers
 * meet there is the same in each dtype. */
static int specials(hob_dtype dtype)
{
    return test_device_is_flex() || dtype == HOB_DTYPE_F64 ? 4 : 1;
}

START_TEST(test_decompose_lu_and_qr)
{
    static double data[MOST];
    uint64_t state = 9;

    if (!on_device(_i / SIZES))
        return;
    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16; dtype++)
        for (int special = 0; special < specials(dtype); special++) {
            int m = sizes[_i % SIZES][0], n = sizes[_i % SIZES][1];
            int64_t shape[] = {BATCH, m, n}, turned[] = {BATCH, n, m};
            double tolerance = tolerance_of(dtype) * (special == 3 ? 100 : 10);
            hob_tensor *x;
            char what[64];

            snprintf(what, sizeof(what), "%dx%d %s, special %d", m, n,
                     hob_dtype_name(dtype), special);
            special_numbers(&state, data, m, n, special);
            x = op_tensor(&f, dtype, data, shape, 3);
            check_lu(what, x, m, n, tolerance);
            check_qr(what, x, m, n, 1, tolerance);
            check_qr(what, x, m, n, 0, tolerance);
            /* A view that is not row-major. */
            x = hob_swap_dims(f.scope, op_tensor(&f, dtype, data, turned, 3), 1,
                              2);
            check_lu(what, x, m, n, tolerance);
            check_qr(what, x, m, n, 1, tolerance);
        }
}
END_TEST

/* With a diagonal that is not negative there is one result, on any backend. */
START_TEST(test_decompose_known_factors)
{
    int64_t two[] = {2, 2}, eye[] = {3, 3};
    double ones[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    hob_tensor *a = NULL, *b = NULL, *c = NULL;
    hob_tensor *x;

    if (!on_device(_i))
        return;
    x = op_tensor(&f, HOB_DTYPE_F64, (double[]){0, 2, 5, 1}, two, 2);
    ck_assert_int_eq(hob_qr(f.scope, x, 1, &a, &b), HOB_OK);
    op_check(&f, "Q", a, (double[]){0, 1, 1, 0}, 4, 1e-15);
    op_check(&f, "R", b, (double[]){5, 1, 0, 2}, 4, 1e-15);
    ck_assert_int_eq(hob_lu(f.scope, x, &a, &b, &c), HOB_OK);
    op_check(&f, "P", a, (double[]){0, 1, 1, 0}, 4, 0);
    op_check(&f, "L", b, (double[]){1, 0, 0, 1}, 4, 0);
    op_check(&f, "U", c, (double[]){5, 1, 0, 2}, 4, 0);
    x = op_tensor(&f, HOB_DTYPE_F32, ones, eye, 2);
    ck_assert_int_eq(hob_qr(f.scope, x, 0, &a, &b), HOB_OK);
    op_check(&f, "Q of 1", a, ones, 9, 0);
    op_check(&f, "R of 1", b, ones, 9, 0);
    x = op_vector(&f, HOB_DTYPE_F32, ones, 3);
    (void)hob_lu(f.scope, x, &a, &b, &c);
    fails("a vector", HOB_ERR_SHAPE, "lu: x is f32[3]; a decomposition takes");
    (void)hob_qr(f.scope, x, 1, &a, &b);
    fails("a vector", HOB_ERR_SHAPE, "qr: x is f32[3]");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bodies_decompose");
    TCase *tc = tcase_create("devices");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_decompose_det, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_decompose_det_of_special_matrices, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_decompose_lu_and_qr, 0,
                        OP_DEVICE_COUNT * SIZES);
    tcase_add_loop_test(tc, test_decompose_known_factors, 0, OP_DEVICE_COUNT);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

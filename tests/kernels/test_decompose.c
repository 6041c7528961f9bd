/* SPDX-License-Identifier: Apache-2.0 */
/*
 * det, lu and qr of matrices that are worked on in blocks, against plain
 * elimination and Gram-Schmidt in long double. Both factorizations are unique
 * here: pivots are the greatest, the diagonal of R is not negative.
 *
 * Factors of random matrices differ by the rounding times what the matrix
 * makes of it: up to some hundred units for these sizes.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

static const int64_t sizes[][3] = {
    {1, 1, 1},     {3, 5, 5},   {2, 17, 17},  {1, 33, 33}, {1, 64, 64},
    {1, 130, 130}, {2, 40, 19}, {1, 19, 40},  {1, 100, 7}, {1, 7, 100},
    {1, 200, 65},  {1, 65, 97}, {20, 24, 24}, {1, 0, 3},   {1, 3, 0},
    {0, 4, 4},     {1, 1, 50},  {1, 50, 1}};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static const uint32_t dtypes[] = {HOB_DTYPE_F64, HOB_DTYPE_F32, HOB_DTYPE_F16,
                                  HOB_DTYPE_BF16};

static double tolerance_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-11
           : dtype == HOB_DTYPE_F32 ? 1e-6
           : dtype == HOB_DTYPE_F16 ? 2e-3
                                    : 2e-2;
}

/* ---- references ---- */

/* A [m, n] to L and U in one; ORDER [m] becomes the rows' old places. Returns
 * the product of the pivots with the sign of the order. */
static long double plain_lu(long double *a, int64_t *order, int64_t m,
                            int64_t n)
{
    long double product = 1;

    for (int64_t i = 0; i < m; i++)
        order[i] = i;
    for (int64_t j = 0; j < m && j < n; j++) {
        int64_t best = j, kept;

        for (int64_t i = j; i < m; i++)
            if (fabsl(a[i * n + j]) > fabsl(a[best * n + j]))
                best = i;
        product *= best == j ? a[best * n + j] : -a[best * n + j];
        kept = order[j];
        order[j] = order[best];
        order[best] = kept;
        for (int64_t c = 0; c < n; c++) {
            long double number = a[j * n + c];

            a[j * n + c] = a[best * n + c];
            a[best * n + c] = number;
        }
        for (int64_t i = j + 1; i < m; i++) {
            long double factor = a[i * n + j] / a[j * n + j];

            a[i * n + j] = factor;
            for (int64_t c = j + 1; c < n; c++)
                a[i * n + c] -= factor * a[j * n + c];
        }
    }
    return product;
}

/* The first K columns of A [m, n] to orthonormal ones in Q [m, k], each twice,
 * as once is not enough. */
static void plain_q(const long double *a, int64_t m, int64_t n, int64_t k,
                    long double *q)
{
    for (int64_t j = 0; j < k; j++) {
        long double square = 0;

        for (int64_t i = 0; i < m; i++)
            q[i * k + j] = a[i * n + j];
        for (int64_t p = 0; p < 2 * j; p++) {
            long double dot = 0;

            for (int64_t i = 0; i < m; i++)
                dot += q[i * k + p % j] * q[i * k + j];
            for (int64_t i = 0; i < m; i++)
                q[i * k + j] -= dot * q[i * k + p % j];
        }
        for (int64_t i = 0; i < m; i++)
            square += q[i * k + j] * q[i * k + j];
        for (int64_t i = 0; i < m; i++)
            q[i * k + j] /= sqrtl(square);
    }
}

/* ---- cases ---- */

/* |GOT - WANT| within TOLERANCE of the greatest number, SCALE. */
static void compare(const char *what, uint64_t seed, uint32_t dtype,
                    const int64_t *size, double got, long double want,
                    double scale)
{
    ck_assert_msg(fabs(got - (double)want) <= tolerance_of(dtype) * scale,
                  "%s of %s [%d,%d,%d]: %.17g, not %.17g (seed %llu)", what,
                  hob_dtype_name(dtype), (int)size[0], (int)size[1],
                  (int)size[2], got, (double)want, (unsigned long long)seed);
}

static void matrix_init(struct lab *lab, struct lab_tensor *x, uint32_t dtype,
                        const int64_t *size, enum lab_layout layout)
{
    lab_tensor_init(lab, x, dtype, 3, size, layout, 0, 0);
    for (int64_t i = 0; i < size[0] * size[1] * size[2]; i++)
        lab_set_at(&x->view, i, (double)lab_random(lab, -127, 127) / 64);
}

/* The matrix at AT of IN. */
static long double *copy_of(const double *in, const int64_t *size, int64_t at)
{
    const int64_t count = size[1] * size[2];
    long double *a = calloc((size_t)count + 1, sizeof(*a));

    for (int64_t i = 0; i < count; i++)
        a[i] = (long double)in[at * count + i];
    return a;
}

static void check_lu(struct lab *lab, uint32_t dtype, const int64_t *size,
                     enum lab_layout layout)
{
    const int64_t m = size[1], n = size[2], k = m < n ? m : n;
    const uint64_t seed = lab->seed;
    struct lab_tensor x;
    struct fake_call call;
    double *in;

    matrix_init(lab, &x, dtype, size, layout);
    in = lab_dense(&x.view);
    fake_call_init(&call, &lab->host, "lu");
    fake_call_view(&call, &x.view);
    fake_call_result(&call, dtype, 3, (int64_t[]){size[0], m, m});
    fake_call_result(&call, dtype, 3, (int64_t[]){size[0], m, k});
    fake_call_result(&call, dtype, 3, (int64_t[]){size[0], k, n});
    ck_assert_int_eq(lab_run(lab, &call, &flex_decompose_entries), HOB_OK);
    for (int64_t b = 0; b < size[0]; b++) {
        long double *a = copy_of(in, size, b);
        int64_t *order = calloc((size_t)m + 1, sizeof(*order));

        (void)plain_lu(a, order, m, n);
        for (int64_t i = 0; i < m; i++) {
            for (int64_t j = 0; j < m; j++)
                compare("P", seed, dtype, size,
                        lab_get_at(&call.results[0].view, (b * m + i) * m + j),
                        order[j] == i, 0);
            for (int64_t j = 0; j < k; j++)
                compare("L", seed, dtype, size,
                        lab_get_at(&call.results[1].view, (b * m + i) * k + j),
                        i > j ? a[i * n + j] : i == j, 1);
            for (int64_t j = 0; j < n && i < k; j++)
                compare("U", seed, dtype, size,
                        lab_get_at(&call.results[2].view, (b * k + i) * n + j),
                        i > j ? 0 : a[i * n + j], i > j ? 0 : 20);
        }
        free(a);
        free(order);
    }
    free(in);
    fake_call_release(&call);
    lab_tensor_release(&x);
}

static void check_det(struct lab *lab, const int64_t *size)
{
    const uint64_t seed = lab->seed;
    struct lab_tensor x;
    struct fake_call call;
    double *in;

    matrix_init(lab, &x, HOB_DTYPE_F64, size, LAB_CONTIGUOUS);
    in = lab_dense(&x.view);
    fake_call_init(&call, &lab->host, "det");
    fake_call_view(&call, &x.view);
    fake_call_result(&call, HOB_DTYPE_F64, 1, size);
    ck_assert_int_eq(lab_run(lab, &call, &flex_decompose_entries), HOB_OK);
    for (int64_t b = 0; b < size[0]; b++) {
        long double *a = copy_of(in, size, b);
        int64_t *order = calloc((size_t)size[1] + 1, sizeof(*order));
        long double want = plain_lu(a, order, size[1], size[2]);

        compare("det", seed, HOB_DTYPE_F64, size,
                lab_get_at(&call.results[0].view, b), want,
                (double)fabsl(want));
        free(a);
        free(order);
    }
    free(in);
    fake_call_release(&call);
    lab_tensor_release(&x);
}

/* Element (I, J) of Q' A. */
static long double projected(const long double *q, const long double *a,
                             int64_t m, int64_t n, int64_t k, int64_t i,
                             int64_t j)
{
    long double sum = 0;

    for (int64_t p = 0; p < m; p++)
        sum += q[p * k + i] * a[p * n + j];
    return sum;
}

static void check_qr(struct lab *lab, uint32_t dtype, const int64_t *size,
                     enum lab_layout layout, int reduced)
{
    const int64_t m = size[1], n = size[2], k = m < n ? m : n;
    const int64_t count = reduced ? k : m;
    const uint64_t seed = lab->seed;
    struct lab_tensor x;
    struct fake_call call;
    double *in;

    matrix_init(lab, &x, dtype, size, layout);
    in = lab_dense(&x.view);
    fake_call_init(&call, &lab->host, "qr");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_bool(reduced));
    fake_call_result(&call, dtype, 3, (int64_t[]){size[0], m, count});
    fake_call_result(&call, dtype, 3, (int64_t[]){size[0], count, n});
    ck_assert_int_eq(lab_run(lab, &call, &flex_decompose_entries), HOB_OK);
    for (int64_t b = 0; b < size[0]; b++) {
        const struct hob_view *q_view = &call.results[0].view;
        const struct hob_view *r_view = &call.results[1].view;
        long double *a = copy_of(in, size, b);
        long double *q = calloc((size_t)(m * k) + 1, sizeof(*q));

        plain_q(a, m, n, k, q);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < k; j++)
                compare("Q", seed, dtype, size,
                        lab_get_at(q_view, (b * m + i) * count + j),
                        q[i * k + j], 1);
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < n; j++)
                compare("R", seed, dtype, size,
                        lab_get_at(r_view, (b * count + i) * n + j),
                        i > j ? 0 : projected(q, a, m, n, k, i, j),
                        i > j ? 0 : 20);
        /* The other columns are orthonormal, too: one is enough to see. */
        for (int64_t j = 0; j < count && k < count; j++) {
            double dot = 0;

            for (int64_t i = 0; i < m; i++)
                dot += lab_get_at(q_view, (b * m + i) * count + j) *
                       lab_get_at(q_view, (b * m + i) * count + count - 1);
            compare("Q' Q", seed, dtype, size, dot, j == count - 1, 10);
        }
        free(a);
        free(q);
    }
    free(in);
    fake_call_release(&call);
    lab_tensor_release(&x);
}

START_TEST(test_decompose_equals_plain)
{
    const int64_t *size = sizes[_i];
    struct lab lab;

    for (int isa = 0; lab_isas[isa]; isa++) {
        if (!lab_open(&lab, 1 + isa % 3, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++) {
            const enum lab_layout layout =
                (enum lab_layout)((_i + d + isa) % LAB_LAYOUT_COUNT_);

            if (d && d != 1 + isa % 3)
                continue; /* f64 for all, one other */
            check_lu(&lab, dtypes[d], size, layout);
            check_qr(&lab, dtypes[d], size, layout, 1);
            check_qr(&lab, dtypes[d], size, layout, 0);
        }
        if (size[1] == size[2])
            check_det(&lab, size);
        lab_close(&lab);
    }
}
END_TEST

/* Without rank, in every block: U and R end in zeros, nothing divides by 0. */
START_TEST(test_decompose_of_rank_one)
{
    const int64_t shape[] = {1, 70, 70};
    struct lab lab;
    struct lab_tensor x;
    struct fake_call call;

    ck_assert(lab_open(&lab, 2, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_F64, 3, shape, LAB_CONTIGUOUS, 0, 0);
    for (int64_t i = 0; i < 70 * 70; i++)
        lab_set_at(&x.view, i, (double)((1 + i / 70 % 4) * (1 + i % 70 % 4)));
    fake_call_init(&call, &lab.host, "lu");
    fake_call_view(&call, &x.view);
    for (int i = 0; i < 3; i++)
        fake_call_result(&call, HOB_DTYPE_F64, 3, shape);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_decompose_entries), HOB_OK);
    for (int64_t i = 0; i < 70 * 70; i++) {
        ck_assert(isfinite(lab_get_at(&call.results[1].view, i)));
        if (i >= 70)
            ck_assert(lab_get_at(&call.results[2].view, i) == 0);
    }
    fake_call_release(&call);
    fake_call_init(&call, &lab.host, "qr");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_bool(1));
    fake_call_result(&call, HOB_DTYPE_F64, 3, shape);
    fake_call_result(&call, HOB_DTYPE_F64, 3, shape);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_decompose_entries), HOB_OK);
    for (int64_t i = 0; i < 70; i++)
        for (int64_t j = 0; j < 70; j++) {
            double sum = 0, dot = 0;

            for (int64_t p = 0; p < 70; p++) {
                sum += lab_get_at(&call.results[0].view, i * 70 + p) *
                       lab_get_at(&call.results[1].view, p * 70 + j);
                dot += lab_get_at(&call.results[0].view, p * 70 + i) *
                       lab_get_at(&call.results[0].view, p * 70 + j);
            }
            ck_assert_double_eq_tol(
                sum, (double)(1 + i % 4) * (double)(1 + j % 4), 1e-11);
            ck_assert_double_eq_tol(dot, i == j, 1e-12);
        }
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decompose");
    TCase *tcase = tcase_create("decompose");

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, test_decompose_equals_plain, 0, SIZES);
    tcase_add_test(tcase, test_decompose_of_rank_one);
    suite_add_tcase(suite, tcase);
    return hob_check_main(suite);
}

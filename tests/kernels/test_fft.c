/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rfft and irfft against sums in long double.
 *
 * The error of a result is its distance from the sums, relative to their
 * length (the 2-norm): a fast transform promises no more for one coefficient,
 * which may cancel. It grows as the logarithm of the length: 0.6 units of
 * rounding a doubling are allowed; a generic radix r adds its own sums, so its
 * square root counts, too. A convolution is three transforms.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

static const uint32_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                  HOB_DTYPE_BF16};

/* Half a unit in the last place of 1. */
static double rounding_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1.2e-16
           : dtype == HOB_DTYPE_F32 ? 6e-8
           : dtype == HOB_DTYPE_F16 ? 5e-4
                                    : 4e-3;
}

static int64_t greatest_prime(int64_t n)
{
    int64_t most = 1;

    for (int64_t p = 2; p <= n; p++)
        for (; n % p == 0; n /= p)
            most = p;
    return most;
}

static double tolerance_of(uint32_t dtype, int64_t n)
{
    double steps = log2((double)n) + 2;
    int64_t prime = greatest_prime(n);

    if (prime > 61)
        steps *= 3;
    else
        steps += sqrt((double)prime);
    return 0.6 * rounding_of(dtype) * steps;
}

/* ---- references ---- */

static const long double pi = 3.14159265358979323846264338327950288L;

static void roots(int64_t n, long double *cosine, long double *sine)
{
    for (int64_t k = 0; k < n; k++) {
        cosine[k] = cosl(2 * pi * (long double)k / (long double)n);
        sine[k] = sinl(2 * pi * (long double)k / (long double)n);
    }
}

/* Coefficient K of N numbers STEP apart. */
static void coefficient(const double *x, int64_t step, int64_t given, int64_t n,
                        const long double *cosine, const long double *sine,
                        int64_t k, double out[2])
{
    long double re = 0, im = 0;
    int64_t at = 0;

    for (int64_t j = 0; j < n && j < given; j++) {
        re += (long double)x[j * step] * cosine[at];
        im -= (long double)x[j * step] * sine[at];
        at = (at + k) % n;
    }
    out[0] = (double)re;
    out[1] = (double)im;
}

/* Number J of the N whose coefficients, GIVEN of them, are RE and IM. */
static double number(const double *re, const double *im, int64_t step,
                     int64_t given, int64_t n, const long double *cosine,
                     const long double *sine, int64_t j)
{
    long double sum = 0;
    int64_t at = 0;

    for (int64_t k = 0; k <= n / 2 && k < given; k++) {
        const int is_single = k == 0 || 2 * k == n;
        const long double y = is_single ? 0 : (long double)im[k * step];

        sum += (is_single ? 1 : 2) *
               ((long double)re[k * step] * cosine[at] - y * sine[at]);
        at = (at + j) % n;
    }
    return (double)(sum / (long double)n);
}

/* ---- a case ---- */

static uint64_t seed_of(const struct lab *lab)
{
    return lab->seed;
}

/* Random numbers with a fraction, in the places of VIEW. */
static void fill(struct lab *lab, const struct hob_view *view, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        lab_set_at(view, i, (double)lab_random(lab, -1000, 1000) / 512);
}

struct error {
    double square, norm;
};

static void add_error(struct error *error, double got, double wanted)
{
    error->square += (got - wanted) * (got - wanted);
    error->norm += wanted * wanted;
    if (isnan(got))
        error->square = (double)INFINITY;
}

static double relative(const struct error *error)
{
    return sqrt(error->square) / (error->norm > 0 ? sqrt(error->norm) : 1);
}

/* A row along dimension 1 of three. */
static int64_t row_start(const int64_t *shape, int64_t row)
{
    return row / shape[2] * shape[1] * shape[2] + row % shape[2];
}

/* An unset n is that of SHAPE. Rows are checked each by itself; at most about
 * CHECKS coefficients of each. */
static void check_rfft(struct lab *lab, uint32_t dtype, const int64_t *shape,
                       int64_t n, enum lab_layout layout, int64_t checks)
{
    const int64_t length = n ? n : shape[1], half = length / 2 + 1;
    const int64_t count = shape[0] * shape[1] * shape[2];
    const int64_t out_shape[] = {shape[0], half, shape[2]};
    long double *cosine = calloc((size_t)length, sizeof(*cosine));
    long double *sine = calloc((size_t)length, sizeof(*sine));
    const uint64_t seed = seed_of(lab);
    struct lab_tensor x;
    struct fake_call call;
    double *in;

    roots(length, cosine, sine);
    lab_tensor_init(lab, &x, dtype, 3, shape, layout, 0, 0);
    fill(lab, &x.view, count);
    in = lab_dense(&x.view);
    fake_call_init(&call, &lab->host, "rfft");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_i64(-2));
    fake_call_value(&call, n ? hob_i64(n) : hob_none());
    fake_call_result(&call, dtype, 3, out_shape);
    fake_call_result(&call, dtype, 3, out_shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_fft_entries), HOB_OK);
    for (int64_t row = 0; row < shape[0] * shape[2]; row++) {
        const int64_t from = row_start(shape, row);
        const int64_t to = row_start(out_shape, row);
        struct error error = {0, 0};

        for (int64_t k = 0; k < half; k += 1 + half / (checks + 1)) {
            const int64_t at = to + k * shape[2];
            double wanted[2];

            coefficient(in + from, shape[2], shape[1], length, cosine, sine, k,
                        wanted);
            add_error(&error, lab_get_at(&call.results[0].view, at), wanted[0]);
            add_error(&error, lab_get_at(&call.results[1].view, at), wanted[1]);
        }
        ck_assert_msg(relative(&error) <= tolerance_of(dtype, length),
                      "rfft %s n %d (of %d) row %d of %d: error %g, allowed %g "
                      "(seed %llu)",
                      hob_dtype_name(dtype), (int)length, (int)shape[1],
                      (int)row, (int)(shape[0] * shape[2]), relative(&error),
                      tolerance_of(dtype, length), (unsigned long long)seed);
    }
    free(in);
    free(cosine);
    free(sine);
    fake_call_release(&call);
    lab_tensor_release(&x);
}

static void check_irfft(struct lab *lab, uint32_t dtype, const int64_t *shape,
                        int64_t n, enum lab_layout layout, int64_t checks)
{
    const int64_t length = n ? n : 2 * (shape[1] - 1);
    const int64_t count = shape[0] * shape[1] * shape[2];
    const int64_t out_shape[] = {shape[0], length, shape[2]};
    long double *cosine = calloc((size_t)length, sizeof(*cosine));
    long double *sine = calloc((size_t)length, sizeof(*sine));
    const uint64_t seed = seed_of(lab);
    struct lab_tensor a, b;
    struct fake_call call;
    double *re, *im;

    roots(length, cosine, sine);
    lab_tensor_init(lab, &a, dtype, 3, shape, layout, 0, 0);
    lab_tensor_init(lab, &b, dtype, 3, shape, LAB_CONTIGUOUS, 0, 0);
    fill(lab, &a.view, count);
    fill(lab, &b.view, count);
    re = lab_dense(&a.view);
    im = lab_dense(&b.view);
    fake_call_init(&call, &lab->host, "irfft");
    fake_call_view(&call, &a.view);
    fake_call_view(&call, &b.view);
    fake_call_value(&call, hob_i64(1));
    fake_call_value(&call, n ? hob_i64(n) : hob_none());
    fake_call_result(&call, dtype, 3, out_shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_fft_entries), HOB_OK);
    for (int64_t row = 0; row < shape[0] * shape[2]; row++) {
        const int64_t from = row_start(shape, row);
        const int64_t to = row_start(out_shape, row);
        struct error error = {0, 0};

        for (int64_t j = 0; j < length; j += 1 + length / (checks + 1))
            add_error(&error,
                      lab_get_at(&call.results[0].view, to + j * shape[2]),
                      number(re + from, im + from, shape[2], shape[1], length,
                             cosine, sine, j));
        ck_assert_msg(relative(&error) <= tolerance_of(dtype, length),
                      "irfft %s n %d (of %d) row %d of %d: error %g, allowed "
                      "%g (seed %llu)",
                      hob_dtype_name(dtype), (int)length, (int)shape[1],
                      (int)row, (int)(shape[0] * shape[2]), relative(&error),
                      tolerance_of(dtype, length), (unsigned long long)seed);
    }
    free(re);
    free(im);
    free(cosine);
    free(sine);
    fake_call_release(&call);
    lab_tensor_release(&a);
    lab_tensor_release(&b);
}

/* Every small length, then every kind of factor: powers, products, a generic
 * radix, primes above it, and twice those. */
static const int64_t lengths[] = {
    1,   2,   3,   4,   5,    6,    7,    8,    9,    10,   11,   12,  13,  14,
    15,  16,  17,  18,  19,   20,   21,   22,   24,   25,   26,   27,  30,  31,
    32,  33,  36,  37,  45,   48,   49,   50,   53,   60,   61,   64,  67,  72,
    77,  96,  97,  100, 101,  121,  122,  125,  127,  128,  134,  144, 169, 194,
    200, 210, 243, 256, 257,  258,  343,  360,  384,  420,  487,  500, 512, 514,
    521, 625, 720, 750, 1000, 1009, 1021, 1024, 1042, 1155, 1280, 1331};

enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

START_TEST(test_fft_of_every_length)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        const int64_t n = lengths[_i];
        /* Alone, a few, a group, more than one group; inside and last. */
        const int64_t shapes[][3] = {{1, n, 1},  {3, n, 1}, {19, n, 1},
                                     {1, n, 21}, {2, n, 5}, {70, n, 1}};
        const int last = n > 300 ? 3 : 6;

        if (!lab_open(&lab, 2, lab_isas[isa]))
            continue;
        for (int s = 0; s < last; s++) {
            const int64_t half[] = {shapes[s][0], n / 2 + 1, shapes[s][2]};
            const enum lab_layout layout =
                (enum lab_layout)((_i + isa + s) % LAB_LAYOUT_COUNT_);

            check_rfft(&lab, dtypes[(s + _i) % 2], shapes[s], 0, layout, 30);
            check_irfft(&lab, dtypes[(s + _i + 1) % 2], half, n, layout, 30);
        }
        check_rfft(&lab, dtypes[2 + _i % 2], shapes[_i % 3], 0,
                   (enum lab_layout)(_i % LAB_LAYOUT_COUNT_), 10);
        lab_close(&lab);
    }
}
END_TEST

/* Cut, or filled with zeros, and a dimension without elements. */
START_TEST(test_fft_of_other_lengths)
{
    static const int64_t given[] = {0, 1, 5, 8, 33};
    static const int64_t wanted[] = {1, 2, 7, 8, 16, 67, 134};
    struct lab lab;

    ck_assert(lab_open(&lab, 2, NULL));
    for (size_t g = 0; g < sizeof(given) / sizeof(given[0]); g++)
        for (size_t w = 0; w < sizeof(wanted) / sizeof(wanted[0]); w++)
            for (int d = 0; d < 4; d++) {
                const int64_t shape[] = {1 + (int64_t)(g + w) % 11, given[g],
                                         1 + (int64_t)(g * w) % 3};
                const enum lab_layout layout =
                    (enum lab_layout)((g + w) % LAB_LAYOUT_COUNT_);

                check_rfft(&lab, dtypes[d], shape, wanted[w], layout, 200);
                check_irfft(&lab, dtypes[d], shape, wanted[w], layout, 200);
            }
    lab_close(&lab);
}
END_TEST

/* Long enough for threads within a transform and tiles of its columns. */
static const int64_t long_lengths[] = {1 << 17, 100000, 131101,
                                       65537,   177147, 2 * 65537};

START_TEST(test_fft_of_long_rows)
{
    const int64_t n = long_lengths[_i];
    const int64_t shape[] = {1, n, 1}, half[] = {1, n / 2 + 1, 1};
    struct lab lab;

    ck_assert(lab_open(&lab, 3, NULL));
    for (int d = 0; d < 2; d++) {
        check_rfft(&lab, dtypes[d], shape, 0, LAB_CONTIGUOUS, 12);
        check_irfft(&lab, dtypes[d], half, n, LAB_REVERSED, 12);
    }
    lab_close(&lab);
}
END_TEST

/* A row of NaN must not reach its neighbours, nor may what is not read. */
START_TEST(test_fft_keeps_rows_apart)
{
    static const int64_t sizes[] = {16, 15, 67, 640};
    const int64_t n = sizes[_i], half = n / 2 + 1, rows = 20, bad = 7;
    struct lab lab;
    struct lab_tensor x, im;
    struct fake_call call;

    ck_assert(lab_open(&lab, 2, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 2, (int64_t[]){rows, n},
                    LAB_CONTIGUOUS, -9, 9);
    for (int64_t i = 0; i < n; i++)
        lab_set_at(&x.view, bad * n + i, (double)NAN);
    fake_call_init(&call, &lab.host, "rfft");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_i64(1));
    fake_call_value(&call, hob_none());
    fake_call_result(&call, HOB_DTYPE_F32, 2, (int64_t[]){rows, half});
    fake_call_result(&call, HOB_DTYPE_F32, 2, (int64_t[]){rows, half});
    ck_assert_int_eq(lab_run(&lab, &call, &flex_fft_entries), HOB_OK);
    for (int64_t i = 0; i < rows * half; i++)
        ck_assert_int_eq(isnan(lab_get_at(&call.results[0].view, i)),
                         i / half == bad);
    fake_call_release(&call);
    lab_tensor_release(&x);

    lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 2, (int64_t[]){rows, half},
                    LAB_CONTIGUOUS, -9, 9);
    lab_tensor_init(&lab, &im, HOB_DTYPE_F32, 2, (int64_t[]){rows, half},
                    LAB_CONTIGUOUS, -9, 9);
    for (int64_t i = 0; i < rows; i++) {
        lab_set_at(&im.view, i * half, (double)NAN);
        if (n % 2 == 0)
            lab_set_at(&im.view, i * half + n / 2, (double)INFINITY);
    }
    fake_call_init(&call, &lab.host, "irfft");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &im.view);
    fake_call_value(&call, hob_i64(1));
    fake_call_value(&call, hob_i64(n));
    fake_call_result(&call, HOB_DTYPE_F32, 2, (int64_t[]){rows, n});
    ck_assert_int_eq(lab_run(&lab, &call, &flex_fft_entries), HOB_OK);
    for (int64_t i = 0; i < rows * n; i++)
        ck_assert(isfinite(lab_get_at(&call.results[0].view, i)));
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&im);
    lab_close(&lab);
}
END_TEST

START_TEST(test_fft_of_no_rows)
{
    struct lab lab;

    ck_assert(lab_open(&lab, 2, NULL));
    check_rfft(&lab, HOB_DTYPE_F32, (int64_t[]){0, 16, 3}, 0, LAB_CONTIGUOUS,
               4);
    check_irfft(&lab, HOB_DTYPE_F64, (int64_t[]){2, 9, 0}, 67, LAB_CONTIGUOUS,
                4);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fft");
    TCase *tcase = tcase_create("fft");

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, test_fft_of_every_length, 0, LENGTHS);
    tcase_add_test(tcase, test_fft_of_other_lengths);
    tcase_add_loop_test(tcase, test_fft_of_long_rows, 0,
                        (int)(sizeof(long_lengths) / sizeof(long_lengths[0])));
    tcase_add_loop_test(tcase, test_fft_keeps_rows_apart, 0, 4);
    tcase_add_test(tcase, test_fft_of_no_rows);
    suite_add_tcase(suite, tcase);
    return hob_check_main(suite);
}

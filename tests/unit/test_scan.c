/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cumsum, cumprod, cummax and cummin along lines of lengths beside what GPUs'
 * kernels take at once, of all widths, at odd places, along and across, with
 * NaN. The truth is a loop in f64; numbers are such that all is exact.
 */
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum scan { SUM, PROD, MAX, MIN, SCANS };

static const char *const names[] = {"cumsum", "cumprod", "cummax", "cummin"};

/* Lines of N; across: elements of a line are LINES apart. */
static const struct shape {
    int64_t lines, n;
    int is_across;
} shapes[] = {
    {1, 1, 0},     {3, 5, 0},    {2, 63, 0},   {3, 129, 0},   {1, 512, 0},
    {2, 4095, 0},  {2, 4096, 0}, {3, 4097, 0}, {1, 8200, 0},  {1, 16384, 0},
    {2, 20001, 0}, {300, 33, 0}, {9, 700, 1},  {40, 1300, 1},
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_I32,
                                   HOB_DTYPE_I64, HOB_DTYPE_U8};

enum { DTYPES = sizeof(dtypes) / sizeof(dtypes[0]) };

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

static double both(enum scan scan, double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return scan == SUM    ? a + b
           : scan == PROD ? a * b
           : scan == MAX  ? fmax(a, b)
                          : fmin(a, b);
}

/* From -3 to 3, or 0 and 1 where there is no sign; of products 1 but for some
 * that keep them exact. */
static double number(enum scan scan, hob_dtype dtype, int64_t i,
                     uint64_t *state)
{
    const double x = floor((op_random(state) + 1) * 3.5) - 3;

    if (scan == PROD && dtype <= HOB_DTYPE_BF16)
        return i % 7 == 3 ? -2 : i % 7 == 5 ? .5 : 1;
    if (scan == PROD)
        return i % 7 != 3 ? 1 : dtype == HOB_DTYPE_U8 ? 3 : -1;
    return dtype == HOB_DTYPE_U8 ? x > 2 : x;
}

static hob_tensor *compute(enum scan scan, hob_tensor *x, int64_t dim)
{
    switch (scan) {
    case SUM:
        return hob_cumsum(f.scope, x, dim);
    case PROD:
        return hob_cumprod(f.scope, x, dim);
    case MAX:
        return hob_cummax(f.scope, x, dim);
    default:
        return hob_cummin(f.scope, x, dim);
    }
}

static void check(enum scan scan, hob_dtype dtype, const struct shape *of,
                  int is_shifted)
{
    const int64_t count = of->lines * of->n;
    const int64_t step = of->is_across ? of->lines : 1;
    const int64_t sizes[] = {of->is_across ? of->n : of->lines,
                             of->is_across ? of->lines : of->n};
    const int64_t all[] = {count + is_shifted}, first = is_shifted, one = 1;
    double *x = calloc((size_t)all[0], sizeof(*x));
    double *y = calloc((size_t)count, sizeof(*y));
    uint64_t state = 5;
    hob_tensor *flat;
    char text[96];

    ck_assert(x && y);
    for (int64_t i = 0; i < count; i++)
        x[i + is_shifted] = number(scan, dtype, i, &state);
    if (dtype == HOB_DTYPE_F32 && count > 100)
        x[is_shifted + count / 2] = NAN;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = of->is_across ? i / of->lines : i % of->n;

        y[i] =
            at ? both(scan, y[i - step], x[i + is_shifted]) : x[i + is_shifted];
        if (dtype == HOB_DTYPE_U8)
            y[i] = fmod(y[i], 256);
    }
    flat = op_tensor(&f, dtype, x, all, 1);
    snprintf(text, sizeof(text), "%s %s, %d of %d%s", names[scan],
             hob_dtype_name(dtype), (int)of->lines, (int)of->n,
             is_shifted ? ", shifted" : "");
    flat = hob_slice(f.scope, flat, &first, 1, all, 1, &one, 1);
    op_check(&f, text,
             compute(scan, hob_reshape(f.scope, flat, sizes, 2),
                     of->is_across ? 0 : 1),
             y, count, 0);
    free(x);
    free(y);
}

/* A slow compiler is asked for two scans of two widths at each length, others
 * at the next. */
static int is_left_out(enum scan scan, int d, int shape)
{
    return test_device_is_slow() &&
           ((shape + d) % SCANS != (int)scan ||
            (d != shape % DTYPES && d != (shape + 2) % DTYPES));
}

START_TEST(test_scans)
{
    op_fixture_open(&f, 1);
    if (!f.device)
        return;
    for (int scan = SUM; scan < SCANS; scan++)
        for (int d = 0; d < DTYPES; d++)
            for (int shifted = 0; shifted < 2; shifted++)
                if (!is_left_out((enum scan)scan, d, _i))
                    check((enum scan)scan, dtypes[d], &shapes[_i], shifted);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scan");
    TCase *tc = tcase_create("device");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_scans, 0, SHAPES);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

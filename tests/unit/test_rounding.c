/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f32 rounded to f16 and bf16 as IEEE 754 has it, to nearest even, against the
 * definition in double: alone, and in the middle of a chain of ops.
 */
#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Each exponent and sign with each of these fractions, and with what is around
 * the middle between two numbers of the shorter formats. */
enum { EXPONENTS = 256, FRACTIONS = 40, COUNT = 2 * EXPONENTS * FRACTIONS };

static struct op_fixture f;
static double numbers[COUNT], expected[COUNT];

static void teardown(void)
{
    op_fixture_close(&f);
}

static const struct format {
    hob_dtype dtype;
    int digits, least; /* of precision; the least exponent, as frexp has it */
    double most;
} formats[] = {{HOB_DTYPE_F16, 11, -13, 65504},
               {HOB_DTYPE_BF16, 8, -125, 0x1.fep127}};

enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

static double rounded(const struct format *format, double x)
{
    double unit, y;
    int exponent;

    if (x == 0 || !isfinite(x))
        return x;
    frexp(x, &exponent);
    if (exponent < format->least)
        exponent = format->least;
    unit = ldexp(1, exponent - format->digits);
    y = rint(x / unit) * unit;
    return fabs(y) > format->most ? copysign(INFINITY, x) : y;
}

/* Fraction number K of 23 bits: the lowest ones, and those about a half of the
 * last place of either format, odd and even. */
static uint32_t fraction(int k)
{
    static const uint32_t parts[] = {
        0,       1,       0x0fff,  0x1000,  0x1001,   0x1fff,  0x2000,
        0x2fff,  0x3000,  0x3001,  0x7fff,  0x8000,   0x8001,  0xffff,
        0x10000, 0x17fff, 0x18000, 0x18001, 0x400000, 0x7fefff};
    const uint32_t part = parts[k % 20];

    return k < 20 ? part : 0x7fffff - part;
}

static void make_numbers(void)
{
    int n = 0;

    for (uint32_t high = 0; high < 2 * EXPONENTS; high++)
        for (int k = 0; k < FRACTIONS; k++) {
            const uint32_t bits = high << 23 | fraction(k);
            float x;

            memcpy(&x, &bits, sizeof(x));
            numbers[n++] = (double)x;
        }
}

/* A device may take subnormal numbers of f32 for 0, of which bf16's are some. */
static int is_flushed(double got, double x)
{
    return fabs(x) < 0x1p-126 && got == 0;
}

static void check(const char *what, hob_tensor *tensor)
{
    static double got[COUNT];

    op_read(&f, tensor, got, COUNT);
    for (int i = 0; i < COUNT; i++) {
        if (isnan(numbers[i]) ? isnan(got[i])
                              : got[i] == expected[i] &&
                                    !signbit(got[i]) == !signbit(expected[i]))
            continue;
        ck_assert_msg(is_flushed(got[i], numbers[i]), "%s of %a: %a, not %a",
                      what, numbers[i], got[i], expected[i]);
    }
}

START_TEST(test_rounding)
{
    const struct format *format = &formats[_i / 2];
    const char *name = hob_dtype_name(format->dtype);
    hob_tensor *x, *y;

    op_fixture_open(&f, 1 + _i % 2);
    if (!f.device)
        return;
    make_numbers();
    for (int i = 0; i < COUNT; i++)
        expected[i] = rounded(format, numbers[i]);
    x = op_vector(&f, HOB_DTYPE_F32, numbers, COUNT);
    y = hob_cast(f.scope, x, format->dtype);
    check(name, y);
    /* Signs change nothing, in f32 or in the shorter format. */
    y = hob_cast(f.scope, hob_neg(f.scope, x), format->dtype);
    y = hob_neg(f.scope, hob_add_scalar(f.scope, y, hob_f64(0)));
    y = hob_cast(f.scope, y, HOB_DTYPE_F32);
    for (int i = 0; i < COUNT; i++)
        if (expected[i] == 0)
            expected[i] = -0.0; /* -(-x + 0), -(0 + 0) */
    check(name, y);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rounding");
    TCase *tc = tcase_create("rounding");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, test_rounding, 0, 2 * FORMATS);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

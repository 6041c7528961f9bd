/* SPDX-License-Identifier: Apache-2.0 */
#include "half.h"

#include "hob_check.h"

#include <math.h>

static const struct sample {
    uint16_t bits;
    float number;
} f16_samples[] = {
    {0x0000, 0.0f},      {0x8000, -0.0f},           {0x3c00, 1.0f},
    {0xc000, -2.0f},     {0x7bff, 65504.0f},        {0xfbff, -65504.0f},
    {0x0400, 0x1p-14f},  {0x03ff, 1023 * 0x1p-24f}, {0x0001, 0x1p-24f},
    {0x8001, -0x1p-24f}, {0x3555, 0.333251953125f}, {0x7c00, INFINITY},
    {0xfc00, -INFINITY},
};

START_TEST(test_half_f16_samples)
{
    float got = hob__f32_of_f16(f16_samples[_i].bits);

    ck_assert_mem_eq(&got, &f16_samples[_i].number, sizeof(got));
}
END_TEST

/* Every pattern against the definition of the format, in f64. */
START_TEST(test_half_f16_all)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        int exponent = (int)(bits >> 10 & 0x1f);
        double fraction = (double)(bits & 0x3ff) / 1024;
        double expected = exponent ? ldexp(1 + fraction, exponent - 15)
                                   : ldexp(fraction, -14);
        float got = hob__f32_of_f16((uint16_t)bits);

        if (exponent == 31 && bits & 0x3ff) {
            ck_assert(isnan(got));
            continue;
        }
        if (exponent == 31)
            expected = INFINITY;
        ck_assert_double_eq((double)got, bits & 0x8000 ? -expected : expected);
        ck_assert_int_eq(!!signbit(got), !!(bits & 0x8000));
    }
}
END_TEST

START_TEST(test_half_bf16)
{
    ck_assert_float_eq(hob__f32_of_bf16(0x3f80), 1.0f);
    ck_assert_float_eq(hob__f32_of_bf16(0xc040), -3.0f);
    ck_assert(isinf(hob__f32_of_bf16(0x7f80)));
    ck_assert(isnan(hob__f32_of_bf16(0x7fc0)));
    ck_assert_float_eq(hob__f32_of_bf16(0x0001), 0x1p-133f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("half");
    TCase *tc = tcase_create("half");

    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, test_half_f16_samples, 0,
                        sizeof(f16_samples) / sizeof(f16_samples[0]));
    tcase_add_test(tc, test_half_f16_all);
    tcase_add_test(tc, test_half_bf16);
    return hob_check_main(suite);
}

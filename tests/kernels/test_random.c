/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws: their words and their distribution, as docs/RANDOM.md says.
 */
#include "flex_case.h"
#include "hob_check.h"

#include <hob/philox.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct fake_host host;
static struct flex_device *device;

static void setup(void)
{
    fake_host_init(&host, 3);
    device = flex_case_open(&host, flex_kernels_best()->isa);
}

static void teardown(void)
{
    flex_case_close(device);
}

/* Draw COUNT elements of DTYPE with OP and its numbers A and B. */
static hob_status draw(struct fake_call *fake, const char *op, uint32_t dtype,
                       int64_t count, double a, double b, uint64_t seed,
                       uint64_t offset)
{
    fake_call_init(fake, &host, op);
    fake_call_value(fake, hob_value_i64s(&count, 1));
    fake_call_value(fake, hob_f64(a));
    if (strcmp(op, "random_bernoulli") != 0)
        fake_call_value(fake, hob_f64(b));
    fake_call_value(fake, hob_none());
    fake_call_value(fake, hob_value_dtype(dtype));
    fake_call_value(fake, hob_i64((int64_t)seed));
    fake_call_value(fake, hob_i64((int64_t)offset));
    fake_call_result(fake, dtype, 1, &count);
    return fake_call_run(fake,
                         fake_entry_find(flex_random_entries.entries,
                                         flex_random_entries.count, op),
                         device);
}

static double element(const struct fake_call *fake, int64_t index)
{
    return (double)flex_case_get(fake->results[0].view.dtype,
                                 flex_case_at(&fake->results[0].view, index));
}

/* Salmon et al. 2011, known-answer tests: all zero, and all ones. */
START_TEST(test_philox_known_answers)
{
    static const uint32_t zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                      0x9b00dbd8};
    static const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                     0x6d5451fd};
    uint32_t counter[4] = {0, 0, 0, 0}, key[2] = {0, 0};

    hob_philox_rounds(counter, key);
    ck_assert_mem_eq(counter, zeros, sizeof(zeros));
    memset(counter, 0xff, sizeof(counter));
    memset(key, 0xff, sizeof(key));
    hob_philox_rounds(counter, key);
    ck_assert_mem_eq(counter, ones, sizeof(ones));
}
END_TEST

START_TEST(test_uniform_uses_word_i)
{
    enum { COUNT = 30001 };
    const uint64_t seed = UINT64_C(0x123456789abcdef0), offset = 77;
    struct fake_call fake;

    ck_assert_int_eq(draw(&fake, "random_uniform", HOB_DTYPE_F32, COUNT, -2, 3,
                          seed, offset),
                     HOB_OK);
    ck_assert(fake_tensor_intact(&fake.results[0]));
    for (int64_t i = 0; i < COUNT; i++) {
        uint32_t words[4];
        float wanted;

        hob_philox_block(seed, offset + (uint64_t)i / 4, words);
        wanted = (float)(-2 + (double)(words[i % 4] >> 8) * 0x1p-24 * 5);
        if ((float)element(&fake, i) != wanted)
            ck_abort_msg("element %d", (int)i);
    }
    fake_call_release(&fake);
    ck_assert_int_eq(
        draw(&fake, "random_uniform", HOB_DTYPE_F64, COUNT, 0, 1, seed, offset),
        HOB_OK);
    for (int64_t i = 0; i < COUNT; i++) {
        uint32_t words[4];

        hob_philox_block(seed, offset + (uint64_t)i / 2, words);
        if (element(&fake, i) !=
            hob_philox_f64(words[i % 2 * 2], words[i % 2 * 2 + 1]))
            ck_abort_msg("element %d of f64", (int)i);
    }
    fake_call_release(&fake);
}
END_TEST

START_TEST(test_uniform_stays_below_high)
{
    static const uint32_t dtypes[] = {HOB_DTYPE_F64, HOB_DTYPE_F32,
                                      HOB_DTYPE_F16, HOB_DTYPE_BF16};

    for (int d = 0; d < 4; d++) {
        struct fake_call fake;

        ck_assert_int_eq(
            draw(&fake, "random_uniform", dtypes[d], 100000, 3, 4, 5, 0),
            HOB_OK);
        for (int64_t i = 0; i < 100000; i++)
            if (!(element(&fake, i) >= 3 && element(&fake, i) < 4))
                ck_abort_msg("%s gives %g", hob_dtype_name(dtypes[d]),
                             element(&fake, i));
        fake_call_release(&fake);
    }
}
END_TEST

START_TEST(test_uniform_integers_have_equal_shares)
{
    struct fake_call fake;
    int counts[10] = {0};

    ck_assert_int_eq(
        draw(&fake, "random_uniform", HOB_DTYPE_I32, 100000, -5, 5, 9, 0),
        HOB_OK);
    for (int64_t i = 0; i < 100000; i++)
        counts[(int)element(&fake, i) + 5]++;
    for (int i = 0; i < 10; i++)
        ck_assert_int_lt(abs(counts[i] - 10000), 500); /* 5 sigma */
    fake_call_release(&fake);
}
END_TEST

START_TEST(test_normal_moments)
{
    static const uint32_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64};
    enum { COUNT = 200001 };

    for (int d = 0; d < 2; d++) {
        struct fake_call fake;
        double sum = 0, squares = 0;

        ck_assert_int_eq(
            draw(&fake, "random_normal", dtypes[d], COUNT, 2, 3, 11, 5),
            HOB_OK);
        for (int64_t i = 0; i < COUNT; i++) {
            double z = (element(&fake, i) - 2) / 3;

            sum += z;
            squares += z * z;
        }
        ck_assert_double_lt(fabs(sum / COUNT), 5 / sqrt(COUNT));
        ck_assert_double_lt(fabs(squares / COUNT - 1), 5 * sqrt(2.0 / COUNT));
        fake_call_release(&fake);
    }
}
END_TEST

START_TEST(test_bernoulli_share_and_ends)
{
    struct fake_call fake;
    int64_t ones = 0;

    ck_assert_int_eq(
        draw(&fake, "random_bernoulli", HOB_DTYPE_BOOL, 100000, 0.25, 0, 3, 0),
        HOB_OK);
    for (int64_t i = 0; i < 100000; i++)
        ones += element(&fake, i) != 0;
    ck_assert_int_lt(llabs(ones - 25000), 700);
    fake_call_release(&fake);
    for (int p = 0; p <= 1; p++) {
        ck_assert_int_eq(
            draw(&fake, "random_bernoulli", HOB_DTYPE_F64, 1000, p, 0, 3, 0),
            HOB_OK);
        for (int64_t i = 0; i < 1000; i++)
            ck_assert(element(&fake, i) == p);
        fake_call_release(&fake);
    }
}
END_TEST

/* The same elements whatever the pieces: a long draw begins as a short one. */
START_TEST(test_draws_do_not_depend_on_the_count)
{
    struct fake_call small, large;

    ck_assert_int_eq(
        draw(&small, "random_normal", HOB_DTYPE_F32, 101, 0, 1, 1, 2), HOB_OK);
    ck_assert_int_eq(
        draw(&large, "random_normal", HOB_DTYPE_F32, 50000, 0, 1, 1, 2),
        HOB_OK);
    for (int64_t i = 0; i < 101; i++)
        ck_assert(element(&small, i) == element(&large, i));
    fake_call_release(&small);
    fake_call_release(&large);
}
END_TEST

static const struct bad {
    const char *op;
    double a, b;
    const char *message;
} bads[] = {
    {"random_uniform", 2, 1, "random_uniform: [2, 1) is no range"},
    {"random_uniform", 0, INFINITY, "is no range"},
    {"random_normal", 0, -1, "random_normal: mean 0, deviation -1"},
    {"random_bernoulli", 1.5, 0, "random_bernoulli: probability 1.5"},
    {"random_bernoulli", NAN, 0, "it must be in [0, 1]"},
};

/* Every level draws the words of hob/philox.h, at counts that end anywhere and
 * where the block number carries into its upper half. */
START_TEST(test_words_are_the_same_at_every_level)
{
    enum { COUNT = 1037 };
    const uint64_t seed = flex_case_seed(), offset = UINT32_MAX - UINT64_C(9);
    struct flex_device *level;

    if (!flex_case_has((uint32_t)_i))
        return;
    level = flex_case_open(&host, (uint32_t)_i);
    for (int64_t count = 1; count <= COUNT; count += count < 150 ? 7 : 211) {
        struct flex_device *best = device;
        struct fake_call fake;

        device = level;
        ck_assert_int_eq(draw(&fake, "random_uniform", HOB_DTYPE_F32, count, 0,
                              1, seed, offset),
                         HOB_OK);
        device = best;
        ck_assert(fake_tensor_intact(&fake.results[0]));
        for (int64_t i = 0; i < count; i++) {
            uint32_t words[HOB_PHILOX_WORDS];
            float got;

            hob_philox_block(seed, offset + (uint64_t)i / 4, words);
            memcpy(&got, flex_case_at(&fake.results[0].view, i), sizeof(got));
            if (got != hob_philox_f32(words[i % 4]))
                ck_abort_msg("%s: element %d of %d", level->kernels->name,
                             (int)i, (int)count);
        }
        fake_call_release(&fake);
    }
    flex_case_close(level);
}
END_TEST

START_TEST(test_bad_parameters_are_named)
{
    const struct bad *bad = &bads[_i];
    struct fake_call fake;

    ck_assert_int_eq(
        draw(&fake, bad->op, HOB_DTYPE_F32, 4, bad->a, bad->b, 1, 1),
        HOB_ERR_RANGE);
    ck_assert_msg(strstr(host.message, bad->message) != NULL, "%s",
                  host.message);
    fake_call_release(&fake);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flex random");
    TCase *cases = tcase_create("random");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, test_philox_known_answers);
    tcase_add_test(cases, test_uniform_uses_word_i);
    tcase_add_test(cases, test_uniform_stays_below_high);
    tcase_add_test(cases, test_uniform_integers_have_equal_shares);
    tcase_add_test(cases, test_normal_moments);
    tcase_add_test(cases, test_bernoulli_share_and_ends);
    tcase_add_test(cases, test_draws_do_not_depend_on_the_count);
    tcase_add_loop_test(cases, test_words_are_the_same_at_every_level, 0,
                        FLEX_ISA_COUNT_);
    tcase_add_loop_test(cases, test_bad_parameters_are_named, 0,
                        (int)(sizeof(bads) / sizeof(bads[0])));
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

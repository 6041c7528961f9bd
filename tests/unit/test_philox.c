/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"

#include <hob/philox.h>

#include "hob_check.h"

#include <pthread.h>

/* The known answers that the authors of Philox publish with Random123. */
static const struct known_answer {
    uint32_t counter[4];
    uint32_t key[2];
    uint32_t words[4];
} known_answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

START_TEST(test_philox_known_answers)
{
    const struct known_answer *known = &known_answers[_i];
    uint32_t words[4];

    memcpy(words, known->counter, sizeof(words));
    hob_philox_rounds(words, known->key);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(words[i], known->words[i]);
}
END_TEST

START_TEST(test_philox_block_places_seed_and_counter)
{
    const uint32_t key[2] = {0xa4093822, 0x299f31d0};
    uint32_t expected[4] = {0x243f6a88, 0x85a308d3, 0, 0};
    uint32_t inline_words[4];
    uint32_t words[4];

    hob_philox_rounds(expected, key);
    hob_philox_block(UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88),
                     inline_words);
    hob_philox(UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88),
               words);
    ck_assert_mem_eq(inline_words, expected, sizeof(expected));
    ck_assert_mem_eq(words, expected, sizeof(expected));
}
END_TEST

START_TEST(test_philox_uniform_stays_below_one)
{
    ck_assert_float_eq(hob_philox_f32(0), 0.0f);
    ck_assert_float_lt(hob_philox_f32(UINT32_MAX), 1.0f);
    ck_assert_float_eq(hob_philox_f32(UINT32_C(1) << 31), 0.5f);
    ck_assert_double_eq(hob_philox_f64(0, 0), 0.0);
    ck_assert_double_lt(hob_philox_f64(UINT32_MAX, UINT32_MAX), 1.0);
    ck_assert_double_eq(hob_philox_f64(0, UINT32_C(1) << 31), 0.5);
}
END_TEST

/* Mean and variance of 2^18 uniforms, each within five standard errors. */
START_TEST(test_philox_moments)
{
    enum { BLOCKS = 1 << 16 };
    const double count = 4.0 * BLOCKS;
    double sum = 0;
    double squares = 0;

    for (uint64_t block = 0; block < BLOCKS; block++) {
        uint32_t words[4];

        hob_philox_block(42, block, words);
        for (int i = 0; i < 4; i++) {
            double draw = (double)hob_philox_f32(words[i]) - 0.5;

            sum += draw;
            squares += draw * draw;
        }
    }
    /* Standard errors: sqrt(1/12/n) and sqrt(1/180/n). */
    ck_assert_double_lt(sum / count, 5 * 0.288675 / 512);
    ck_assert_double_gt(sum / count, -5 * 0.288675 / 512);
    ck_assert_double_eq_tol(squares / count, 1.0 / 12, 5 * 0.074536 / 512);
}
END_TEST

START_TEST(test_generator_reserves_in_order)
{
    struct hob__generator *generator = hob__generator_new(7);
    uint64_t seed;
    uint64_t offset;

    ck_assert_ptr_nonnull(generator);
    hob__generator_reserve(generator, 3, &seed, &offset);
    ck_assert_uint_eq(seed, 7);
    ck_assert_uint_eq(offset, 0);
    hob__generator_reserve(generator, 0, &seed, &offset);
    ck_assert_uint_eq(offset, 3);
    hob__generator_seed(generator, 8);
    hob__generator_reserve(generator, 1, &seed, &offset);
    ck_assert_uint_eq(seed, 8);
    ck_assert_uint_eq(offset, 0);

    hob__generator_ref(generator);
    hob__generator_unref(generator);
    hob__generator_unref(generator);
    hob__generator_unref(NULL);
}
END_TEST

enum { DRAWERS = 4, DRAWS = 5000 };

static void *draw_many(void *generator)
{
    uint64_t seed;
    uint64_t offset;
    uint64_t sum = 0;

    for (int i = 0; i < DRAWS; i++) {
        hob__generator_reserve(generator, 1, &seed, &offset);
        sum += offset;
    }
    return (void *)(uintptr_t)sum;
}

/* Disjoint ranges: the offsets of all threads are 0..n-1, each once. */
START_TEST(test_generator_is_shared_by_threads)
{
    const uint64_t count = DRAWERS * DRAWS;
    struct hob__generator *generator = hob__generator_new(1);
    pthread_t threads[DRAWERS];
    uint64_t sum = 0;

    for (int i = 0; i < DRAWERS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, draw_many, generator), 0);
    for (int i = 0; i < DRAWERS; i++) {
        void *result;

        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        sum += (uintptr_t)result;
    }
    ck_assert_uint_eq(sum, count * (count - 1) / 2);
    hob__generator_unref(generator);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("philox");
    TCase *tc = tcase_create("philox");

    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, test_philox_known_answers, 0,
                        sizeof(known_answers) / sizeof(known_answers[0]));
    tcase_add_test(tc, test_philox_block_places_seed_and_counter);
    tcase_add_test(tc, test_philox_uniform_stays_below_one);
    tcase_add_test(tc, test_philox_moments);
    tcase_add_test(tc, test_generator_reserves_in_order);
    tcase_add_test(tc, test_generator_is_shared_by_threads);
    return hob_check_main(suite);
}

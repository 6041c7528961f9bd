/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface "fused.compute" of the CPU backend: programs by hand and at
 * random, at every instruction set and on one thread and two, against the ops
 * called one by one. Maps must give the same bits.
 */
#include "fused_case.h"
#include "hob_check.h"
#include "test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = HOB_FUSED_NONE, THREADS = 2 };

static const char *const isas[] = {"base", "v2", "v3", "v4"};
enum { ISAS = sizeof(isas) / sizeof(isas[0]) };

static hob_runtime *runtime;
static hob_scope *scope;

static void setup(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.plugin_paths = test_device_paths(&options.plugin_path_count);
    options.threads = THREADS;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    hob_scope_close(scope);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* Flex at level ISA on so many THREADS; 0 if it is not to be had. */
static int open_side(const char *isa, int threads, struct fused_side *out)
{
    char spec[64];
    hob_error error = HOB_ERROR_INIT;
    hob_device *device;

    snprintf(spec, sizeof(spec), "flex{isa=%s,threads=%d}", isa, threads);
    if (hob_device_open(runtime, spec, &device, &error)) {
        hob_error_release(&error);
        return 0;
    }
    *out = fused_side_of(scope, device);
    ck_assert_ptr_nonnull(out->fused);
    ck_assert_uint_eq(out->fused->struct_size, sizeof(*out->fused));
    return 1;
}

/* Run C on SIDES[0] and SIDES[1]: the same bytes, those of the reference. */
static void check_case(struct fused_case *c, struct fused_side *sides)
{
    uint64_t bytes, other_bytes;
    char *one, *other;

    ck_assert_int_eq(fused_case_run(c, &sides[1]), HOB_OK);
    other = fused_case_bytes(c, &other_bytes);
    ck_assert_int_eq(fused_case_run(c, &sides[0]), HOB_OK);
    one = fused_case_bytes(c, &bytes);
    ck_assert_uint_eq(bytes, other_bytes);
    ck_assert_msg(memcmp(one, other, bytes) == 0,
                  "threads change the result of\n%s", c->text);
    free(one);
    free(other);
    fused_case_check(c, &sides[0], runtime);
}

static uint64_t seed_of(int round)
{
    const char *text = getenv("HOB_TEST_SEED");

    return (text ? strtoull(text, NULL, 0) : UINT64_C(0x5eed)) * 1000003 +
           (uint64_t)round;
}

static void check_random(const char *isa, struct fused_wish wish, int rounds)
{
    struct fused_side sides[2];

    if (!open_side(isa, 1, &sides[0]))
        return;
    ck_assert(open_side(isa, THREADS, &sides[1]));
    for (int round = 0; round < rounds; round++) {
        struct fused_case c;

        wish.seed = seed_of(round);
        fused_case_random(&c, &sides[0], &wish);
        check_case(&c, sides);
        fused_case_release(&c);
    }
    hob_device_unref(sides[0].device);
    hob_device_unref(sides[1].device);
}

START_TEST(test_fused_random_maps)
{
    check_random(isas[_i], (struct fused_wish){.steps_most = 12}, 150);
    check_random(isas[_i],
                 (struct fused_wish){.steps_most = HOB_FUSED_MAX_STEPS}, 20);
    check_random(isas[_i], (struct fused_wish){.steps_most = 10, .is_large = 1},
                 8);
}
END_TEST

START_TEST(test_fused_random_rows)
{
    check_random(isas[_i], (struct fused_wish){.steps_most = 12, .has_rows = 1},
                 150);
    check_random(
        isas[_i],
        (struct fused_wish){.steps_most = HOB_FUSED_MAX_STEPS, .has_rows = 1},
        20);
    check_random(
        isas[_i],
        (struct fused_wish){.steps_most = 10, .has_rows = 1, .is_large = 1}, 8);
    check_random(
        isas[_i],
        (struct fused_wish){.steps_most = 8, .has_rows = 1, .is_empty_row = 1},
        20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fused");
    TCase *tc = tcase_create("random");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    if (getenv("HOB_TEST_PLUGIN_DIR") && test_device_is_flex()) {
        tcase_add_loop_test(tc, test_fused_random_maps, 0, ISAS);
        tcase_add_loop_test(tc, test_fused_random_rows, 0, ISAS);
    }
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

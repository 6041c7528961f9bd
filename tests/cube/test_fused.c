/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fused.c - fused programs on a GPU, or on Mesa's driver for processors,
 * against the ops one by one on the same device: bit-equal, but for sums.
 * Skipped where there is no device, and in a sanitized build.
 */
#include "fused_case.h"
#include "hob_check.h"
#include "test_device.h"

#include <hob/ext/plugin.h>
#include <hob/ops.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NONE = HOB_FUSED_NONE };

static hob_runtime *runtime;
static hob_scope *scope;
static struct fused_side side;

static const char *device_name(void)
{
    return test_device_is_flex() ? "cube-vulkan:0" : test_device();
}

static void setup(void)
{
    struct hob_runtime_options options = test_options();
    hob_error error = HOB_ERROR_INIT;
    hob_device *device;

    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, device_name(), &device, &error));
    scope = hob_scope_open(runtime);
    side = fused_side_of(scope, device);
    ck_assert_ptr_nonnull(side.fused);
    side.runtime = runtime;
    side.fused->set_waits(side.instance, 1);
}

static void teardown(void)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    hob_scope_close(scope);
    hob_device_unref(side.device);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* ---- programs by hand ---- */

static void check_case(struct fused_case *c)
{
    const hob_status st = fused_case_run(c, &side);

    ck_assert_msg(st == HOB_OK, "%s of\n%s", hob_status_name(st), c->text);
    fused_case_check(c, &side, runtime);
}

static uint32_t unary(struct fused_case *c, uint32_t op, hob_dtype dtype,
                      uint32_t a)
{
    return fused_case_step(c, op, dtype, a, NONE, NONE, 0, NULL, 0);
}

static uint32_t binary(struct fused_case *c, uint32_t op, hob_dtype dtype,
                       uint32_t a, uint32_t b)
{
    return fused_case_step(c, op, dtype, a, b, NONE, 0, NULL, 0);
}

static uint32_t scaled(struct fused_case *c, uint32_t op, hob_dtype dtype,
                       uint32_t a, double number)
{
    const hob_value scalar = hob_f64(number);

    return fused_case_step(c, op, dtype, a, NONE, NONE, 0, &scalar, 1);
}

static const hob_dtype floats[] = {HOB_DTYPE_F32, HOB_DTYPE_BF16, HOB_DTYPE_F16,
                                   HOB_DTYPE_F64};
enum { FLOATS = 4 };

/* The chain of the benchmarks, at a size with an end of each kind. */
static void add_chain(struct fused_case *c, hob_dtype dtype, uint32_t x)
{
    uint32_t r = scaled(c, HOB_OP_MUL_SCALAR, dtype, x, 1.5);

    r = scaled(c, HOB_OP_ADD_SCALAR, dtype, r, 0.25);
    r = binary(c, HOB_OP_MUL, dtype, r, x);
    r = scaled(c, HOB_OP_SUB_SCALAR, dtype, r, 0.5);
    r = unary(c, HOB_OP_RELU, dtype, r);
    r = scaled(c, HOB_OP_MUL_SCALAR, dtype, r, 0.75);
    r = binary(c, HOB_OP_ADD, dtype, r, x);
    fused_case_output(c, unary(c, HOB_OP_NEG, dtype, r), 0, -1);
}

START_TEST(test_fused_chain)
{
    static const int64_t sizes[] = {1, 3, 255, 4096, 4099, 70001};
    struct fused_case c;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        fused_case_begin(&c, 7 + i, 1, 0, &sizes[i]);
        add_chain(&c, floats[_i], fused_case_input(&c, floats[_i], 0, 0));
        check_case(&c);
        fused_case_release(&c);
    }
}
END_TEST

/* Ops that go by pairs on some devices, and others between them. */
static void add_halves(struct fused_case *c, hob_dtype dtype, uint32_t x,
                       uint32_t y)
{
    uint32_t r = binary(c, HOB_OP_ADD, dtype, x, y), s;

    fused_case_output(c, r, 0, -1);
    r = binary(c, HOB_OP_MUL, dtype, r, y);
    fused_case_output(c, r, 1, -1);
    r = binary(c, HOB_OP_SUB, dtype, unary(c, HOB_OP_ABS, dtype, r), x);
    s = unary(c, HOB_OP_TANH, dtype, r);
    fused_case_output(c, binary(c, HOB_OP_MAXIMUM, dtype, s, y), 0, -1);
    r = unary(c, HOB_OP_SQUARE, dtype,
              scaled(c, HOB_OP_RSUB_SCALAR, dtype, r, 2));
    fused_case_output(c, r, 0, -1);
    r = binary(c, HOB_OP_MUL, dtype, r,
               scaled(c, HOB_OP_MUL_SCALAR, dtype, s, 1e-20));
    fused_case_output(c, unary(c, HOB_OP_NEG, dtype, r), 0, -1);
    fused_case_output(c, unary(c, HOB_OP_RELU, dtype, y), 0, -1);
}

/* Dense, then strided and broadcast. */
START_TEST(test_fused_halves)
{
    static const int64_t shape[] = {3, 40, 64};
    const hob_dtype dtype = _i % 2 ? HOB_DTYPE_F16 : HOB_DTYPE_BF16;
    struct fused_case c;
    uint32_t x, y;

    fused_case_begin(&c, 31 + (uint64_t)_i, 3, 0, shape);
    x = fused_case_input(&c, dtype, 0, 0);
    y = fused_case_input(&c, dtype, 0, _i > 1);
    add_halves(&c, dtype, x, y);
    check_case(&c);
    fused_case_release(&c);
}
END_TEST

/* x - max, exp, / sum over rows of several lengths. */
static void add_softmax(struct fused_case *c, hob_dtype dtype, uint32_t x)
{
    const uint32_t most = unary(c, HOB_OP_MAX_DIM, dtype, x);
    const uint32_t e =
        unary(c, HOB_OP_EXP, dtype, binary(c, HOB_OP_SUB, dtype, x, most));
    const uint32_t sum = unary(c, HOB_OP_SUM_DIM, dtype, e);

    fused_case_output(c, most, 0, -1);
    fused_case_output(c, sum, 0, -1);
    fused_case_output(c, binary(c, HOB_OP_DIV, dtype, e, sum), 0, -1);
}

static const int64_t lengths[] = {1, 5, 33, 256, 1000, 1024, 9000, 34000};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

START_TEST(test_fused_softmax)
{
    const int64_t length = lengths[_i];
    const int64_t shape[] = {37, length};
    struct fused_case c;

    for (int i = 0; i < (length == 33 ? FLOATS : 1); i++) {
        fused_case_begin(&c, 99, 2, 1, shape);
        add_softmax(&c, floats[i], fused_case_input(&c, floats[i], 0, 0));
        check_case(&c);
        fused_case_release(&c);
    }
}
END_TEST

/* Halves of INPUT between 1 and 2 in magnitude: means of f32, of which no ulp
 * is lost in a sum of huge ones. */
static void tame(struct fused_case *c, uint32_t input, hob_dtype dtype)
{
    const uint16_t one = dtype == HOB_DTYPE_F16 ? 0x3c00 : 0x3f80;
    const uint16_t rest = dtype == HOB_DTYPE_F16 ? 0x83ff : 0x807f;
    uint16_t *halves = (uint16_t *)(void *)c->in_memory[input].first;

    for (uint64_t i = 0;
         hob_dtype_size(dtype) == 2 && i < c->in_memory[input].bytes / 2; i++)
        halves[i] = (uint16_t)((halves[i] & rest) | one);
}

/* What fusion makes of a layer norm between others. */
START_TEST(test_fused_layer_norm)
{
    const int64_t length = lengths[_i];
    const int64_t shape[] = {37, length};
    struct fused_case c;
    uint32_t x, y, vectors[2];

    for (int i = 0; i < (length == 256 ? FLOATS : 1); i++) {
        fused_case_begin(&c, 98, 2, 1, shape);
        x = fused_case_input(&c, floats[i], 0, 0);
        y = fused_case_input(&c, floats[i], 0, 0);
        for (int k = 0; k < 2; k++) {
            vectors[k] = fused_case_input(&c, floats[i], 0, 0);
            c.in[vectors[k]].strides[0] = 0;
        }
        tame(&c, x, floats[i]);
        tame(&c, y, floats[i]);
        x = binary(&c, HOB_OP_ADD, floats[i], x, y);
        fused_case_layer_norm(&c, x, vectors[0], vectors[1]);
        check_case(&c);
        fused_case_release(&c);
    }
}
END_TEST

/* ---- programs at random ---- */

static uint64_t seed_of(int round)
{
    const char *text = getenv("HOB_TEST_SEED");

    return (text ? strtoull(text, NULL, 0) : UINT64_C(0xcbe)) * 1000003 +
           (uint64_t)round;
}

/* Of rows that are few and long most are better off one by one. */
static void check_random(struct fused_wish wish, int rounds)
{
    const char *often = getenv("HOB_TEST_ROUNDS");
    int ran = 0;

    if (often)
        rounds = atoi(often);
    for (int round = 0; round < rounds; round++) {
        struct fused_case c;
        hob_status st;

        wish.seed = seed_of(round);
        fused_case_random(&c, &side, &wish);
        st = fused_case_run(&c, &side);
        ck_assert_msg(!st || st == HOB_ERR_UNSUPPORTED, "%s of\n%s",
                      hob_status_name(st), c.text);
        if (!st)
            fused_case_check(&c, &side, runtime);
        ran += !st;
        fused_case_release(&c);
    }
    ck_assert_int_gt(10 * ran,
                     (wish.has_rows && wish.is_large ? 1 : 8) * rounds);
}

START_TEST(test_fused_random_maps)
{
    check_random((struct fused_wish){.steps_most = 12}, 7);
    check_random((struct fused_wish){.steps_most = 10, .is_large = 1}, 2);
}
END_TEST

START_TEST(test_fused_random_rows)
{
    check_random((struct fused_wish){.steps_most = 12, .has_rows = 1}, 7);
    check_random(
        (struct fused_wish){.steps_most = 8, .has_rows = 1, .is_large = 1}, 2);
    check_random(
        (struct fused_wish){.steps_most = 8, .has_rows = 1, .is_empty_row = 1},
        2);
}
END_TEST

/* Open the device and say what is wrong; 0 if it is there. */
static int try_device(void)
{
    struct hob_runtime_options options = test_options();
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;
    hob_runtime *trial;

    if (options.plugin_path_count &&
        !hob_runtime_open(&options, &trial, &error) &&
        !hob_device_open(trial, device_name(), &device, &error))
        return 0;
    printf("skipped: %s\n", error.message ? error.message : "no plugins");
    fflush(stdout);
    return 1;
}

/* In a process of its own: drivers start threads. */
static int has_device(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(try_device());
    return child > 0 && waitpid(child, &status, 0) == child &&
           WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void)
{
    Suite *suite;
    TCase *tc;

    if (HOB_BUILD_SANITIZERS) {
        printf("skipped: drivers are not run in a sanitized process\n");
        return 77;
    }
    if (!has_device())
        return 77;
    suite = suite_create("fused");
    tc = tcase_create("programs");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_fused_chain, 0, FLOATS);
    tcase_add_loop_test(tc, test_fused_halves, 0, 4);
    tcase_add_loop_test(tc, test_fused_softmax, 0, LENGTHS);
    tcase_add_loop_test(tc, test_fused_layer_norm, 0, LENGTHS);
    tcase_add_test(tc, test_fused_random_maps);
    tcase_add_test(tc, test_fused_random_rows);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

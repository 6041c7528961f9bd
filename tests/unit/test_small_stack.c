/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ops and fused programs take of the stack of the thread that runs them:
 * less than musl gives one, 128 KiB, of which the program has its part.
 */
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <hob/ext/plugin.h>
#include <hob/hob.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK = 1 << 20, MOST = 112 << 10, UNUSED = 0xa5, SIDE = 256 };

static hob_runtime *runtime;
static hob_device *devices[2]; /* op by op, and put off */
static hob_error error;

static void setup(void)
{
    struct hob_runtime_options options = test_options();

    options.threads = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(test_device_open(runtime, "flex", &devices[0], &error));
    ck_assert_hob_ok(
        test_device_open(runtime, "fusion(flex)", &devices[1], &error));
}

static void teardown(void)
{
    hob_device_unref(devices[0]);
    hob_device_unref(devices[1]);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* ---- programs ---- */

static hob_tensor *chain(hob_scope *in, hob_tensor *x)
{
    return hob_tanh(in, hob_add(in, hob_mul(in, x, x), hob_exp(in, x)));
}

static hob_tensor *rows(hob_scope *in, hob_tensor *x)
{
    hob_tensor *y = hob_softmax(in, hob_mul(in, x, x), -1);

    return hob_sub(in, y, hob_sum_dim(in, hob_exp(in, y), 1));
}

static hob_tensor *columns(hob_scope *in, hob_tensor *x)
{
    hob_tensor *y = hob_mul(in, x, x);

    return hob_div(in, y, hob_sum_dim(in, hob_exp(in, y), 0));
}

static hob_tensor *all_columns(hob_scope *in, hob_tensor *x)
{
    hob_tensor *y = hob_cast(in, hob_relu(in, x), HOB_DTYPE_BF16);

    y = hob_mul(in, y, hob_max_dim(in, y, 0));
    return hob_sub(in, y, hob_mean_dim(in, hob_mul(in, y, y), 0));
}

static hob_tensor *product(hob_scope *in, hob_tensor *x)
{
    return hob_gelu(in, hob_add(in, hob_matmul(in, x, x), x));
}

static hob_tensor *small_product(hob_scope *in, hob_tensor *x)
{
    hob_tensor *part =
        hob_slice(in, x, (int64_t[]){3, 5}, 2, (int64_t[]){43, 45}, 2, NULL, 0);

    return hob_tanh(in, hob_add(in, hob_matmul(in, part, part), part));
}

static hob_tensor *step(hob_scope *in, hob_tensor *x)
{
    hob_tensor *out[3] = {NULL};

    ck_assert_hob_ok(hob_adam_step(in, x, hob_matmul(in, x, x), x,
                                   hob_square(in, x), 7, 0.01, 0.9, 0.999, 1e-8,
                                   0.1, NULL, &out[0], &out[1], &out[2]));
    return hob_add(in, out[0], out[1]);
}

static hob_tensor *scans(hob_scope *in, hob_tensor *x)
{
    return hob_add(in, hob_cumsum(in, x, 0), hob_cumsum(in, x, 1));
}

static hob_tensor *places(hob_scope *in, hob_tensor *x)
{
    return hob_add(
        in, hob_argmax(in, x, 0, HOB_DTYPE_I64),
        hob_argmax(in, hob_swap_dims(in, x, 0, 1), 1, HOB_DTYPE_I64));
}

static hob_tensor *sorts(hob_scope *in, hob_tensor *x)
{
    return hob_add(in, hob_sort(in, x, 0, 0), hob_sort(in, x, 1, 1));
}

static hob_tensor *strided(hob_scope *in, hob_tensor *x)
{
    hob_tensor *y = hob_cast(in, hob_swap_dims(in, x, 0, 1), HOB_DTYPE_F16);

    return hob_mul(
        in, y,
        hob_clamp(in, hob_cast(in, x, HOB_DTYPE_F16), hob_f64(-1), hob_f64(1)));
}

static const struct program {
    const char *name;
    hob_tensor *(*run)(hob_scope *in, hob_tensor *x);
} programs[] = {
    {"chain", chain},     {"rows", rows},
    {"columns", columns}, {"all_columns", all_columns},
    {"product", product}, {"small_product", small_product},
    {"step", step},       {"scans", scans},
    {"places", places},   {"sorts", sorts},
    {"strided", strided},
};
enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

/* ---- a thread ---- */

struct job {
    const struct program *program;
    hob_device *device;
    hob_status status;
};

static void *run(void *context)
{
    struct job *job = context;
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *x = hob_random_uniform(scope, (int64_t[]){SIDE, SIDE}, 2, -1, 1,
                                       job->device, HOB_DTYPE_F32);
    hob_tensor *y = job->program->run(scope, x);

    job->status = hob_eval(&y, 1, &error);
    hob_scope_close(scope);
    return NULL;
}

/* Bytes of STACK that were written to; it grows down. */
static size_t used_of(const unsigned char *stack)
{
    size_t unused = 0;

    while (unused < STACK && stack[unused] == UNUSED)
        unused++;
    return STACK - unused;
}

START_TEST(test_small_stack_is_enough)
{
    struct job job = {&programs[_i % PROGRAMS], devices[_i / PROGRAMS], HOB_OK};
    unsigned char *stack = aligned_alloc(4096, STACK);
    pthread_attr_t attr;
    pthread_t thread;

    ck_assert_ptr_nonnull(stack);
    memset(stack, UNUSED, STACK);
    ck_assert_int_eq(pthread_attr_init(&attr), 0);
    ck_assert_int_eq(pthread_attr_setstack(&attr, stack, STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &attr, run, &job), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
    ck_assert_hob_ok(job.status);
    ck_assert_msg(used_of(stack) <= MOST, "%s took %zu bytes",
                  job.program->name, used_of(stack));
    free(stack);
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *tc;

    if (HOB_BUILD_SANITIZERS || !test_device_is_flex()) {
        puts("skipped: frames are larger in such a build, or not flex's");
        return 77;
    }
    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        puts("skipped: HOB_TEST_PLUGIN_DIR does not name the plugins");
        return 77;
    }
    suite = suite_create("small_stack");
    tc = tcase_create("ops");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_small_stack_is_enough, 0, 2 * PROGRAMS);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

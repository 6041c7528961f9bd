/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups that were planned before: the plan is found again for the same nodes
 * with other numbers, and for no others.
 */
#include "hob_check.h"
#include "test_device.h"

#include <hob/hob.h>

#include <pthread.h>

enum { ROWS = 6, COLUMNS = 9, SIZE = ROWS * COLUMNS, ROUNDS = 4, THREADS = 4 };

static hob_runtime *runtime;
static hob_device *plain, *lazy;

static void setup(void)
{
    struct hob_runtime_options options = test_options();
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(test_device_open(runtime, "flex", &plain, &error));
    ck_assert_hob_ok(test_device_open(runtime, "fusion(flex)", &lazy, &error));
}

static void teardown(void)
{
    hob_error error = HOB_ERROR_INIT;

    hob_device_unref(plain);
    hob_device_unref(lazy);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

static hob_tensor *matrix(hob_scope *scope, hob_device *device, int64_t rows,
                          int64_t columns, float first)
{
    const int64_t shape[] = {rows, columns};
    float data[SIZE];

    for (int i = 0; i < rows * columns; i++)
        data[i] = first + (float)(i % 7) - 3;
    return hob_from_f32(scope, device, data, shape, 2);
}

/* Each is an earlier one but for one thing that a plan depends on. */
enum variant {
    PLAIN,
    ROW,     /* the second input is broadcast */
    COLUMN,  /* likewise, the other way */
    SAME,    /* both inputs are one tensor */
    ASKED,   /* a value in the middle is asked for besides */
    OVER_0,  /* the reduction goes over another dimension */
    OTHER,   /* another op */
    WIDE,    /* of another dtype */
    DROPPED, /* nobody has the value in the middle */
    READ,    /* nobody, but what is put off reads it */
    FOLD,    /* the reduction reads an input */
    NARROW,  /* that has shorter rows */
    VARIANTS /* and numbers differ by the round */
};

/* The value in the middle of VARIANT, made in SCOPE. */
static hob_tensor *make_middle(hob_scope *scope, hob_device *device,
                               enum variant variant, double number)
{
    hob_tensor *a = matrix(scope, device, ROWS, variant == NARROW ? 5 : COLUMNS,
                           (float)number);
    hob_tensor *b = a;

    if (variant == FOLD || variant == NARROW)
        return a;
    if (variant != SAME)
        b = matrix(scope, device, variant == ROW ? 1 : ROWS,
                   variant == COLUMN ? 1 : COLUMNS, 2);
    if (variant == WIDE) {
        a = hob_cast(scope, a, HOB_DTYPE_F64);
        b = hob_cast(scope, b, HOB_DTYPE_F64);
    }
    return hob_mul_scalar(scope, hob_add(scope, a, b), hob_f64(number));
}

/* Compute VARIANT on DEVICE with NUMBER in it; what it gives goes to OUT. */
static void compute(hob_device *device, enum variant variant, double number,
                    double out[2 * SIZE])
{
    hob_error error = HOB_ERROR_INIT;
    hob_scope *scope = hob_scope_open(runtime);
    hob_scope *first = hob_scope_child(scope);
    hob_tensor *middle = make_middle(first, device, variant, number);
    hob_tensor *sum = middle, *read = middle, *asked[2];

    if (variant != FOLD && variant != NARROW)
        sum = variant == OTHER ? hob_exp(first, sum) : hob_relu(first, sum);
    sum = hob_sum_dim(first, sum, variant == OVER_0 ? 0 : 1);
    sum = hob_add_scalar(scope, sum, hob_f64(0.25 * number));
    if (variant == READ)
        read = hob_neg(scope, middle);
    if (variant == DROPPED || variant == READ)
        hob_scope_close(first);
    asked[0] = sum;
    asked[1] = middle;
    ck_assert_hob_ok(hob_eval(asked, variant == ASKED ? 2 : 1, &error));
    memset(out, 0, 2 * SIZE * sizeof(double));
    ck_assert_hob_ok(
        hob_read_f64(sum, out, variant == OVER_0 ? COLUMNS : ROWS, &error));
    if (variant != DROPPED)
        ck_assert_hob_ok(
            hob_read_f64(read, out + SIZE, hob_tensor_count(read), &error));
    hob_scope_close(scope);
}

static int is_right(enum variant variant, double number)
{
    double got[2 * SIZE], want[2 * SIZE];

    compute(lazy, variant, number, got);
    compute(plain, variant, number, want);
    return !memcmp(got, want, sizeof(got)); /* elements are as one by one */
}

static uint64_t count_hits(void)
{
    struct hob_fusion_stats stats = HOB_FUSION_STATS_INIT;
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_fusion_report(lazy, &stats, &error));
    return stats.plan_hits;
}

START_TEST(test_fusion_plans_are_found_again)
{
    ck_assert_int_eq(is_right((enum variant)_i, 1), 1);
    for (int round = 2; round < ROUNDS; round++) {
        const uint64_t before = count_hits();

        ck_assert_int_eq(is_right((enum variant)_i, round), 1);
        ck_assert_uint_gt(count_hits(), before);
    }
}
END_TEST

/* More of them than are kept, in turns: none takes another's. */
START_TEST(test_fusion_plans_are_told_apart)
{
    for (int round = 1; round < ROUNDS; round++)
        for (int variant = 0; variant < VARIANTS; variant++)
            ck_assert_msg(is_right((enum variant)variant, round),
                          "variant %d, round %d", variant, round);
}
END_TEST

/* Two by two, so that the plan is there. */
START_TEST(test_fusion_plans_differ_from_each_other)
{
    for (int variant = 0; variant < VARIANTS; variant++)
        for (int round = 1; round < ROUNDS; round++) {
            ck_assert_int_eq(is_right((enum variant)_i, round), 1);
            ck_assert_msg(is_right((enum variant)variant, round),
                          "variant %d, round %d", variant, round);
        }
}
END_TEST

/* What a plan does not say: whether somebody still has what is read. */
START_TEST(test_fusion_plans_do_not_say_who_holds_inputs)
{
    enum { MOVED, HELD, VIEWED, CASES };
    hob_error error = HOB_ERROR_INIT;
    double was[SIZE], is[SIZE];
    uint64_t hits = 0, ran;

    for (int round = 0; round < 3 * CASES; round++) {
        const int how = (round * 2 + round / CASES) % CASES;
        struct hob_fusion_stats before = HOB_FUSION_STATS_INIT, after = before;
        hob_scope *scope = hob_scope_open(runtime);
        hob_tensor *x = matrix(scope, lazy, ROWS, COLUMNS, (float)round), *y;
        hob_tensor *other = how == VIEWED ? hob_swap_dims(scope, x, 0, 1) : x;

        ck_assert_hob_ok(hob_read_f64(x, was, SIZE, &error));
        ck_assert_hob_ok(hob_fusion_report(lazy, &before, &error));
        if (how == HELD)
            hob_tensor_ref(x);
        y = hob_mul_scalar(scope, hob_move(scope, x), hob_f64(round));
        y = hob_relu(scope, hob_move(scope, y));
        ck_assert_hob_ok(hob_read_f64(y, is, SIZE, &error));
        for (int i = 0; i < SIZE; i++)
            ck_assert_double_eq(is[i], was[i] > 0 ? was[i] * round : 0);
        ck_assert_hob_ok(hob_fusion_report(lazy, &after, &error));
        ran = after.groups - before.groups; /* not while it is compiled */
        ck_assert(ran == 1 || (!ran && !test_device_is_flex()));
        ck_assert_uint_eq(after.in_place - before.in_place,
                          how == MOVED ? ran : 0);
        hits += after.plan_hits - before.plan_hits;
        if (how == VIEWED)
            other = hob_swap_dims(scope, other, 0, 1);
        if (how != MOVED) {
            ck_assert_hob_ok(hob_read_f64(other, is, SIZE, &error));
            ck_assert_int_eq(memcmp(is, was, sizeof(is)), 0);
        }
        if (how == HELD)
            hob_tensor_unref(x);
        hob_scope_close(scope);
    }
    ck_assert_uint_eq(hits, 3 * CASES - 1);
}
END_TEST

/* A product with a constant that is recorded last of many ops. */
static void late_constant(hob_device *device, double number, double *out)
{
    enum { LINKS = 150 };
    const int64_t shape[] = {COLUMNS, 2};
    hob_error error = HOB_ERROR_INIT;
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *x = matrix(scope, device, ROWS, COLUMNS, (float)number);
    hob_tensor *constant;

    for (int i = 0; i < LINKS; i++)
        x = hob_add_scalar(scope, x, hob_f64(number));
    constant =
        hob_full(scope, shape, 2, hob_f64(number), device, HOB_DTYPE_F32);
    ck_assert_hob_ok(hob_read_f64(hob_matmul(scope, x, constant), out,
                                  (int64_t)ROWS * 2, &error));
    hob_scope_close(scope);
}

START_TEST(test_fusion_plans_with_late_constants)
{
    double got[ROWS * 2], want[ROWS * 2];

    for (int i = 1; i <= ROUNDS; i++) {
        const uint64_t before = count_hits();

        late_constant(lazy, i, got);
        late_constant(plain, i, want);
        ck_assert_int_eq(memcmp(got, want, sizeof(got)), 0);
        ck_assert_uint_eq(count_hits() - before, i > 1);
    }
}
END_TEST

static void *use(void *context)
{
    const int first = (int)(uintptr_t)context;

    for (int i = 0; i < 60; i++)
        if (!is_right((enum variant)((first + i / 3) % VARIANTS), 1 + i % 5))
            return NULL;
    return runtime;
}

START_TEST(test_fusion_plans_of_several_threads)
{
    pthread_t threads[THREADS];
    void *right;

    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, use, (void *)(i / 2)), 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &right), 0);
        ck_assert_ptr_nonnull(right);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion_plans");
    TCase *tc = tcase_create("fusion_plans");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_fusion_plans_are_found_again, 0, VARIANTS);
    tcase_add_test(tc, test_fusion_plans_are_told_apart);
    tcase_add_loop_test(tc, test_fusion_plans_differ_from_each_other, 0,
                        VARIANTS);
    tcase_add_test(tc, test_fusion_plans_do_not_say_who_holds_inputs);
    tcase_add_test(tc, test_fusion_plans_with_late_constants);
    tcase_add_test(tc, test_fusion_plans_of_several_threads);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of an optimizer for several parameters: one kernel where the device has
 * one for lists (GPUs do), the same bits as one by one, over the old values
 * where nobody holds those. On other devices they run one by one, and all
 * results are as here too.
 */
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE = 3, MOST_PARAMS = 40 };

static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *devices[2]; /* op by op, and put off */
static hob_error error;

static int is_sgd; /* else Adam */

static struct {
    uint32_t lists, ops, in_place, singles, others;
} seen;

static void watch(void *context, const struct hob_fusion_event *event)
{
    (void)context;
    if (strcmp(event->name, is_sgd ? "sgd_step" : "adam_step") != 0) {
        seen.others++;
        return;
    }
    if (!event->is_group) {
        seen.singles++;
        return;
    }
    seen.lists++;
    seen.ops += event->op_count;
    seen.in_place += event->in_place;
    ck_assert_uint_eq(event->value_count,
                      (is_sgd ? 1 : STATE) * event->op_count);
}

static void setup(void)
{
    struct hob_runtime_options options = test_options();

    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(test_device_open(runtime, "flex", &devices[0], &error));
    ck_assert_hob_ok(
        test_device_open(runtime, "fusion(flex)", &devices[1], &error));
    ck_assert_hob_ok(hob_fusion_watch(devices[1], watch, NULL, &error));
    scope = hob_scope_open(runtime);
    memset(&seen, 0, sizeof(seen));
    is_sgd = 0;
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(devices[0]);
    hob_device_unref(devices[1]);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* What was seen is LISTS kernels for OPS steps and so many SINGLES; elsewhere
 * than on GPUs all of them are single. */
static void expect_seen(uint32_t lists, uint32_t ops, uint32_t singles)
{
    if (test_device_is_flex()) {
        singles += ops;
        lists = ops = 0;
    }
    ck_assert_uint_eq(seen.lists, lists);
    ck_assert_uint_eq(seen.ops, ops);
    ck_assert_uint_eq(seen.singles, singles);
}

/* ---- parameters ---- */

struct sizes {
    uint32_t rank;
    int64_t shape[3];
};

struct param {
    hob_tensor *at[STATE]; /* param, m, v */
    hob_tensor *grad;
};

static int64_t count_of(const struct sizes *sizes)
{
    int64_t count = 1;

    for (uint32_t i = 0; i < sizes->rank; i++)
        count *= sizes->shape[i];
    return count;
}

/* Numbers, the same on all devices and there already. */
static hob_tensor *numbers(hob_device *device, hob_dtype dtype,
                           const struct sizes *sizes, uint64_t seed)
{
    const int64_t count = count_of(sizes);
    double *data = malloc((size_t)count * sizeof(*data) + 1);
    hob_tensor *tensor;

    ck_assert_ptr_nonnull(data);
    seed = seed * 2 + 1;
    for (int64_t i = 0; i < count; i++)
        data[i] = op_random(&seed);
    if (count > 5)
        data[5] = HUGE_VAL - HUGE_VAL;
    tensor = hob_cast(
        scope, hob_from_f64(scope, device, data, sizes->shape, sizes->rank),
        dtype);
    free(data);
    ck_assert_hob_ok(hob_eval(&tensor, 1, &error));
    return tensor;
}

/* A parameter whose gradient is yet to be computed. */
static struct param param_new(hob_device *device, hob_dtype dtype,
                              const struct sizes *sizes, uint64_t seed)
{
    struct param param;

    for (uint32_t i = 0; i < STATE; i++)
        param.at[i] = numbers(device, dtype, sizes, seed + i);
    param.at[2] = hob_abs(scope, param.at[2]);
    ck_assert_hob_ok(hob_eval(&param.at[2], 1, &error));
    param.grad = numbers(device, dtype, sizes, seed + STATE);
    param.grad = hob_neg(scope, hob_move(scope, param.grad));
    return param;
}

/* Put the new values in the place of PARAM's, whose old ones are moved unless
 * it KEEPS them. */
static void step(struct param *param, int keeps, double lr, hob_tensor *now)
{
    hob_tensor *old[STATE];

    for (int i = 0; i < (is_sgd ? 1 : STATE); i++)
        old[i] = keeps ? param->at[i] : hob_move(scope, param->at[i]);
    if (is_sgd) {
        param->at[0] =
            hob_sgd_step(scope, old[0], hob_move(scope, param->grad), lr, 0.1);
        return;
    }
    ck_assert_hob_ok(hob_adam_step(
        scope, old[0], hob_move(scope, param->grad), old[1], old[2], 7, lr, 0.9,
        0.999, 1e-8, 0.1, now, &param->at[0], &param->at[1], &param->at[2]));
}

/* And BESIDE, if it is not NULL. */
static void evaluate(const struct param *params, uint32_t count,
                     hob_tensor *beside)
{
    hob_tensor *all[STATE * MOST_PARAMS + 1];

    for (uint32_t i = 0; i < count; i++)
        memcpy(all + (size_t)STATE * i, params[i].at, sizeof(params[i].at));
    all[STATE * count] = beside;
    ck_assert_hob_ok(hob_eval(all, STATE * count + (beside != NULL), &error));
}

static void expect_same(hob_tensor *a, hob_tensor *b)
{
    const int64_t count = hob_tensor_count(a);
    double *x = malloc((size_t)count * 2 * sizeof(*x) + 1), *y = x + count;

    ck_assert_ptr_nonnull(x);
    ck_assert_int_eq(hob_tensor_count(b), count);
    ck_assert_hob_ok(hob_read_f64(a, x, (uint64_t)count, &error));
    ck_assert_hob_ok(hob_read_f64(b, y, (uint64_t)count, &error));
    for (int64_t i = 0; i < count; i++)
        if (x[i] != y[i] && (x[i] == x[i] || y[i] == y[i]))
            ck_abort_msg("element %d is %.17g, not %.17g", (int)i, y[i], x[i]);
    free(x);
}

static void expect_all_same(struct param params[2][MOST_PARAMS], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (int k = 0; k < STATE; k++)
            expect_same(params[0][i].at[k], params[1][i].at[k]);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}

/* Rests of vectors, parts of a group and several of them, one element; none,
 * which is once. */
static const struct sizes net[] = {
    {2, {28, 50}}, {1, {50}},   {2, {50, 33}},  {1, {33}},
    {0, {0}},      {1, {1}},    {3, {2, 0, 3}}, {1, {1023}},
    {1, {4}},      {1, {1025}}, {1, {1024}},    {3, {5, 7, 100}},
};

enum { NET = sizeof(net) / sizeof(net[0]) };

static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                   HOB_DTYPE_BF16};

/* ---- the tests ---- */

START_TEST(test_fusion_lists_are_the_same_bits)
{
    const hob_dtype dtype = dtypes[_i / 4];
    const int keeps = _i % 4 / 2, has_now = _i % 2;
    struct param params[2][MOST_PARAMS];

    for (int d = 0; d < 2; d++) {
        /* Step and rate as numbers in memory, the last one first. */
        hob_tensor *now =
            hob_flip(scope,
                     hob_from_f64(scope, devices[d], (const double[]){0.003, 9},
                                  (const int64_t[]){2}, 1),
                     (const int64_t[]){0}, 1);

        now = hob_cast(scope, now, HOB_DTYPE_F32);
        ck_assert_hob_ok(hob_eval(&now, 1, &error));
        for (uint32_t i = 0; i < NET; i++)
            params[d][i] = param_new(devices[d], dtype, &net[i], 10 * i);
        for (uint32_t i = 0; i < NET; i++)
            step(&params[d][i], keeps, 0.01, has_now ? now : NULL);
        evaluate(params[d], NET, NULL);
    }
    expect_seen(1, NET, 0);
    ck_assert(test_device_is_flex() ||
              seen.in_place == (keeps ? 0 : STATE * (NET - 1)));
    expect_all_same(params, NET);
}
END_TEST

/* The same with SGD, whose steps are in a group with what makes the gradient
 * where that is possible. */
START_TEST(test_fusion_lists_by_sgd)
{
    const hob_dtype dtype = dtypes[_i / 4];
    const int keeps = _i % 4 / 2, is_pending = _i % 2;
    struct param params[2][MOST_PARAMS];

    is_sgd = 1;
    for (int d = 0; d < 2; d++) {
        for (uint32_t i = 0; i < NET; i++)
            params[d][i] = param_new(devices[d], dtype, &net[i], 10 * i);
        for (uint32_t i = 0; i < NET && !is_pending; i++)
            ck_assert_hob_ok(hob_eval(&params[d][i].grad, 1, &error));
        memset(&seen, 0, sizeof(seen));
        for (uint32_t i = 0; i < NET; i++)
            step(&params[d][i], keeps, 0.01, NULL);
        evaluate(params[d], NET, NULL);
    }
    if (!is_pending) {
        expect_seen(1, NET, 0);
        ck_assert(test_device_is_flex() ||
                  seen.in_place == (keeps ? 0 : NET - 1));
    } else if (test_device_is_flex()) {
        expect_seen(0, 0, 1); /* of no elements */
        ck_assert_uint_eq(seen.others, NET);
    }
    expect_all_same(params, NET);
}
END_TEST

/* More than one launch has room for, and than one list. */
START_TEST(test_fusion_lists_of_many)
{
    const struct sizes sizes = {1, {7}};
    struct param params[2][MOST_PARAMS];

    for (int d = 0; d < 2; d++) {
        for (uint32_t i = 0; i < MOST_PARAMS; i++)
            params[d][i] = param_new(devices[d], HOB_DTYPE_F32, &sizes, 10 * i);
        for (uint32_t i = 0; i < MOST_PARAMS; i++)
            step(&params[d][i], 0, 0.01, NULL);
        evaluate(params[d], MOST_PARAMS, NULL);
    }
    expect_seen(2, MOST_PARAMS, 0);
    expect_all_same(params, MOST_PARAMS);
}
END_TEST

/* Two dtypes and two rates: of each of the four what is alike runs at once,
 * and what has no like runs alone. */
START_TEST(test_fusion_lists_of_what_is_alike)
{
    struct param params[2][MOST_PARAMS];

    for (int d = 0; d < 2; d++) {
        for (uint32_t i = 0; i < 7; i++)
            params[d][i] =
                param_new(devices[d], i % 2 ? HOB_DTYPE_F16 : HOB_DTYPE_F32,
                          &net[i % 4], 10 * i);
        for (uint32_t i = 0; i < 7; i++)
            step(&params[d][i], 0, i < 4 || i == 6 ? 0.01 : 0.02, NULL);
        evaluate(params[d], 7, NULL);
    }
    expect_seen(2, 5, 2);
    expect_all_same(params, 7);
}
END_TEST

/* What somebody else has is not written over: a handle of the program's, an op
 * that reads it, another parameter's step. */
START_TEST(test_fusion_lists_write_over_nothing_held)
{
    struct param params[2][MOST_PARAMS];
    hob_tensor *held[2], *read[2];

    for (int d = 0; d < 2; d++) {
        for (uint32_t i = 0; i < 4; i++)
            params[d][i] =
                param_new(devices[d], HOB_DTYPE_F32, &net[1], 10 * i);
        held[d] = params[d][0].at[1];
        hob_tensor_ref(held[d]);
        read[d] = hob_exp(scope, params[d][1].at[0]);
        params[d][2].grad = hob_reshape(scope, params[d][3].at[0], net[1].shape,
                                        (int32_t)net[1].rank);
        for (uint32_t i = 0; i < 4; i++)
            step(&params[d][i], 0, 0.01, NULL);
        evaluate(params[d], 4, NULL);
    }
    expect_seen(1, 4, 0);
    expect_same(held[0], held[1]);
    expect_same(read[0], read[1]);
    expect_all_same(params, 4);
    for (int d = 0; d < 2; d++)
        hob_tensor_unref(held[d]);
}
END_TEST

/* A second step of one parameter is in no list with the first. */
START_TEST(test_fusion_lists_of_steps_that_follow)
{
    struct param params[2][MOST_PARAMS];

    for (int d = 0; d < 2; d++) {
        for (uint32_t i = 0; i < 3; i++)
            params[d][i] = param_new(devices[d], HOB_DTYPE_F32, &net[i], i);
        for (int round = 0; round < 2; round++)
            for (uint32_t i = 0; i < 3; i++) {
                if (round)
                    params[d][i].grad = hob_sin(scope, params[d][i].at[0]);
                step(&params[d][i], 0, 0.01, NULL);
            }
        evaluate(params[d], 3, NULL);
    }
    expect_seen(2, 6, 0);
    expect_all_same(params, 3);
}
END_TEST

/* The plan of a window is found again for the next round, whose numbers may be
 * others: what is alike then is looked at in each. */
START_TEST(test_fusion_lists_of_rounds)
{
    struct hob_fusion_stats stats = HOB_FUSION_STATS_INIT;
    struct param params[2][MOST_PARAMS];

    is_sgd = _i;
    for (int d = 0; d < 2; d++) {
        for (uint32_t i = 0; i < 4; i++)
            params[d][i] = param_new(devices[d], HOB_DTYPE_F32, &net[i], i);
        for (int round = 0; round < 4; round++) {
            for (uint32_t i = 0; i < 4; i++) {
                params[d][i].grad = numbers(devices[d], HOB_DTYPE_F32, &net[i],
                                            100 * (uint64_t)round + i);
                step(&params[d][i], 0,
                     round == 2 && i < 2 ? 0.05 : 0.01 * round, NULL);
            }
            evaluate(params[d], 4, NULL);
        }
    }
    expect_seen(5, 16, 0);
    ck_assert_hob_ok(hob_fusion_report(devices[1], &stats, &error));
    ck_assert_uint_ge(stats.plan_hits, 2);
    expect_all_same(params, 4);
}
END_TEST

/* Ops between the steps do not part them unless they need their results. */
START_TEST(test_fusion_lists_among_others)
{
    struct param params[2][MOST_PARAMS];
    hob_tensor *sums[2];

    for (int d = 0; d < 2; d++) {
        sums[d] = NULL;
        for (uint32_t i = 0; i < 4; i++) {
            params[d][i] = param_new(devices[d], HOB_DTYPE_F32, &net[i], i);
            step(&params[d][i], 0, 0.01, NULL);
            if (i == 2)
                sums[d] = hob_sum(scope, params[d][1].at[0]);
        }
        evaluate(params[d], 4, sums[d]);
    }
    expect_seen(1, 3, 1);
    expect_same(sums[0], sums[1]);
    expect_all_same(params, 4);
}
END_TEST

/* Where a gradient is a failure only its step's results are, too. */
START_TEST(test_fusion_lists_with_a_failure)
{
    struct param params[2][MOST_PARAMS];
    hob_tensor *zero;

    for (int d = 0; d < 2; d++)
        for (uint32_t i = 0; i < 3; i++)
            params[d][i] = param_new(devices[d], HOB_DTYPE_F32, &net[3], i);
    zero = hob_cast(scope, params[1][1].at[0], HOB_DTYPE_I32);
    zero = hob_sub(scope, zero, zero);
    params[1][1].grad =
        hob_cast(scope, hob_div(scope, zero, zero), HOB_DTYPE_F32);
    for (int d = 0; d < 2; d++)
        for (uint32_t i = 0; i < 3; i++)
            step(&params[d][i], 0, 0.01, NULL);
    evaluate(params[0], 3, NULL);
    ck_assert_int_eq(hob_eval(params[1][0].at, STATE, &error), HOB_OK);
    ck_assert_int_eq(hob_eval(params[1][1].at, STATE, &error), HOB_ERR_RANGE);
    hob_error_release(&error);
    for (int i = 0; i < 3; i += 2)
        for (int k = 0; k < STATE; k++)
            expect_same(params[0][i].at[k], params[1][i].at[k]);
    hob_scope_clear_error(scope);
}
END_TEST

/* What is large runs alone, and so does what does not lie row by row. */
START_TEST(test_fusion_lists_leave_some_out)
{
    const struct sizes large = {2, {513, 512}};
    struct param params[2][MOST_PARAMS];

    for (int d = 0; d < 2; d++) {
        for (uint32_t i = 0; i < 4; i++)
            params[d][i] = param_new(devices[d], HOB_DTYPE_F32,
                                     i == 1 ? &large : &net[2], 10 * i);
        params[d][2].grad =
            hob_swap_dims(scope,
                          numbers(devices[d], HOB_DTYPE_F32,
                                  &(const struct sizes){2, {33, 50}}, 3),
                          0, 1);
        for (uint32_t i = 0; i < 4; i++)
            step(&params[d][i], 0, 0.01, NULL);
        evaluate(params[d], 4, NULL);
    }
    expect_seen(1, 2, 2);
    expect_all_same(params, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion lists");
    TCase *tc = tcase_create("fusion lists");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_fusion_lists_are_the_same_bits, 0,
                        test_device_is_slow() ? 4 : 16);
    tcase_add_loop_test(tc, test_fusion_lists_by_sgd, 0,
                        test_device_is_slow() ? 4 : 16);
    tcase_add_test(tc, test_fusion_lists_of_many);
    tcase_add_test(tc, test_fusion_lists_of_what_is_alike);
    tcase_add_test(tc, test_fusion_lists_write_over_nothing_held);
    tcase_add_test(tc, test_fusion_lists_of_steps_that_follow);
    tcase_add_loop_test(tc, test_fusion_lists_of_rounds, 0, 2);
    tcase_add_test(tc, test_fusion_lists_among_others);
    tcase_add_test(tc, test_fusion_lists_with_a_failure);
    tcase_add_test(tc, test_fusion_lists_leave_some_out);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adam's steps on gradients that are products: one kernel, the same bits
 * as op by op for every way in which flex multiplies, over the old parameter
 * and moments where nobody holds those; none where somebody wants the gradient.
 * And that a gradient which a scope around has the use of waits for the step.
 */
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <hob/hob.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *devices[2]; /* op by op, and put off */
static hob_error error;

static struct {
    int groups, singles;
    char name[128];
    uint32_t in_place;
    uint64_t saved;
} seen;

static void watch(void *context, const struct hob_fusion_event *event)
{
    (void)context;
    if (!event->is_group) {
        seen.singles++;
        return;
    }
    seen.groups++;
    seen.saved = event->saved_bytes;
    seen.in_place = event->in_place;
    snprintf(seen.name, sizeof(seen.name), "%s", event->name);
}

static void setup(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.plugin_paths = test_device_paths(&options.plugin_path_count);
    options.threads = 2;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(test_device_open(runtime, "flex", &devices[0], &error));
    ck_assert_hob_ok(
        test_device_open(runtime, "fusion(flex)", &devices[1], &error));
    ck_assert_hob_ok(hob_fusion_watch(devices[1], watch, NULL, &error));
    scope = hob_scope_open(runtime);
    memset(&seen, 0, sizeof(seen));
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(devices[0]);
    hob_device_unref(devices[1]);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* A matrix in IN, the same on all devices. */
static hob_tensor *numbers(hob_scope *in, hob_device *device, hob_dtype dtype,
                           int64_t rows, int64_t columns, uint64_t seed)
{
    const int64_t count = rows * columns;
    double *data = malloc((size_t)count * sizeof(*data) + 1);
    hob_tensor *tensor;

    ck_assert_ptr_nonnull(data);
    seed = seed * 2 + 1;
    for (int64_t i = 0; i < count; i++)
        data[i] = op_random(&seed);
    tensor = hob_cast(
        in, hob_from_f64(in, device, data, (int64_t[]){rows, columns}, 2),
        dtype);
    free(data);
    ck_assert_hob_ok(hob_eval(&tensor, 1, &error));
    return tensor;
}

/* What a step has and gives: param, m, v. */
struct state {
    hob_tensor *at[3];
};

static struct state state_new(hob_device *device, hob_dtype dtype, int64_t rows,
                              int64_t columns)
{
    struct state state;

    state.at[0] = numbers(scope, device, dtype, rows, columns, 3);
    state.at[1] = numbers(scope, device, dtype, rows, columns, 4);
    state.at[2] =
        hob_square(scope, numbers(scope, device, dtype, rows, columns, 5));
    ck_assert_hob_ok(hob_eval(&state.at[2], 1, &error));
    return state;
}

/* STATE after a step, its old tensors moved unless KEEPS. */
static struct state stepped(hob_scope *in, const struct state *state,
                            hob_tensor *grad, int keeps)
{
    struct state out = {{NULL}};
    hob_tensor *old[3];

    for (int i = 0; i < 3; i++)
        old[i] = keeps ? state->at[i] : hob_move(in, state->at[i]);
    ck_assert_hob_ok(hob_adam_step(in, old[0], grad, old[1], old[2], 7, 0.01,
                                   0.9, 0.999, 1e-8, 0.1, NULL, &out.at[0],
                                   &out.at[1], &out.at[2]));
    return out;
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

/* In strips, one row, few rows by a large matrix, tasks with odd edges, wide
 * and narrow, deep, nothing to add up. */
static const struct size {
    int64_t m, n, k;
} sizes[] = {{1, 1, 1},      {3, 5, 7},     {33, 17, 40},   {784, 256, 2},
             {1, 600, 300},  {4, 700, 513}, {130, 97, 260}, {257, 300, 70},
             {61, 1100, 90}, {65, 40, 900}, {300, 9, 129},  {20, 30, 0}};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

START_TEST(test_fusion_updates_are_the_same_bits)
{
    const struct size *size = &sizes[_i % SIZES];
    const int keeps = _i / SIZES;

    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_F32; dtype++) {
        struct state out[2];

        for (int d = 0; d < 2; d++) {
            struct state state = state_new(devices[d], dtype, size->m, size->n);
            hob_tensor *x = hob_swap_dims(
                scope, numbers(scope, devices[d], dtype, size->k, size->m, 1),
                0, 1);
            hob_tensor *g =
                numbers(scope, devices[d], dtype, size->k, size->n, 2);
            hob_tensor *grad = hob_matmul(scope, x, g);

            memset(&seen, 0, sizeof(seen));
            out[d] = stepped(scope, &state, hob_move(scope, grad), keeps);
            ck_assert_hob_ok(hob_eval(out[d].at, 3, &error));
        }
        if (test_device_is_flex()) {
            ck_assert_str_eq(seen.name, "matmul+adam_step");
            ck_assert_int_eq(seen.groups, 1);
            ck_assert_uint_eq(seen.in_place, keeps ? 0 : 3);
            ck_assert_uint_eq(seen.saved, 2 * (uint64_t)(size->m * size->n) *
                                              hob_dtype_size(dtype));
        }
        for (int i = 0; i < 3; i++)
            expect_same(out[0].at[i], out[1].at[i]);
    }
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

/* SGD's steps are steps of a group that finishes the product, which has no
 * memory either if they may write over the parameter: but not if that is what
 * the product is of. */
START_TEST(test_fusion_updates_by_sgd)
{
    const struct size *size = &sizes[_i % SIZES];
    const int keeps = _i / SIZES == 1, is_own = _i / SIZES == 2;
    const int64_t columns = is_own ? size->m : size->n;

    for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_F32; dtype++) {
        hob_tensor *out[2];

        for (int d = 0; d < 2; d++) {
            hob_tensor *param =
                numbers(scope, devices[d], dtype, size->m, columns, 3);
            hob_tensor *x = hob_swap_dims(
                scope, numbers(scope, devices[d], dtype, size->k, size->m, 1),
                0, 1);
            hob_tensor *g =
                numbers(scope, devices[d], dtype, size->k, columns, 2);
            hob_tensor *grad =
                is_own ? hob_matmul(scope, param,
                                    hob_swap_dims(scope, param, 0, 1))
                       : hob_matmul(scope, x, g);

            memset(&seen, 0, sizeof(seen));
            out[d] = hob_sgd_step(scope, keeps ? param : hob_move(scope, param),
                                  hob_move(scope, grad), 0.01, 0);
            ck_assert_hob_ok(hob_eval(&out[d], 1, &error));
        }
        if (test_device_is_flex()) {
            ck_assert_int_eq(seen.groups, 1);
            ck_assert_uint_eq(seen.in_place, !keeps && !is_own);
        }
        expect_same(out[0], out[1]);
    }
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

/* Such a step is one node: alone it is the op, and steps in a group with what
 * makes its gradient, with numbers that may be others each time. */
START_TEST(test_fusion_updates_by_sgd_are_one_node)
{
    struct hob_fusion_stats before = HOB_FUSION_STATS_INIT;
    struct hob_fusion_stats after = HOB_FUSION_STATS_INIT;
    hob_tensor *out[2];

    for (int d = 0; d < 2; d++) {
        hob_tensor *grad = numbers(scope, devices[d], HOB_DTYPE_F32, 40, 30, 2);

        out[d] = numbers(scope, devices[d], HOB_DTYPE_F32, 40, 30, 3);
        memset(&seen, 0, sizeof(seen));
        ck_assert_hob_ok(hob_fusion_report(devices[1], &before, &error));
        for (int i = 0; i < 4; i++) {
            hob_tensor *g = _i ? hob_sin(scope, grad) : grad;

            out[d] = hob_sgd_step(scope, hob_move(scope, out[d]), g, 0.01 * i,
                                  i == 2 ? 0 : 0.1 * i);
            ck_assert_hob_ok(hob_eval(&out[d], 1, &error));
        }
        ck_assert_hob_ok(hob_fusion_report(devices[1], &after, &error));
    }
    ck_assert_uint_eq(after.recorded - before.recorded, _i ? 8 : 4);
    if (test_device_is_flex()) {
        ck_assert_int_eq(seen.groups, _i ? 4 : 0);
        ck_assert_int_eq(seen.singles, _i ? 0 : 4);
    }
    expect_same(out[0], out[1]);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

/* Somebody holds the gradient, or another op reads it. */
START_TEST(test_fusion_updates_that_leave_the_gradient)
{
    struct state out[2];
    hob_tensor *norms[2];

    for (int d = 0; d < 2; d++) {
        struct state state = state_new(devices[d], HOB_DTYPE_F32, 40, 30);
        hob_tensor *x = numbers(scope, devices[d], HOB_DTYPE_F32, 40, 20, 1);
        hob_tensor *g = numbers(scope, devices[d], HOB_DTYPE_F32, 20, 30, 2);
        hob_tensor *grad = hob_matmul(scope, x, g);

        memset(&seen, 0, sizeof(seen));
        if (_i)
            norms[d] = hob_sum(scope, hob_square(scope, grad));
        out[d] = stepped(scope, &state, _i ? hob_move(scope, grad) : grad, 0);
        ck_assert_hob_ok(hob_eval(out[d].at, 3, &error));
        ck_assert_str_ne(seen.name, "matmul+adam_step");
        if (!_i)
            norms[d] = grad;
    }
    expect_same(norms[0], norms[1]);
    for (int i = 0; i < 3; i++)
        expect_same(out[0].at[i], out[1].at[i]);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

/* A moment that somebody holds is not written over. */
START_TEST(test_fusion_updates_write_over_nothing_held)
{
    double before[40 * 30], after[40 * 30];
    struct state state = state_new(devices[1], HOB_DTYPE_F64, 40, 30);
    hob_tensor *x = numbers(scope, devices[1], HOB_DTYPE_F64, 40, 20, 1);
    hob_tensor *g = numbers(scope, devices[1], HOB_DTYPE_F64, 20, 30, 2);
    hob_tensor *grad = hob_matmul(scope, x, g), *held = state.at[1];
    struct state out;

    hob_tensor_ref(held);
    ck_assert_hob_ok(hob_read_f64(held, before, 40 * 30, &error));
    out = stepped(scope, &state, hob_move(scope, grad), 0);
    ck_assert_hob_ok(hob_eval(out.at, 3, &error));
    ck_assert(!test_device_is_flex() || seen.in_place == 2);
    ck_assert_hob_ok(hob_read_f64(held, after, 40 * 30, &error));
    ck_assert_mem_eq(before, after, sizeof(before));
    hob_tensor_unref(held);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

/* ---- scopes ---- */

/* A step as programs have it: the gradient is made in a scope of its own, which
 * is closed before the update in scope STEP; *OUT_HELD, if given, is held. */
static struct state step_in_scopes(hob_device *device, hob_scope *step,
                                   const struct state *state,
                                   hob_tensor **out_held)
{
    hob_scope *inside = hob_scope_child(step);
    hob_tensor *x = numbers(inside, device, HOB_DTYPE_F32, 40, 20, 1);
    hob_tensor *g = numbers(inside, device, HOB_DTYPE_F32, 20, 30, 2);
    hob_tensor *grad;

    memset(&seen, 0, sizeof(seen));
    grad = hob_keep(step, hob_matmul(inside, x, g));
    if (out_held) {
        hob_tensor_ref(grad);
        *out_held = grad;
    }
    hob_scope_close(inside);
    return stepped(step, state, grad, 0);
}

START_TEST(test_fusion_updates_wait_for_the_step)
{
    struct state states[2], out;

    for (int d = 0; d < 2; d++) {
        hob_scope *step = hob_scope_child(scope);

        states[d] = state_new(devices[d], HOB_DTYPE_F32, 40, 30);
        out = step_in_scopes(devices[d], step, &states[d], NULL);
        ck_assert_int_eq(seen.groups + seen.singles, 0);
        for (int i = 0; i < 3; i++)
            hob_assign(scope, &states[d].at[i], out.at[i]);
        hob_scope_close(step);
    }
    if (test_device_is_flex())
        ck_assert_str_eq(seen.name, "matmul+adam_step");
    for (int i = 0; i < 3; i++)
        expect_same(states[0].at[i], states[1].at[i]);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

/* Not what the program holds, nor what the outermost scope has, which may be
 * open for as long as the program runs. */
START_TEST(test_fusion_updates_do_not_wait_for_the_program)
{
    hob_scope *step = _i ? hob_scope_child(scope) : scope;
    struct state state = state_new(devices[1], HOB_DTYPE_F32, 40, 30);
    hob_tensor *held = NULL;
    struct state out =
        step_in_scopes(devices[1], step, &state, _i ? &held : NULL);

    ck_assert_int_eq(seen.groups, 0);
    ck_assert_int_eq(seen.singles, 1);
    ck_assert_hob_ok(hob_eval(out.at, 3, &error));
    if (_i) {
        hob_tensor_unref(held);
        hob_scope_close(step);
    }
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

/* What is inherited is computed when much was recorded since, so a long scope
 * does not keep what it is made of. */
enum { LONG = 200, LONG_OPS = 4 };

static hob_tensor *some_ops(hob_scope *in, hob_tensor *x, int number)
{
    hob_tensor *y = hob_mul_scalar(in, x, hob_f64(number));

    for (int i = 1; i < LONG_OPS; i++)
        y = hob_sin(in, hob_move(in, y));
    return y;
}

START_TEST(test_fusion_updates_do_not_wait_for_long)
{
    hob_scope *outer = hob_scope_child(scope);
    hob_tensor *x[2], *kept[LONG];
    int most = 0, waiting = 0, ran = 0;

    for (int d = 0; d < 2; d++)
        x[d] = numbers(scope, devices[d], HOB_DTYPE_F32, 8, 8, 1);
    memset(&seen, 0, sizeof(seen));
    for (int i = 0; i < LONG; i++) {
        hob_scope *inside = hob_scope_child(outer);

        kept[i] = hob_keep(outer, some_ops(inside, x[1], i));
        hob_scope_close(inside);
        /* A device that compiles runs a new group's ops one by one. */
        waiting = seen.groups + seen.singles == ran ? waiting + 1 : 0;
        ran = seen.groups + seen.singles;
        most = waiting > most ? waiting : most;
    }
    ck_assert_int_ge(most, 4);
    ck_assert_int_le(most, 256 / LONG_OPS + 1);
    for (int i = 0; i < LONG; i++)
        expect_same(some_ops(scope, x[0], i), kept[i]);
    hob_scope_close(outer);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

/* An argument of the product is a failure: so are the results. */
START_TEST(test_fusion_updates_of_a_failure)
{
    struct state state = state_new(devices[1], HOB_DTYPE_F32, 40, 30);
    hob_scope *bad = hob_scope_child(scope);
    hob_tensor *x = numbers(bad, devices[1], HOB_DTYPE_F32, 40, 20, 1);
    hob_tensor *g =
        hob_add(bad, numbers(bad, devices[1], HOB_DTYPE_F32, 20, 30, 2), x);
    hob_tensor *grad = hob_matmul(bad, x, g);
    hob_tensor *param = NULL, *m = NULL, *v = NULL;

    (void)!hob_adam_step(bad, state.at[0], grad, state.at[1], state.at[2], 7,
                         0.01, 0.9, 0.999, 1e-8, 0.1, NULL, &param, &m, &v);
    ck_assert_int_eq(hob_scope_error(bad, &error), HOB_ERR_SHAPE);
    hob_scope_clear_error(bad);
    hob_scope_close(bad);
    hob_error_release(&error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion updates");
    TCase *tc = tcase_create("fusion updates");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_fusion_updates_are_the_same_bits, 0,
                        2 * SIZES);
    tcase_add_loop_test(tc, test_fusion_updates_by_sgd, 0, 3 * SIZES);
    tcase_add_loop_test(tc, test_fusion_updates_by_sgd_are_one_node, 0, 2);
    tcase_add_loop_test(tc, test_fusion_updates_that_leave_the_gradient, 0, 2);
    tcase_add_test(tc, test_fusion_updates_write_over_nothing_held);
    tcase_add_test(tc, test_fusion_updates_wait_for_the_step);
    tcase_add_loop_test(tc, test_fusion_updates_do_not_wait_for_the_program, 0,
                        2);
    tcase_add_test(tc, test_fusion_updates_do_not_wait_for_long);
    tcase_add_test(tc, test_fusion_updates_of_a_failure);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

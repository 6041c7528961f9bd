/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures that check their steps: whatever changes from run to run, results
 * are those of the function as it is, bit by bit; and what is the same is
 * replayed. On the backend that records (tape_backend.h), or on the device that
 * HOB_TEST_DEVICE names.
 */
#include <hob/ext/capture.h>
#include <hob/hob.h>

#include "hob_check.h"
#include "mock/reference_backend.h"
#include "tape_backend.h"
#include "test_device.h"

#include <stdio.h>

enum { COUNT = 5, RUNS = 12 };

static hob_runtime *runtime;
static hob_device *base, *tracked, *fused, *other;
static hob_scope *scope;
static hob_error error;
static int64_t blocks; /* before the test */

static int is_tape(void)
{
    return test_device_is_flex();
}

static hob_device *open_layer(const char *layer)
{
    hob_device *device = NULL;
    char text[200];

    snprintf(text, sizeof(text), layer, hob_device_name(base));
    ck_assert_hob_ok(hob_device_open(runtime, text, &device, &error));
    return device;
}

static void setup(void)
{
    struct hob_static_plugin plugins[] = {
        {reference_backend_manifest, hob_plugin_entry_reference},
        {tape_backend_manifest, hob_plugin_entry_tape}};
    struct hob_runtime_options options = test_options();

    options.static_plugins = plugins;
    options.static_plugin_count = 2;
    blocks = tape_counts().blocks;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(
        runtime, is_tape() ? "tape" : test_device(), &base, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "reference", &other, &error));
    tracked = fused = NULL;
    if (options.plugin_path_count) {
        tracked = open_layer("autodiff(%s)");
        fused = open_layer("autodiff(fusion(%s))");
    }
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    hob_scope_close(scope);
    hob_device_unref(base);
    hob_device_unref(tracked);
    hob_device_unref(fused);
    hob_device_unref(other);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    ck_assert_int_eq(tape_counts().graphs, 0);
    ck_assert_int_eq(tape_counts().blocks, blocks);
}

/* ---- steps ---- */

enum what {
    SAME,     /* state * rate + input, which is the result too */
    IN_PLACE, /* the same with the state moved */
    RANDOM,   /* plus numbers drawn at random, times 0 */
    READ,     /* the sum is read on the way */
    BRANCH,   /* one op more where there is odd */
    MOVE,    /* what is computed from the state, or from what is in its place */
    LEAVE,   /* where there is odd something is kept */
    GRADIENT /* the state less the gradient of its square */
};

struct plan {
    enum what what;
    double rate;
    int odd;
    int calls;
    hob_tensor *constant; /* added too, if there is one */
    hob_tensor *left;
};

/* 3 x + x and 3 x + 3 x are computed by the same calls, and where the product
 * lies in x's place from the same addresses. */
static hob_tensor *move_step(hob_scope *in, int odd, hob_tensor *x)
{
    hob_tensor *y;

    x = hob_add_scalar(in, x, hob_f64(1));
    y = hob_mul_scalar(in, odd ? hob_move(in, x) : x, hob_f64(3));
    return odd ? hob_add(in, y, y) : hob_add(in, y, x);
}

static hob_tensor *gradient_step(hob_scope *in, double rate, hob_tensor *state)
{
    hob_tensor *leaf = hob_require_grad(in, state), *grad = NULL;
    hob_grads *grads = NULL;

    if (!hob_backward(in, hob_sum(in, hob_square(in, leaf)), 0, &grads, NULL))
        ck_assert_hob_ok(hob_grad(in, leaf, grads, &grad, &error));
    hob_grads_free(grads);
    return grad ? hob_sgd_step(in, hob_inner(in, leaf), grad, rate, 0) : state;
}

static hob_status step_of(hob_scope *in, void *context, struct hob_step *step)
{
    struct plan *plan = context;
    const int64_t count = COUNT;
    hob_tensor *x = step->state[0];
    double number = 0;

    plan->calls++;
    if (plan->what == GRADIENT)
        x = gradient_step(in, plan->rate, x);
    else if (plan->what == MOVE)
        x = move_step(in, plan->odd, x);
    else
        x = hob_mul_scalar(in, plan->what == IN_PLACE ? hob_move(in, x) : x,
                           hob_f64(plan->rate));
    x = hob_add(in, x, step->inputs[0]);
    if (plan->constant)
        x = hob_add(in, x, plan->constant);
    if (plan->what == RANDOM)
        x = hob_add(in, x,
                    hob_mul_scalar(in,
                                   hob_random_uniform(in, &count, 1, 0, 1, base,
                                                      HOB_DTYPE_F32),
                                   hob_f64(0)));
    if (plan->what == READ && hob_item(hob_sum(in, x), &number, NULL))
        return HOB_ERR_STATE;
    if (plan->what == BRANCH && plan->odd)
        x = hob_neg(in, x);
    if (plan->what == LEAVE && plan->odd)
        plan->left = hob_keep(scope, hob_neg(in, x));
    step->new_state[0] = step->out[0] = x;
    return HOB_OK;
}

static hob_tensor *vector(hob_device *device, double first)
{
    const int64_t count = COUNT;
    float data[COUNT];

    for (int i = 0; i < COUNT; i++)
        data[i] = (float)(first + 0.37 * i);
    return hob_from_f32(scope, device, data, &count, 1);
}

/* The function as it is, on STATE, which becomes the next. */
static void plain(struct plan *plan, hob_tensor **state, hob_tensor *input)
{
    hob_tensor *next, *out;
    struct hob_step step = {.struct_size = sizeof(step),
                            .state_count = 1,
                            .input_count = 1,
                            .out_count = 1,
                            .state = state,
                            .inputs = &input,
                            .new_state = &next,
                            .out = &out};

    hob_tensor_ref(*state); /* it may be moved */
    ck_assert_hob_ok(step_of(scope, plan, &step));
    hob_tensor_unref(*state);
    *state = hob_to_device(scope, next, hob_tensor_device(*state));
}

static void check_equal(hob_tensor *a, hob_tensor *b)
{
    float left[COUNT], right[COUNT];

    ck_assert_ptr_nonnull(a);
    ck_assert_hob_ok(hob_read_f32(a, left, COUNT, &error));
    ck_assert_hob_ok(hob_read_f32(b, right, COUNT, &error));
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(left[i] == right[i], "element %d is %.9g, not %.9g", i,
                      (double)left[i], (double)right[i]);
}

/* A capture of PLAN beside the function as it is. */
struct pair {
    struct plan plan, plain;
    hob_device *device;
    hob_capture *capture;
    hob_tensor *state;
    int replays;
};

static void pair_open(struct pair *pair, hob_device *device, enum what what)
{
    *pair = (struct pair){.plan = {what, 0.5, 0, 0, NULL, NULL},
                          .plain = {what, 0.5, 0, 0, NULL, NULL},
                          .device = device};
    pair->state = vector(device, 0.1);
    ck_assert_hob_ok(hob_capture_open_checked(
        device, step_of, &pair->plan, &pair->state, 1, &pair->capture, &error));
}

/* One step of both, which must come to the same; with REASON it is no replay,
 * and the words say so. */
static void pair_run(struct pair *pair, int index, const char *reason)
{
    hob_tensor *input = vector(pair->device, 0.01 * index), *out = NULL;
    const char *why;

    ck_assert_hob_ok(
        hob_capture_run(scope, pair->capture, &input, 1, &out, 1, &error));
    why = hob_capture_reason(pair->capture);
    pair->replays += !why;
    if (reason)
        ck_assert_msg(why && strstr(why, reason), "run %d: \"%s\", not \"%s\"",
                      index, why ? why : "a replay", reason);
    else
        ck_assert_msg(!why, "run %d: %s", index, why);
    plain(&pair->plain, &pair->state, input);
    check_equal(out, pair->state);
    check_equal(hob_capture_state(scope, pair->capture, 0), pair->state);
}

static void set_rate(struct pair *pair, double rate)
{
    pair->plan.rate = pair->plain.rate = rate;
}

static void set_odd(struct pair *pair, int odd)
{
    pair->plan.odd = pair->plain.odd = odd;
}

/* ---- what is the same ---- */

START_TEST(test_capture_checked_replays)
{
    static const enum what same[] = {SAME, IN_PLACE, MOVE, BRANCH, GRADIENT};
    struct pair pair;
    int64_t copies = 0;

    if (same[_i] == GRADIENT && !tracked)
        return;
    pair_open(&pair, same[_i] == GRADIENT ? tracked : base, same[_i]);
    for (int i = 0; i < RUNS; i++) {
        pair_run(&pair, i, i ? NULL : "first");
        ck_assert_int_eq(pair.plan.calls, i + 1);
        if (i == 2)
            copies = tape_counts().replays;
    }
    ck_assert_int_eq(pair.replays, RUNS - 1);
    if (is_tape())
        ck_assert_int_eq(tape_counts().replays - copies, RUNS - 3);
    hob_capture_close(pair.capture);
}
END_TEST

/* State: param, m, v; inputs: the gradient, the step's number and the rate. */
static hob_status adam_of(hob_scope *in, void *context, struct hob_step *step)
{
    (void)context;
    return hob_adam_step(in, hob_move(in, step->state[0]), step->inputs[0],
                         hob_move(in, step->state[1]),
                         hob_move(in, step->state[2]), 0, 0, 0.9, 0.99, 1e-8,
                         0.01, step->inputs[1], &step->new_state[0],
                         &step->new_state[1], &step->new_state[2]);
}

/* Adam's number and rate change in each step, and the step is the same. */
START_TEST(test_capture_checked_trains_by_adam)
{
    hob_tensor *state[3] = {vector(base, 0.1), vector(base, 0),
                            vector(base, 0)};
    hob_tensor *inputs[2], *next[3];
    struct hob_step step = {.struct_size = sizeof(step),
                            .state_count = 3,
                            .input_count = 2,
                            .state = state,
                            .inputs = inputs,
                            .new_state = next};
    hob_capture *capture;

    ck_assert_hob_ok((_i ? hob_capture_open_checked : hob_capture_open)(
        base, adam_of, NULL, state, 3, &capture, &error));
    for (int i = 0; i < RUNS; i++) {
        const float now[2] = {(float)(i + 1), (float)(0.1 / (i + 1))};
        const int64_t two = 2;

        inputs[0] = vector(base, 0.3 * i - 1);
        inputs[1] = hob_from_f32(scope, base, now, &two, 1);
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, inputs, 2, NULL, 0, &error));
        ck_assert(!_i || !i || !hob_capture_reason(capture));
        ck_assert_hob_ok(adam_of(scope, NULL, &step));
        memcpy(state, next, sizeof(state));
        for (uint32_t k = 0; k < 3; k++)
            check_equal(hob_capture_state(scope, capture, k), state[k]);
    }
    hob_capture_close(capture);
}
END_TEST

/* ---- what changes ---- */

/* A number changes and stays: one run as it is, one recording. */
START_TEST(test_capture_checked_sees_numbers)
{
    struct pair pair;

    pair_open(&pair, base, SAME);
    for (int i = 0; i < RUNS; i++) {
        if (i == 5)
            set_rate(&pair, 0.25);
        pair_run(&pair, i, i == 0 ? "first" : i == 5 ? "recorded" : NULL);
    }
    hob_capture_close(pair.capture);
}
END_TEST

/* A number that always changes is not recorded for ever. */
START_TEST(test_capture_checked_gives_up)
{
    struct pair pair;
    int64_t graphs;

    pair_open(&pair, base, SAME);
    for (int i = 0; i < RUNS; i++) {
        set_rate(&pair, 0.5 + 0.01 * i);
        /* Runs 1, 3 and 5 are recordings. */
        pair_run(&pair, i,
                 i == 0           ? "first"
                 : i < 6 && i % 2 ? NULL
                                  : "recorded");
    }
    graphs = tape_counts().graphs;
    if (is_tape())
        ck_assert_int_eq(graphs, 0);
    ck_assert_int_eq(pair.replays, 3);
    /* Another kind is recorded, and this one still says why it is not. */
    for (int i = 0; i < 4; i++) {
        const int64_t one = 1;
        const float seven = 7;
        hob_tensor *input = hob_from_f32(scope, base, &seven, &one, 1);
        hob_tensor *out = NULL;

        ck_assert_hob_ok(
            hob_capture_run(scope, pair.capture, &input, 1, &out, 1, &error));
        ck_assert_int_eq(hob_capture_reason(pair.capture) == NULL, i >= 1);
        plain(&pair.plain, &pair.state, input);
        check_equal(out, pair.state);
        pair_run(&pair, RUNS + i, "recorded");
    }
    hob_capture_close(pair.capture);
}
END_TEST

START_TEST(test_capture_checked_sees_tensors)
{
    struct pair pair;

    pair_open(&pair, base, SAME);
    for (int i = 0; i < RUNS; i++) {
        if (i % 6 == 0)
            pair.plan.constant = pair.plain.constant = vector(base, 7 + i);
        pair_run(&pair, i, i == 0 ? "first" : i % 6 ? NULL : "add");
    }
    hob_capture_close(pair.capture);
}
END_TEST

START_TEST(test_capture_checked_sees_calls)
{
    static const enum what whats[] = {BRANCH, MOVE};
    struct pair pair;

    pair_open(&pair, base, whats[_i]);
    for (int i = 0; i < RUNS; i++) {
        set_odd(&pair, i >= 5 && i < 8);
        pair_run(&pair, i,
                 i == 0             ? "first"
                 : i == 5 || i == 8 ? "not what was recorded"
                                    : NULL);
    }
    hob_capture_close(pair.capture);
}
END_TEST

/* Inputs of another kind have a recording of their own. */
START_TEST(test_capture_checked_knows_kinds)
{
    struct pair pair;
    const int64_t one = 1;
    const float seven = 7;

    pair_open(&pair, base, SAME);
    for (int i = 0; i < RUNS; i++) {
        hob_tensor *input = i % 2 ? hob_from_f32(scope, base, &seven, &one, 1)
                                  : vector(base, i);
        hob_tensor *out = NULL;

        ck_assert_hob_ok(
            hob_capture_run(scope, pair.capture, &input, 1, &out, 1, &error));
        ck_assert_int_eq(hob_capture_reason(pair.capture) == NULL, i >= 2);
        plain(&pair.plain, &pair.state, input);
        check_equal(out, pair.state);
    }
    hob_capture_close(pair.capture);
}
END_TEST

/* ---- what cannot be ---- */

START_TEST(test_capture_checked_runs_what_is_refused)
{
    static const struct {
        enum what what;
        const char *reason;
    } refused[] = {{RANDOM, "random_uniform"}, {READ, "cannot record"}};
    struct pair pair;

    pair_open(&pair, base, refused[_i].what);
    for (int i = 0; i < RUNS; i++)
        pair_run(&pair, i, i ? refused[_i].reason : "first");
    /* Once more for the recording that was refused. */
    ck_assert_int_eq(pair.plan.calls, RUNS + 1);
    hob_capture_close(pair.capture);
}
END_TEST

/* A step that keeps something now and then is run as it is then. */
START_TEST(test_capture_checked_leaves_nothing)
{
    struct pair pair;

    pair_open(&pair, base, LEAVE);
    for (int i = 0; i < RUNS; i++) {
        set_odd(&pair, i == 5);
        pair_run(&pair, i, i == 0 ? "first" : i == 5 ? "recorded" : NULL);
        if (i == 5)
            check_equal(pair.plan.left, pair.plain.left);
    }
    hob_capture_close(pair.capture);
}
END_TEST

START_TEST(test_capture_checked_works_everywhere)
{
    struct pair pair;
    hob_device *device = _i ? fused : other;

    if (!device)
        return;
    pair_open(&pair, device, SAME);
    for (int i = 0; i < RUNS; i++) {
        set_rate(&pair, 0.5 + i % 3);
        pair_run(&pair, i, _i ? "puts ops off" : "cannot record");
    }
    ck_assert_int_eq(pair.plan.calls, RUNS);
    hob_capture_close(pair.capture);
}
END_TEST

/* An error of the step is the run's, and the state is as it was. */
START_TEST(test_capture_checked_fails)
{
    struct pair pair;
    const int64_t bad = COUNT + 1;
    hob_tensor *input, *out;

    pair_open(&pair, base, SAME);
    for (int i = 0; i < 3; i++)
        pair_run(&pair, i, i ? NULL : "first");
    input = hob_zeros(scope, &bad, 1, base, HOB_DTYPE_F32);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            hob_capture_run(scope, pair.capture, &input, 1, &out, 1, &error),
            HOB_ERR_SHAPE);
        ck_assert_ptr_null(out);
        ck_assert_ptr_nonnull(strstr(error.message, "add"));
        hob_error_release(&error);
        check_equal(hob_capture_state(scope, pair.capture, 0), pair.state);
    }
    pair_run(&pair, 3, NULL);
    hob_capture_close(pair.capture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("capture_checked");
    TCase *tcase = tcase_create("capture_checked");
    SRunner *runner;
    int failed;

    if (!is_tape() && !test_device_offers(HOB_CAPTURE_INTERFACE,
                                          HOB_CAPTURE_INTERFACE_VERSION)) {
        printf("skipped: %s records no steps\n", test_device());
        return 77;
    }
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, test_capture_checked_replays, 0, 5);
    tcase_add_loop_test(tcase, test_capture_checked_trains_by_adam, 0, 2);
    tcase_add_test(tcase, test_capture_checked_sees_numbers);
    tcase_add_test(tcase, test_capture_checked_gives_up);
    tcase_add_test(tcase, test_capture_checked_sees_tensors);
    tcase_add_loop_test(tcase, test_capture_checked_sees_calls, 0, 2);
    tcase_add_test(tcase, test_capture_checked_knows_kinds);
    tcase_add_loop_test(tcase, test_capture_checked_runs_what_is_refused, 0, 2);
    tcase_add_test(tcase, test_capture_checked_leaves_nothing);
    tcase_add_loop_test(tcase, test_capture_checked_works_everywhere, 0, 2);
    tcase_add_test(tcase, test_capture_checked_fails);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/capture.h on a backend that records (tape_backend.h), or on the device
 * that HOB_TEST_DEVICE names if that can: a captured step computes what its
 * function does, and says what cannot be captured.
 */
#include <hob/ext/capture.h>
#include <hob/hob.h>

#include "hob_check.h"
#include "mock/reference_backend.h"
#include "tape_backend.h"
#include "test_device.h"

#include <pthread.h>
#include <stdio.h>

enum { IN = 5, HIDDEN = 7, CLASSES = 3, PARAMS = 4, STEPS = 6, MOST = 64 };

static hob_runtime *runtime;
static hob_device *base;    /* that captures */
static hob_device *tracked; /* autodiff around it */
static hob_device *other;   /* "reference", which cannot */
static hob_scope *scope;
static hob_error error;
static int64_t blocks; /* before the test */

static int is_tape(void)
{
    return test_device_is_flex();
}

static void setup(void)
{
    struct hob_static_plugin plugins[] = {
        {reference_backend_manifest, hob_plugin_entry_reference},
        {tape_backend_manifest, hob_plugin_entry_tape}};
    struct hob_runtime_options options = test_options();
    const char *name = is_tape() ? "tape" : test_device();
    char text[200];

    options.static_plugins = plugins;
    options.static_plugin_count = 2;
    blocks = tape_counts().blocks;
    snprintf(text, sizeof(text), "autodiff(%s)", name);
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, name, &base, &error));
    tracked = NULL;
    if (options.plugin_path_count)
        ck_assert_hob_ok(hob_device_open(runtime, text, &tracked, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "reference", &other, &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(base);
    hob_device_unref(tracked);
    hob_device_unref(other);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    ck_assert_int_eq(tape_counts().graphs, 0);
    ck_assert_int_eq(tape_counts().blocks, blocks);
}

static hob_tensor *vector(hob_device *device, int64_t count, double first)
{
    double data[MOST];

    for (int64_t i = 0; i < count; i++)
        data[i] = first + (double)i;
    return hob_from_f64(scope, device, data, &count, 1);
}

static void check_vector(hob_tensor *tensor, int64_t count, double first,
                         double step)
{
    double data[MOST];

    ck_assert_ptr_nonnull(tensor);
    ck_assert_int_eq(hob_tensor_count(tensor), count);
    ck_assert_hob_ok(hob_read_f64(tensor, data, count, &error));
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq(data[i], first + step * (double)i);
}

/* ---- training ---- */

struct net {
    hob_device *device;
    int calls; /* of the function */
    double rate;
};

/* Numbers that are the same everywhere, about -1/2 to 1/2. */
static hob_tensor *numbers(const int64_t *shape, int32_t rank, uint32_t seed)
{
    float data[MOST * 8];
    int64_t count = 1;

    for (int32_t i = 0; i < rank; i++)
        count *= shape[i];
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / (1 << 24) - 0.5f;
    }
    return hob_from_f32(scope, tracked, data, shape, rank);
}

static void first_params(hob_tensor **out)
{
    out[0] = numbers((int64_t[]){IN, HIDDEN}, 2, 1);
    out[1] = numbers((int64_t[]){HIDDEN}, 1, 2);
    out[2] = numbers((int64_t[]){HIDDEN, CLASSES}, 2, 3);
    out[3] = numbers((int64_t[]){CLASSES}, 1, 4);
}

static hob_status train_step(hob_scope *in, void *context,
                             struct hob_step *step)
{
    struct net *net = context;
    hob_tensor *leaves[PARAMS], *grad, *x, *loss;
    hob_grads *grads = NULL;
    hob_status status = HOB_OK;

    net->calls++;
    ck_assert_uint_eq(step->state_count, PARAMS);
    ck_assert_uint_eq(step->input_count, 2);
    for (int i = 0; i < PARAMS; i++)
        leaves[i] = hob_require_grad(in, step->state[i]);
    x = hob_relu(in, hob_linear(in, step->inputs[0], leaves[0], leaves[1]));
    x = hob_linear(in, x, leaves[2], leaves[3]);
    loss = hob_cross_entropy(in, x, step->inputs[1]);
    status = hob_backward(in, loss, 0, &grads, NULL);
    for (int i = 0; i < PARAMS && !status; i++) {
        status = hob_grad(in, leaves[i], grads, &grad, NULL);
        if (!status)
            step->new_state[i] =
                hob_sgd_step(in, hob_inner(in, leaves[i]), grad, net->rate, 0);
    }
    hob_grads_free(grads);
    if (step->out_count)
        step->out[0] = loss;
    return status;
}

/* The batch of step INDEX: every third is smaller. */
static void batch_of(int index, hob_tensor *out[2])
{
    const int64_t rows = index % 3 == 2 ? 3 : 4;
    int32_t labels[4];

    for (int i = 0; i < 4; i++)
        labels[i] = (i + index) % CLASSES;
    out[0] = numbers((int64_t[]){rows, IN}, 2, 100 + (uint32_t)index);
    out[1] = hob_from_i32(scope, tracked, labels, &rows, 1);
}

/* One step without a capture: PARAMS become the next. */
static hob_tensor *plain_step(struct net *net, hob_tensor **params,
                              hob_tensor *const *batch)
{
    hob_tensor *next[PARAMS], *loss = NULL;
    struct hob_step step = {.struct_size = sizeof(step),
                            .state_count = PARAMS,
                            .input_count = 2,
                            .out_count = 1,
                            .state = params,
                            .inputs = batch,
                            .new_state = next,
                            .out = &loss};

    ck_assert_hob_ok(train_step(scope, net, &step));
    for (int i = 0; i < PARAMS; i++)
        params[i] = hob_to_device(scope, next[i], tracked);
    return loss;
}

static void check_equal(hob_tensor *a, hob_tensor *b)
{
    float left[MOST * 8], right[MOST * 8];
    const int64_t count = hob_tensor_count(a);

    ck_assert_int_eq(hob_tensor_count(b), count);
    ck_assert_hob_ok(hob_read_f32(a, left, count, &error));
    ck_assert_hob_ok(hob_read_f32(b, right, count, &error));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(left[i] == right[i], "element %d is %.9g, not %.9g",
                      (int)i, (double)left[i], (double)right[i]);
}

/* The same numbers, bit for bit, and the function is called twice a kind; also
 * where ops are put off and run in groups. */
START_TEST(test_capture_trains)
{
    struct net plain = {tracked, 0, 0.5}, caught = {tracked, 0, 0.5};
    hob_device *single = tracked;
    hob_tensor *params[PARAMS];
    hob_capture *capture;
    char text[200];

    if (!tracked)
        return;
    snprintf(text, sizeof(text), "autodiff(fusion(%s))", hob_device_name(base));
    if (_i)
        ck_assert_hob_ok(hob_device_open(runtime, text, &tracked, &error));
    first_params(params);
    ck_assert_hob_ok(hob_capture_open(tracked, train_step, &caught, params,
                                      PARAMS, &capture, &error));
    for (int i = 0; i < 3 * STEPS; i++) {
        hob_tensor *batch[2], *loss = NULL;

        batch_of(i, batch);
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, batch, 2, &loss, 1, &error));
        ck_assert_int_eq(hob_is_tracked(loss), 0);
        check_equal(loss, plain_step(&plain, params, batch));
        check_equal(hob_capture_state(scope, capture, (uint32_t)(i % PARAMS)),
                    params[i % PARAMS]);
    }
    ck_assert_int_eq(plain.calls, 3 * STEPS);
    ck_assert_int_eq(caught.calls, 4);
    if (is_tape())
        ck_assert_int_eq(tape_counts().graphs, 2);
    hob_capture_close(capture);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    if (_i)
        hob_device_unref(tracked);
    tracked = single;
}
END_TEST

/* What was a number of the step changes only when it is recorded anew. */
START_TEST(test_capture_forgets)
{
    struct net plain = {tracked, 0, 0.5}, caught = {tracked, 0, 0.5};
    hob_tensor *params[PARAMS];
    hob_capture *capture;

    if (!tracked)
        return;
    first_params(params);
    ck_assert_hob_ok(hob_capture_open(tracked, train_step, &caught, params,
                                      PARAMS, &capture, &error));
    for (int i = 0; i < 2 * STEPS; i++) {
        hob_tensor *batch[2];

        if (i == STEPS) {
            plain.rate = caught.rate = 0.125;
            hob_capture_forget(capture);
        }
        batch_of(0, batch);
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, batch, 2, NULL, 0, &error));
        (void)plain_step(&plain, params, batch);
    }
    for (uint32_t i = 0; i < PARAMS; i++)
        check_equal(hob_capture_state(scope, capture, i), params[i]);
    ck_assert_int_eq(caught.calls, 4);
    hob_capture_close(capture);
}
END_TEST

/* ---- small steps ---- */

enum what {
    ADD,          /* state 0 plus input 0; the result is input 0 plus 1 */
    ADD_IN_PLACE, /* the same, the state moved */
    SWAP,         /* two states; the result is the old state 0 */
    KEEP,         /* nothing changes */
    HALF,         /* results are views: every second element, and a part */
    /* Refused: */
    READ,
    WAIT,
    UPLOAD,
    RANDOM,
    DYNAMIC,
    ELSEWHERE,
    LEAVE_BEHIND,
    LEAVE_STATE,
    NEST,
    /* Wrong: */
    NO_STATE,
    OTHER_SHAPE,
    BAD_SHAPES,
    SILENT
};

struct plan {
    enum what what;
    int calls;
    int is_good_at_first; /* the first call is ADD */
    hob_tensor *constant; /* added too, if there is one */
    hob_capture *capture;
};

static hob_status add_step(hob_scope *in, const struct plan *plan,
                           struct hob_step *step)
{
    hob_tensor *state = step->state[0];

    if (plan->what == ADD_IN_PLACE)
        state = hob_move(in, state);
    if (step->input_count)
        state = hob_add(in, state, step->inputs[0]);
    if (plan->constant)
        state = hob_add(in, state, plan->constant);
    step->new_state[0] = state;
    if (step->out_count)
        step->out[0] = hob_add_scalar(in, step->inputs[0], hob_f64(1));
    return HOB_OK;
}

static hob_status bad_step(hob_scope *in, struct plan *plan,
                           struct hob_step *step)
{
    hob_tensor *state = step->state[0];
    const int64_t three = 3;
    double number = 0;

    switch (plan->what) {
    case READ:
        return hob_read_f64(hob_sum(in, state), &number, 1, NULL);
    case WAIT:
        return hob_device_sync(base, NULL);
    case UPLOAD:
        (void)vector(base, 3, 1);
        break;
    case RANDOM:
        state = hob_add(in, state,
                        hob_random_uniform(in, &three, 1, 0, 1, base,
                                           hob_tensor_dtype(state)));
        break;
    case DYNAMIC:
        (void)hob_mask_select(in, state,
                              hob_greater_scalar(in, state, hob_f64(0)));
        break;
    case ELSEWHERE:
        (void)hob_zeros(in, &three, 1, other, HOB_DTYPE_F32);
        break;
    case LEAVE_BEHIND:
        (void)hob_keep(scope, hob_add(in, state, state));
        break;
    case LEAVE_STATE:
        (void)hob_keep(scope, state);
        break;
    case NEST:
        return hob_capture_run(in, plan->capture, step->inputs,
                               step->input_count, NULL, 0, NULL);
    case NO_STATE:
        return HOB_OK;
    case OTHER_SHAPE:
        state = hob_reshape(in, state, (int64_t[]){1, 3}, 2);
        break;
    case BAD_SHAPES:
        state = hob_matmul(in, state, state);
        break;
    default:
        return HOB_ERR_IO;
    }
    step->new_state[0] = state;
    return HOB_OK;
}

static hob_status small_step(hob_scope *in, void *context,
                             struct hob_step *step)
{
    struct plan *plan = context;

    plan->calls++;
    if (plan->what <= ADD_IN_PLACE ||
        (plan->is_good_at_first && plan->calls == 1))
        return add_step(in, plan, step);
    switch (plan->what) {
    case SWAP:
        step->new_state[0] = step->state[1];
        step->new_state[1] = step->state[0];
        step->out[0] = step->state[0];
        return HOB_OK;
    case KEEP:
        step->new_state[0] = step->state[0];
        return HOB_OK;
    case HALF:
        step->new_state[0] = hob_add(in, step->state[0], step->inputs[0]);
        step->out[0] = hob_slice(in, step->new_state[0], (int64_t[]){0}, 1,
                                 (int64_t[]){4}, 1, (int64_t[]){2}, 1);
        step->out[1] = hob_slice(in, step->inputs[0], (int64_t[]){1}, 1,
                                 (int64_t[]){3}, 1, (int64_t[]){1}, 1);
        return HOB_OK;
    default:
        return bad_step(in, plan, step);
    }
}

static hob_capture *open_small(struct plan *plan, hob_tensor *const *state,
                               uint32_t count)
{
    hob_capture *capture = NULL;

    ck_assert_hob_ok(hob_capture_open(base, small_step, plan, state, count,
                                      &capture, &error));
    plan->capture = capture;
    return capture;
}

START_TEST(test_capture_adds)
{
    struct plan plan = {.what = _i ? ADD_IN_PLACE : ADD};
    hob_tensor *state = vector(base, 5, 0), *out[STEPS];
    hob_capture *capture = open_small(&plan, &state, 1);

    for (int i = 0; i < STEPS; i++) {
        hob_tensor *input = vector(base, 5, i);

        ck_assert_hob_ok(
            hob_capture_run(scope, capture, &input, 1, &out[i], 1, &error));
    }
    /* Results are as immutable as any. */
    for (int i = 0; i < STEPS; i++)
        check_vector(out[i], 5, i + 1, 1);
    check_vector(hob_capture_state(scope, capture, 0), 5, 15, STEPS + 1);
    check_vector(state, 5, 0, 1);
    ck_assert_int_eq(plan.calls, 2);
    /* Two sums, and a copy of the state to its place unless it was there. */
    if (is_tape())
        ck_assert_int_eq(tape_counts().recorded, _i ? 3 : 4);
    hob_capture_close(capture);
}
END_TEST

START_TEST(test_capture_swaps_state)
{
    struct plan plan = {.what = SWAP};
    hob_tensor *state[2] = {vector(base, 4, 10), vector(base, 4, 20)};
    hob_capture *capture = open_small(&plan, state, 2);

    for (int i = 0; i < STEPS; i++) {
        hob_tensor *old = NULL;

        ck_assert_hob_ok(
            hob_capture_run(scope, capture, NULL, 0, &old, 1, &error));
        check_vector(old, 4, i % 2 ? 20 : 10, 1);
        check_vector(hob_capture_state(scope, capture, 0), 4, i % 2 ? 10 : 20,
                     1);
        check_vector(hob_capture_state(scope, capture, 1), 4, i % 2 ? 20 : 10,
                     1);
    }
    hob_capture_close(capture);
}
END_TEST

START_TEST(test_capture_keeps_state)
{
    struct plan plan = {.what = KEEP};
    hob_tensor *state = vector(base, 4, 1);
    hob_capture *capture = open_small(&plan, &state, 1);

    for (int i = 0; i < 3; i++)
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, NULL, 0, NULL, 0, &error));
    check_vector(hob_capture_state(scope, capture, 0), 4, 1, 1);
    if (is_tape())
        ck_assert_int_eq(tape_counts().recorded, 0);
    hob_capture_close(capture);
}
END_TEST

/* Inputs and results that are strided. */
START_TEST(test_capture_takes_views)
{
    struct plan plan = {.what = HALF};
    hob_tensor *state = vector(base, 4, 0);
    hob_capture *capture = open_small(&plan, &state, 1);

    for (int i = 1; i <= STEPS; i++) {
        hob_tensor *out[2],
            *input = hob_slice(scope, vector(base, 8, 0), (int64_t[]){0}, 1,
                               (int64_t[]){8}, 1, (int64_t[]){2}, 1);

        ck_assert_hob_ok(
            hob_capture_run(scope, capture, &input, 1, out, 2, &error));
        check_vector(out[0], 2, 0, 2 * (1 + 2 * i));
        check_vector(out[1], 2, 2, 2);
    }
    hob_capture_close(capture);
}
END_TEST

/* A tensor from elsewhere stays as it was when the step was recorded. */
START_TEST(test_capture_holds_constants)
{
    struct plan plan = {.what = ADD};
    hob_scope *inside = hob_scope_child(scope);
    hob_tensor *state = vector(base, 3, 0);
    hob_capture *capture = open_small(&plan, &state, 1);
    hob_tensor *moved;

    plan.constant = hob_add(inside, vector(base, 3, 5), vector(base, 3, 5));
    for (int i = 0; i < 2; i++)
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, NULL, 0, NULL, 0, &error));
    /* Its memory is neither written over nor given to another. */
    moved = hob_add(scope, hob_move(scope, plan.constant), vector(base, 3, 1));
    check_vector(moved, 3, 11, 3);
    hob_scope_close(inside);
    (void)vector(base, 3, 100);
    ck_assert_hob_ok(hob_capture_run(scope, capture, NULL, 0, NULL, 0, &error));
    check_vector(hob_capture_state(scope, capture, 0), 3, 30, 7);
    hob_capture_close(capture);
}
END_TEST

/* An input that comes again is not copied again; what is moved or freed in
 * between neither changes it nor is taken for it. */
START_TEST(test_capture_knows_its_inputs)
{
    struct plan plan = {.what = ADD};
    hob_tensor *state = vector(base, 3, 0), *input = vector(base, 3, 1);
    hob_capture *capture = open_small(&plan, &state, 1);
    int64_t copies;

    for (int i = 0; i < 3; i++)
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, &input, 1, NULL, 0, &error));
    copies = tape_counts().copies;
    ck_assert_hob_ok(
        hob_capture_run(scope, capture, &input, 1, NULL, 0, &error));
    ck_assert_int_eq(tape_counts().copies, copies);
    for (int i = 0; i < 3; i++) {
        hob_scope *inside = hob_scope_child(scope);
        const double first = 10 * i;
        const int64_t three = 3;

        input = hob_from_f64(
            inside, base, (double[]){first, first + 1, first + 2}, &three, 1);
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, &input, 1, NULL, 0, &error));
        (void)hob_add(inside, hob_move(inside, input), state);
        hob_scope_close(inside);
    }
    check_vector(hob_capture_state(scope, capture, 0), 3, 34, 8);
    hob_capture_close(capture);
}
END_TEST

/* ---- refusals ---- */

static const struct refusal {
    enum what what;
    hob_status status;
    const char *words;
} refusals[] = {
    {READ, HOB_ERR_UNSUPPORTED, "cannot record"},
    {WAIT, HOB_ERR_UNSUPPORTED, "cannot record"},
    {UPLOAD, HOB_ERR_UNSUPPORTED, "cannot record"},
    {RANDOM, HOB_ERR_UNSUPPORTED, "random_uniform: every replay would draw"},
    {DYNAMIC, HOB_ERR_UNSUPPORTED, "mask_select: the sizes of its results"},
    {ELSEWHERE, HOB_ERR_UNSUPPORTED, "this op is on reference"},
    {LEAVE_BEHIND, HOB_ERR_UNSUPPORTED, "behind"},
    {LEAVE_STATE, HOB_ERR_UNSUPPORTED, "kept state 0 beyond its end"},
    {NEST, HOB_ERR_STATE, "without a message"},
    {NO_STATE, HOB_ERR_ARGUMENT, "made no new state 0"},
    {OTHER_SHAPE, HOB_ERR_SHAPE, "new state 0 is f64[1,3], the state is "},
    {BAD_SHAPES, HOB_ERR_SHAPE, "in the step, matmul: "},
    {SILENT, HOB_ERR_IO, "failed without a message"},
};
enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };

/* The state is as before, and what the function does right goes on. */
START_TEST(test_capture_refuses)
{
    const struct refusal *refusal = &refusals[_i];
    struct plan plan = {.what = refusal->what, .is_good_at_first = 1};
    hob_scope *inside = hob_scope_child(scope);
    hob_tensor *state = vector(base, 3, 1), *input = vector(base, 3, 0);
    hob_capture *capture = open_small(&plan, &state, 1);

    ck_assert_hob_ok(
        hob_capture_run(inside, capture, &input, 1, NULL, 0, &error));
    for (int i = 0; i < 2; i++)
        ck_assert_hob_fails(
            hob_capture_run(inside, capture, &input, 1, NULL, 0, &error),
            refusal->status, refusal->words);
    ck_assert_hob_ok(hob_scope_error(inside, &error));
    check_vector(hob_capture_state(inside, capture, 0), 3, 1, 2);
    plan.what = ADD;
    ck_assert_hob_ok(
        hob_capture_run(inside, capture, &input, 1, NULL, 0, &error));
    check_vector(hob_capture_state(inside, capture, 0), 3, 1, 3);
    hob_capture_close(capture);
    hob_scope_close(inside);
}
END_TEST

START_TEST(test_capture_checks_tensors)
{
    struct plan plan = {.what = ADD};
    hob_tensor *state = vector(base, 3, 1), *far = vector(other, 3, 1);
    hob_capture *capture = NULL, *wrong = NULL;

    ck_assert_hob_fails(
        hob_capture_open(other, small_step, &plan, &far, 1, &wrong, &error),
        HOB_ERR_UNSUPPORTED, "no interface \"capture\"");
    ck_assert_ptr_null(wrong);
    ck_assert_hob_fails(
        hob_capture_open(base, small_step, &plan, &far, 1, &wrong, &error),
        HOB_ERR_DEVICE, "state 0 is on reference");
    capture = open_small(&plan, &state, 1);
    ck_assert_hob_fails(
        hob_capture_run(scope, capture, &far, 1, NULL, 0, &error),
        HOB_ERR_DEVICE, "input 0 is on reference");
    ck_assert_int_eq(plan.calls, 0);
    (void)hob_capture_state(scope, capture, 1);
    ck_assert_hob_fails(hob_scope_error(scope, &error), HOB_ERR_ARGUMENT,
                        "there is no state 1");
    hob_scope_clear_error(scope);
    /* An open capture keeps the runtime open. */
    ck_assert_hob_fails(hob_runtime_close(runtime, &error), HOB_ERR_BUSY,
                        "release them first");
    hob_capture_close(capture);
    hob_capture_close(NULL);
}
END_TEST

/* A check of elements fails for whoever waits next. */
START_TEST(test_capture_checks_elements)
{
    struct net net = {tracked, 0, 0.5};
    hob_tensor *params[PARAMS], *batch[2];
    const int32_t bad[4] = {0, 1, CLASSES, 0};
    const int64_t rows = 4;
    hob_capture *capture;
    hob_status status;

    if (!tracked)
        return;
    first_params(params);
    ck_assert_hob_ok(hob_capture_open(tracked, train_step, &net, params, PARAMS,
                                      &capture, &error));
    batch_of(0, batch);
    for (int i = 0; i < 3; i++)
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, batch, 2, NULL, 0, &error));
    ck_assert_hob_ok(hob_device_sync(base, &error));
    batch[1] = hob_from_i32(scope, tracked, bad, &rows, 1);
    ck_assert_hob_ok(
        hob_capture_run(scope, capture, batch, 2, NULL, 0, &error));
    status = hob_device_sync(base, &error);
    ck_assert_int_eq(status, HOB_ERR_RANGE);
    hob_error_release(&error);
    ck_assert_hob_ok(hob_device_sync(base, &error));
    hob_capture_close(capture);
}
END_TEST

/* ---- kinds, threads ---- */

START_TEST(test_capture_has_room)
{
    struct plan plan = {.what = ADD};
    hob_tensor *state = vector(base, 1, 0);
    hob_capture *capture = open_small(&plan, &state, 1);
    const int most = HOB_CAPTURE_KINDS;

    for (int round = 0; round < 3; round++)
        for (int64_t count = 0; count <= most; count++) {
            hob_tensor *inputs[HOB_CAPTURE_KINDS + 1];

            for (int64_t i = 0; i < count; i++)
                inputs[i] = state;
            ck_assert_hob_ok(hob_capture_run(scope, capture, inputs,
                                             (uint32_t)count, NULL, 0, &error));
        }
    /* One kind too many: each goes before it comes again. Of the last round
     * only the first is gone; that with one input is recorded now. */
    ck_assert_int_eq(plan.calls, 3 * (most + 1));
    for (int round = 0; round < 3; round++)
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, &state, 1, NULL, 0, &error));
    ck_assert_int_eq(plan.calls, 3 * (most + 1) + 1);
    hob_capture_close(capture);
}
END_TEST

struct visitor {
    double sum;
    hob_status status;
};

/* What another thread computes while this one records. */
static void *visit(void *context)
{
    struct visitor *visitor = context;
    hob_scope *own = hob_scope_open(runtime);
    const double data[3] = {1, 2, 3};
    const int64_t three = 3;
    hob_tensor *x = hob_from_f64(own, base, data, &three, 1);

    visitor->status =
        hob_read_f64(hob_sum(own, hob_add(own, x, x)), &visitor->sum, 1, NULL);
    hob_scope_close(own);
    return NULL;
}

static hob_status visited_step(hob_scope *in, void *context,
                               struct hob_step *step)
{
    struct visitor *visitor = context;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, visit, visitor), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    step->new_state[0] = hob_add(in, step->state[0], step->state[0]);
    return HOB_OK;
}

START_TEST(test_capture_leaves_other_threads_alone)
{
    struct visitor visitor = {0, HOB_OK};
    hob_tensor *state = vector(base, 3, 1);
    hob_capture *capture = NULL;

    ck_assert_hob_ok(hob_capture_open(base, visited_step, &visitor, &state, 1,
                                      &capture, &error));
    for (int i = 0; i < 3; i++) {
        visitor.sum = 0;
        ck_assert_hob_ok(
            hob_capture_run(scope, capture, NULL, 0, NULL, 0, &error));
        ck_assert_hob_ok(visitor.status);
        ck_assert_double_eq(visitor.sum, i < 2 ? 12 : 0);
    }
    check_vector(hob_capture_state(scope, capture, 0), 3, 8, 8);
    hob_capture_close(capture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("capture");
    TCase *tc = tcase_create("capture");
    SRunner *runner;
    int failed;

    if (!is_tape() && !test_device_offers(HOB_CAPTURE_INTERFACE,
                                          HOB_CAPTURE_INTERFACE_VERSION)) {
        printf("skipped: %s records no steps\n", test_device());
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_capture_trains, 0, 2);
    tcase_add_test(tc, test_capture_forgets);
    tcase_add_loop_test(tc, test_capture_adds, 0, 2);
    tcase_add_test(tc, test_capture_swaps_state);
    tcase_add_test(tc, test_capture_keeps_state);
    tcase_add_test(tc, test_capture_takes_views);
    tcase_add_test(tc, test_capture_holds_constants);
    tcase_add_test(tc, test_capture_knows_its_inputs);
    tcase_add_loop_test(tc, test_capture_refuses, 0, REFUSALS);
    tcase_add_test(tc, test_capture_checks_tensors);
    tcase_add_test(tc, test_capture_checks_elements);
    tcase_add_test(tc, test_capture_has_room);
    tcase_add_test(tc, test_capture_leaves_other_threads_alone);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

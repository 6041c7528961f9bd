/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - what whole steps cost on one device: steps DEVICE [CASE...].
 *
 * G12: small kernels that depend on one another, beside the bare driver's;
 * a training step of a network 784-512-256-10, as it is and captured; G14:
 * memory; G17: copies from and to the host; G13: the start. peer_steps.py
 * prints the same of PyTorch. A captured step is compared with a plain one
 * first.
 */
#include "bare.h"
#include "timing.h"

#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, PARAMS = 2 * LAYERS, ADDS = 1000 };

static const int64_t widths[LAYERS + 1] = {784, 512, 256, 10};

static hob_runtime *runtime;
static hob_device *device, *tracked;
static uint32_t linear_relu; /* the op of the extension; 0: not installed */

/* Something that can be done again and again. */
struct work {
    hob_status (*run)(hob_scope *scope, struct work *work);
    hob_capture *capture;
    hob_tensor *in[PARAMS + 2];
    uint32_t count;
    void *host;
    uint64_t bytes;
};

static hob_status run_work(hob_scope *scope, void *work)
{
    return ((struct work *)work)->run(scope, work);
}

/* Median seconds of one run, waited for together. */
static double seconds(hob_scope *root, struct work *work, double *out_host)
{
    return timing_of(root, device, run_work, work, out_host);
}

/* A layer may have put RESULT off. */
static hob_status done(hob_tensor *result)
{
    return hob_eval(&result, 1, NULL);
}

/* ---- G12 ---- */

static hob_status adds(hob_scope *scope, struct work *work)
{
    hob_tensor *x = work->in[0];

    for (int i = 0; i < ADDS; i++)
        x = hob_add(scope, x, work->in[1]);
    return done(x);
}

static hob_status adds_step(hob_scope *scope, void *context,
                            struct hob_step *step)
{
    hob_tensor *x = step->state[0];

    (void)context;
    for (int i = 0; i < ADDS; i++)
        x = hob_add(scope, hob_move(scope, x), step->inputs[0]);
    step->new_state[0] = x;
    return HOB_OK;
}

static hob_status replay(hob_scope *scope, struct work *work)
{
    return hob_capture_run(scope, work->capture, work->in, work->count, NULL, 0,
                           NULL);
}

static void say(const char *name, double one, const char *unit)
{
    printf("%-44s %10.3f %s\n", name, one, unit);
    fflush(stdout);
}

/* Both kinds of captures. */
static hob_status (*const opens[])(
    hob_device *device, hob_step_fn fn, void *context, hob_tensor *const *state,
    uint32_t state_count, hob_capture **out_capture,
    hob_error *error) = {hob_capture_open, hob_capture_open_checked};

static void run_launches(void)
{
    hob_scope *root = hob_scope_open(runtime);
    const int64_t one = 1;
    struct work work = {.run = adds};
    double host = 0, all;

    all = bare_launches(&host);
    say("G12 bare launches of 1, each", 1e6 * all / BARE_KERNELS, "us");
    say("G12 of these the host", 1e6 * host / BARE_KERNELS, "us");
    say("G12 bare graph, each node", 1e6 * bare_graph() / BARE_KERNELS, "us");
    work.in[0] = hob_ones(root, &one, 1, device, HOB_DTYPE_F32);
    work.in[1] = hob_ones(root, &one, 1, device, HOB_DTYPE_F32);
    all = seconds(root, &work, &host);
    say("G12 dependent adds of 1, each", 1e6 * all / ADDS, "us");
    say("G12 of these the host", 1e6 * host / ADDS, "us");
    work.run = replay;
    work.count = 1;
    for (int i = 0; i < 2; i++) {
        if (opens[i](device, adds_step, NULL, work.in, 1, &work.capture, NULL))
            continue;
        all = seconds(root, &work, &host);
        say(i ? "G12 captured and checked, each" : "G12 captured, each",
            1e6 * all / ADDS, "us");
        say("G12 of these the host", 1e6 * host / ADDS, "us");
        hob_capture_close(work.capture);
    }
    hob_scope_close(root);
}

/* ---- the network ---- */

static hob_tensor *layer(hob_scope *scope, hob_tensor *x, hob_tensor *w,
                         hob_tensor *b, int is_last)
{
    const hob_value args[] = {hob_value_tensor(x), hob_value_tensor(w),
                              hob_value_tensor(b)};
    hob_tensor *out = NULL;
    uint32_t count;

    if (is_last)
        return hob_linear(scope, x, w, b);
    if (!linear_relu)
        return hob_relu(scope, hob_linear(scope, x, w, b));
    (void)hob_call_op(scope, linear_relu, args, 3, &out, 1, &count);
    return out;
}

/* Gradients, owned by SCOPE; all else of the network goes with a scope within,
 * so that the parameters have no other use and can be written over. */
static hob_status gradients(hob_scope *scope, struct hob_step *step,
                            hob_tensor **out)
{
    hob_scope *inside = hob_scope_child(scope);
    hob_tensor *leaves[PARAMS], *x = step->inputs[0];
    hob_grads *grads = NULL;
    hob_status status;

    for (int i = 0; i < PARAMS; i++)
        leaves[i] = hob_require_grad(inside, step->state[i]);
    for (int i = 0; i < LAYERS; i++)
        x = layer(inside, x, leaves[2 * i], leaves[2 * i + 1], i == LAYERS - 1);
    x = hob_cross_entropy(inside, x, step->inputs[1]);
    status = hob_backward(inside, x, 0, &grads, NULL);
    for (int i = 0; i < PARAMS && !status; i++)
        status = hob_grad(scope, leaves[i], grads, &out[i], NULL);
    hob_grads_free(grads);
    if (step->out_count)
        step->out[0] = hob_keep(scope, hob_inner(inside, x));
    hob_scope_close(inside);
    return status;
}

static hob_status train_step(hob_scope *scope, void *context,
                             struct hob_step *step)
{
    hob_tensor *grads[PARAMS];
    hob_scope *below = hob_no_grad(scope, tracked);
    hob_status status = gradients(scope, step, grads);

    (void)context;
    for (int i = 0; i < PARAMS && !status; i++)
        step->new_state[i] = hob_keep(
            scope, hob_sgd_step(below, hob_move(below, step->state[i]),
                                grads[i], 0.1, 0));
    hob_scope_close(below);
    return status;
}

/* The function by hand; the new parameters stay where they are. A layer that
 * puts ops off has to run them too. */
static hob_status plain(hob_scope *scope, struct work *work)
{
    hob_tensor *next[PARAMS], *loss = NULL;
    struct hob_step step = {.struct_size = sizeof(step),
                            .state_count = PARAMS,
                            .input_count = 2,
                            .out_count = 1,
                            .state = work->in,
                            .inputs = work->in + PARAMS,
                            .new_state = next,
                            .out = &loss};

    return train_step(scope, NULL, &step) || hob_eval(&loss, 1, NULL)
               ? HOB_ERR_STATE
               : hob_eval(next, PARAMS, NULL);
}

static hob_status captured(hob_scope *scope, struct work *work)
{
    hob_tensor *loss;

    return hob_capture_run(scope, work->capture, work->in + PARAMS, 2, &loss, 1,
                           NULL);
}

static void make_params(hob_scope *root, hob_tensor **out)
{
    for (int i = 0; i < LAYERS; i++) {
        const double most = 1 / sqrt((double)widths[i]);

        out[2 * i] = hob_random_uniform(root, &widths[i], 2, -most, most,
                                        tracked, HOB_DTYPE_F32);
        out[2 * i + 1] = hob_random_uniform(root, &widths[i + 1], 1, -most,
                                            most, tracked, HOB_DTYPE_F32);
    }
}

/* The greatest difference of the losses of five steps, plain and captured. */
static double off(hob_scope *root, struct work *work)
{
    hob_tensor *params[PARAMS];
    double most = 0;

    memcpy(params, work->in, sizeof(params));
    for (int i = 0; i < 5; i++) {
        hob_tensor *next[PARAMS], *loss[2] = {NULL, NULL};
        struct hob_step step = {.struct_size = sizeof(step),
                                .state_count = PARAMS,
                                .input_count = 2,
                                .out_count = 1,
                                .state = params,
                                .inputs = work->in + PARAMS,
                                .new_state = next,
                                .out = &loss[0]};
        double values[2] = {NAN, NAN};

        if (train_step(root, NULL, &step) ||
            hob_capture_run(root, work->capture, work->in + PARAMS, 2, &loss[1],
                            1, NULL) ||
            hob_item(loss[0], &values[0], NULL) ||
            hob_item(loss[1], &values[1], NULL))
            return NAN;
        for (int k = 0; k < PARAMS; k++)
            params[k] = hob_to_device(root, next[k], tracked);
        most = fmax(most, fabs(values[0] - values[1]));
        if (!(values[0] > 0))
            return NAN;
    }
    return most;
}

static void run_training(int64_t batch)
{
    hob_scope *root = hob_scope_open(runtime);
    const int64_t shape[2] = {batch, widths[0]};
    struct work work = {.run = plain};
    hob_error error = HOB_ERROR_INIT;
    char name[64];
    double host = 0;

    make_params(root, work.in);
    for (int i = 0; i < PARAMS; i++)
        hob_tensor_ref(work.in[i]); /* a step may not take them away */
    work.in[PARAMS] =
        hob_random_uniform(root, shape, 2, 0, 1, tracked, HOB_DTYPE_F32);
    work.in[PARAMS + 1] =
        hob_cast(root,
                 hob_random_uniform(root, &batch, 1, 0, 10, tracked,
                                    HOB_DTYPE_F32),
                 HOB_DTYPE_I32);
    snprintf(name, sizeof(name), "training step, batch %d", (int)batch);
    say(name, 1e3 * seconds(root, &work, &host), "ms");
    say("  of these the host", 1e3 * host, "ms");
    for (int i = 0; i < 2; i++) {
        double wrong;

        if (opens[i](tracked, train_step, NULL, work.in, PARAMS, &work.capture,
                     &error)) {
            printf("%s\n", error.message);
            hob_error_release(&error);
            continue;
        }
        wrong = off(root, &work);
        work.run = captured;
        snprintf(name, sizeof(name), "training step, batch %d, captured%s",
                 (int)batch, i ? " and checked" : "");
        if (wrong <= 1e-6)
            say(name, 1e3 * seconds(root, &work, &host), "ms");
        else
            printf("%s: WRONG, losses differ by %g\n", name, wrong);
        say("  of these the host", 1e3 * host, "ms");
        if (hob_capture_reason(work.capture) && i)
            printf("  no replay: %s\n", hob_capture_reason(work.capture));
        hob_capture_close(work.capture);
    }
    for (int i = 0; i < PARAMS; i++)
        hob_tensor_unref(work.in[i]);
    hob_scope_close(root);
}

/* ---- G4 ---- */

static hob_status product(hob_scope *scope, struct work *work)
{
    return done(hob_matmul(scope, work->in[0], work->in[1]));
}

static hob_status with_bias(hob_scope *scope, struct work *work)
{
    return done(hob_linear(scope, work->in[0], work->in[1], work->in[2]));
}

static hob_status with_relu(hob_scope *scope, struct work *work)
{
    return done(layer(scope, work->in[0], work->in[1], work->in[2], 0));
}

/* A product by itself, with a bias, and with relu after that. */
static void run_epilogues(int64_t n)
{
    static const struct {
        const char *name;
        hob_status (*run)(hob_scope *scope, struct work *work);
    } cases[] = {{"alone", product},
                 {"bias", with_bias},
                 {"bias, relu", with_relu}};
    const int64_t shape[2] = {n, n};
    hob_scope *root = hob_scope_open(runtime);
    struct work work = {.count = 3};
    char name[64];

    for (int i = 0; i < 3; i++)
        work.in[i] = hob_random_uniform(root, shape, i < 2 ? 2 : 1, -1, 1,
                                        device, HOB_DTYPE_BF16);
    for (int i = 0; i < 3; i++) {
        work.run = cases[i].run;
        snprintf(name, sizeof(name), "G4 bf16 %d, %s", (int)n, cases[i].name);
        say(name, 1e3 * seconds(root, &work, NULL), "ms");
    }
    hob_scope_close(root);
}

/* ---- memory, copies ---- */

static hob_status up(hob_scope *scope, struct work *work)
{
    const int64_t count = (int64_t)work->bytes;

    (void)hob_from_data(scope, device, HOB_DTYPE_U8, work->host, &count, 1);
    return HOB_OK;
}

static hob_status down(hob_scope *scope, struct work *work)
{
    (void)scope;
    return hob_read(work->in[0], work->host, work->bytes, NULL);
}

static void run_copies(void)
{
    static const int64_t sizes[] = {1 << 10, 1 << 20, 1 << 27};

    for (int i = 0; i < 3; i++) {
        hob_scope *root = hob_scope_open(runtime);
        struct work work = {.run = up, .bytes = (uint64_t)sizes[i]};
        char name[64];
        double one;

        work.host = malloc((size_t)sizes[i]);
        memset(work.host, 7, (size_t)sizes[i]);
        work.in[0] = hob_zeros(root, &sizes[i], 1, device, HOB_DTYPE_U8);
        for (int back = 0; back < 2; back++) {
            work.run = back ? down : up;
            one = seconds(root, &work, NULL);
            snprintf(name, sizeof(name), "G17 %s %lld bytes, pageable",
                     back ? "read" : "upload", (long long)sizes[i]);
            printf("%-44s %10.3f us %7.2f GB/s\n", name, 1e6 * one,
                   (double)sizes[i] / one * 1e-9);
        }
        free(work.host);
        hob_scope_close(root);
    }
}

static void run_memory(void)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;

    if (hob_device_memory(device, &stats, NULL))
        return;
    printf("%-44s %10.1f MB peak %10.1f MB reserved\n", "G14 of all the above",
           1e-6 * (double)stats.peak_bytes, 1e-6 * (double)stats.reserved_bytes);
}

/* From BEGIN, before Hob was opened. */
static void run_start(double begin)
{
    hob_scope *scope = hob_scope_open(runtime);
    const int64_t two[2] = {64, 64};
    hob_tensor *x = hob_ones(scope, two, 2, device, HOB_DTYPE_F32);
    double opened = timing_now(), value;

    if (hob_item(hob_sum(scope, hob_add(scope, x, x)), &value, NULL))
        return;
    say("G13 start to opened device", 1e3 * (opened - begin), "ms");
    say("G13 start to first result", 1e3 * (timing_now() - begin), "ms");
    if (hob_item(hob_sum(scope, hob_matmul(scope, x, x)), &value, NULL))
        return;
    say("G13 start to first product", 1e3 * (timing_now() - begin), "ms");
    hob_scope_close(scope);
}

int main(int argc, char **argv)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    const double begin = timing_now();
    char spec[256];

    options.policy = HOB_POLICY_REPORT;
    if (argc < 2) {
        fprintf(stderr, "usage: steps DEVICE [start|launches|training|epilogues|copies...]\n");
        return 2;
    }
    snprintf(spec, sizeof(spec), "autodiff(%s)", argv[1]);
    if (hob_runtime_open(&options, &runtime, &error) ||
        hob_device_open(runtime, argv[1], &device, &error) ||
        hob_device_open(runtime, spec, &tracked, &error)) {
        fprintf(stderr, "steps: %s\n", error.message);
        hob_error_release(&error);
        return 1;
    }
    if (hob_op_find(runtime, "nn.linear_relu", &linear_relu, NULL))
        linear_relu = 0;
    printf("%s, %s nn.linear_relu\n", hob_device_name(device),
           linear_relu ? "with" : "without");
    if (timing_is_asked_for("start", argc, argv))
        run_start(begin);
    if (timing_is_asked_for("launches", argc, argv))
        run_launches();
    if (timing_is_asked_for("training", argc, argv)) {
        run_training(256);
        run_training(8192);
        run_memory();
    }
    if (timing_is_asked_for("epilogues", argc, argv)) {
        run_epilogues(4096);
        run_epilogues(8192);
    }
    if (timing_is_asked_for("copies", argc, argv))
        run_copies();
    hob_device_unref(device);
    hob_device_unref(tracked);
    return hob_runtime_close(runtime, NULL) != HOB_OK;
}

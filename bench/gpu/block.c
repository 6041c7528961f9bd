/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - a transformer block forward and backward: block DEVICE [CASE...].
 *
 * G15: one block of width 1024 in bf16 (16 heads, layer norms before attention
 * and before two linear layers of 4096 with gelu between), with the gradients
 * of its input and of all parameters, asked for op by op and captured. G16:
 * 48 such blocks, all kept or in segments that are computed again, with the
 * most memory that they take. The gradients are first compared with those of
 * flex in f32. peer_block.py prints the same of PyTorch.
 */
#include "timing.h"

#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 1024,
    HEADS = 16,
    INNER = 4 * WIDTH,
    BLOCKS = 48,
    SEGMENT = 6 /* blocks: eight segments, near the square root */
};

/* What a block is given: parameters, then x [batch, length, WIDTH]. */
enum {
    NORM1_W,
    NORM1_B,
    QKV_W,
    QKV_B,
    OUT_W,
    OUT_B,
    NORM2_W,
    NORM2_B,
    UP_W,
    UP_B,
    DOWN_W,
    DOWN_B,
    X,
    INPUTS
};

static const int64_t param_shapes[X][2] = {
    [NORM1_W] = {WIDTH},          [NORM1_B] = {WIDTH},
    [QKV_W] = {WIDTH, 3 * WIDTH}, [QKV_B] = {3 * WIDTH},
    [OUT_W] = {WIDTH, WIDTH},     [OUT_B] = {WIDTH},
    [NORM2_W] = {WIDTH},          [NORM2_B] = {WIDTH},
    [UP_W] = {WIDTH, INNER},      [UP_B] = {INNER},
    [DOWN_W] = {INNER, WIDTH},    [DOWN_B] = {WIDTH},
};

static hob_runtime *runtime;

/* ---- the block ---- */

/* [batch, length, WIDTH] as [batch, HEADS, length, WIDTH / HEADS]. */
static hob_tensor *heads(hob_scope *scope, hob_tensor *x)
{
    const int64_t *shape = hob_tensor_shape(x);
    const int64_t split[4] = {shape[0], shape[1], HEADS, WIDTH / HEADS};

    return hob_swap_dims(scope, hob_reshape(scope, x, split, 4), 1, 2);
}

static hob_tensor *attend(hob_scope *scope, hob_tensor *x,
                          hob_tensor *const *in)
{
    const int64_t joined[3] = {0, 0, WIDTH};
    hob_tensor *qkv[3] = {NULL, NULL, NULL}, *y;
    uint32_t count = 0;

    y = hob_linear(scope, x, in[QKV_W], in[QKV_B]);
    if (hob_chunk(scope, y, 3, 2, qkv, 3, &count))
        return y; /* the scope holds the error */
    y = hob_attention(scope, heads(scope, qkv[0]), heads(scope, qkv[1]),
                      heads(scope, qkv[2]), NULL, NULL, hob_none(), hob_none(),
                      1);
    y = hob_reshape(scope, hob_swap_dims(scope, y, 1, 2), joined, 3);
    return hob_linear(scope, y, in[OUT_W], in[OUT_B]);
}

static hob_tensor *block(hob_scope *scope, hob_tensor *x, hob_tensor *const *in)
{
    hob_tensor *y;

    y = hob_layer_norm(scope, x, in[NORM1_W], in[NORM1_B], 1e-5);
    x = hob_add(scope, x, attend(scope, y, in));
    y = hob_layer_norm(scope, x, in[NORM2_W], in[NORM2_B], 1e-5);
    y = hob_gelu(scope, hob_linear(scope, y, in[UP_W], in[UP_B]));
    return hob_add(scope, x, hob_linear(scope, y, in[DOWN_W], in[DOWN_B]));
}

/* COUNT blocks with the same parameters; nothing but a graph holds what is
 * between them. */
static hob_tensor *blocks(hob_scope *scope, hob_tensor *const *in, int count)
{
    hob_tensor *x = in[X], *kept = NULL;

    for (int i = 0; i < count; i++) {
        hob_scope *inside = hob_scope_child(scope);

        hob_assign(scope, &kept, block(inside, x, in));
        x = kept;
        hob_scope_close(inside);
    }
    return x;
}

static hob_status segment(hob_scope *scope, void *context,
                          hob_tensor *const *in, uint32_t in_count,
                          hob_tensor **out, uint32_t out_count)
{
    (void)context;
    (void)in_count;
    (void)out_count;
    out[0] = blocks(scope, in, SEGMENT);
    return HOB_OK;
}

static hob_tensor *in_segments(hob_scope *scope, hob_tensor *const *in)
{
    hob_tensor *now[INPUTS], *kept = NULL;

    memcpy(now, in, sizeof(now));
    for (int i = 0; i < BLOCKS; i += SEGMENT) {
        hob_scope *inside = hob_scope_child(scope);
        hob_tensor *out = NULL;

        (void)hob_checkpoint(inside, segment, NULL, NULL, now, INPUTS, &out, 1);
        hob_assign(scope, &kept, out);
        now[X] = kept;
        hob_scope_close(inside);
    }
    return now[X];
}

/* ---- forward and backward ---- */

/* The gradients of the sum of FORWARD's result; a step of hob/capture.h whose
 * context is how it goes forward. */
struct model {
    hob_tensor *(*forward)(hob_scope *scope, hob_tensor *const *in);
};

static hob_tensor *one_block(hob_scope *scope, hob_tensor *const *in)
{
    return block(scope, in[X], in);
}

static hob_tensor *all_kept(hob_scope *scope, hob_tensor *const *in)
{
    return blocks(scope, in, BLOCKS);
}

static hob_status gradients(hob_scope *scope, void *context,
                            struct hob_step *step)
{
    const struct model *model = context;
    hob_scope *inside = hob_scope_child(scope);
    hob_tensor *leaves[INPUTS], *y;
    hob_grads *grads = NULL;
    hob_status status;

    for (int i = 0; i < INPUTS; i++)
        leaves[i] = hob_require_grad(inside, step->inputs[i]);
    y = model->forward(inside, leaves);
    status = hob_backward(inside, y, 0, &grads, NULL);
    for (int i = 0; i < INPUTS && !status; i++)
        status = hob_grad(scope, leaves[i], grads, &step->out[i], NULL);
    hob_grads_free(grads);
    hob_scope_close(inside);
    return status;
}

struct work {
    struct model model;
    hob_tensor *in[INPUTS];
    hob_tensor *out[INPUTS];
    hob_capture *capture;
};

static hob_status run_plain(hob_scope *scope, void *data)
{
    struct work *work = data;
    struct hob_step step = {.struct_size = sizeof(step),
                            .input_count = INPUTS,
                            .out_count = INPUTS,
                            .inputs = work->in,
                            .out = work->out};
    hob_status status = gradients(scope, &work->model, &step);

    return status ? status : hob_eval(work->out, INPUTS, NULL);
}

static hob_status run_captured(hob_scope *scope, void *data)
{
    struct work *work = data;

    return hob_capture_run(scope, work->capture, work->in, INPUTS, work->out,
                           INPUTS, NULL);
}

/* Random inputs in bf16 on DEVICE; the same numbers each time. */
static void make_inputs(hob_scope *scope, hob_device *device, int64_t batch,
                        int64_t length, hob_tensor **in)
{
    const int64_t x[3] = {batch, length, WIDTH};

    hob_seed(scope, 1);
    for (int i = 0; i < INPUTS; i++) {
        const int is_norm = i == NORM1_W || i == NORM2_W;
        const int64_t *shape = i == X ? x : param_shapes[i];
        const uint32_t rank = i == X ? 3 : shape[1] ? 2 : 1;
        const double most = i == X    ? 1
                            : is_norm ? 0.5
                                      : 1 / sqrt((double)shape[0]);

        in[i] =
            hob_cast(scope,
                     hob_random_uniform(scope, shape, rank, is_norm - most,
                                        is_norm + most, device, HOB_DTYPE_F32),
                     HOB_DTYPE_BF16);
    }
}

/* ---- is it right ---- */

/* |a - b| / |b| over all elements. */
static double distance(hob_scope *scope, hob_tensor *a, hob_tensor *b)
{
    double off = NAN, norm = NAN;
    hob_tensor *gap = hob_sub(scope, a, b);

    if (hob_item(hob_sum(scope, hob_square(scope, gap)), &off, NULL) ||
        hob_item(hob_sum(scope, hob_square(scope, b)), &norm, NULL))
        return NAN;
    return sqrt(off / norm);
}

/* The greatest distance of a gradient on DEVICE in bf16 from that of flex in
 * f32, and through a capture if IS_CAPTURED; -1 where nothing is captured. */
static double off(hob_device *device, int is_captured)
{
    hob_scope *scope = hob_scope_open(runtime);
    struct work there = {.model = {one_block}}, here = there;
    hob_device *flex = NULL;
    hob_tensor *cpu;
    double most = NAN;

    if (hob_device_open(runtime, "autodiff(flex)", &flex, NULL))
        return NAN;
    make_inputs(scope, device, 2, 33, there.in);
    for (int i = 0; i < INPUTS; i++)
        here.in[i] = hob_cast(scope, hob_to_device(scope, there.in[i], flex),
                              HOB_DTYPE_F32);
    if (is_captured && hob_capture_open(device, gradients, &there.model, NULL,
                                        0, &there.capture, NULL)) {
        most = -1;
        goto end;
    }
    /* The second is the recording's first replay. */
    for (int i = 0; i < 2; i++)
        if ((is_captured ? run_captured : run_plain)(scope, &there))
            goto end;
    if (run_plain(scope, &here))
        goto end;
    most = 0;
    for (int i = 0; i < INPUTS; i++) {
        cpu =
            hob_to_device(scope, there.out[i], hob_tensor_device(here.out[i]));
        most = fmax(most, distance(scope, hob_cast(scope, cpu, HOB_DTYPE_F32),
                                   here.out[i]));
        if (isnan(distance(scope, here.out[i], here.out[i])))
            most = NAN;
    }
end:
    hob_capture_close(there.capture);
    hob_scope_close(scope);
    hob_device_unref(flex);
    return most;
}

/* ---- the cases ---- */

static void say(const char *name, int64_t batch, int64_t length,
                const char *how, double seconds)
{
    char text[96];

    snprintf(text, sizeof(text), "%s %lld x %lld, %s", name, (long long)batch,
             (long long)length, how);
    if (seconds < 0)
        printf("%-48s %10s\n", text, "failed");
    else
        printf("%-48s %10.3f ms", text, 1e3 * seconds);
}

static void run_one(hob_device *device, int64_t batch, int64_t length)
{
    hob_scope *root = hob_scope_open(runtime);
    struct work work = {.model = {one_block}};
    hob_error error = HOB_ERROR_INIT;
    double host = 0;

    make_inputs(root, device, batch, length, work.in);
    say("G15 block", batch, length, "op by op",
        timing_of(root, device, run_plain, &work, &host));
    printf(", the host %.3f ms\n", 1e3 * host);
    if (hob_capture_open(device, gradients, &work.model, NULL, 0, &work.capture,
                         &error)) {
        printf("%s\n", error.message);
    } else {
        say("G15 block", batch, length, "captured",
            timing_of(root, device, run_captured, &work, &host));
        printf(", the host %.3f ms\n", 1e3 * host);
    }
    hob_capture_close(work.capture);
    hob_error_release(&error);
    hob_scope_close(root);
}

static void run_many(hob_device *device, int64_t batch, int64_t length)
{
    static const struct {
        const char *how;
        struct model model;
    } ways[] = {{"all kept", {all_kept}}, {"in segments", {in_segments}}};

    for (int i = 0; i < 2; i++) {
        hob_scope *root = hob_scope_open(runtime);
        struct work work = {.model = ways[i].model};
        struct hob_memory_stats before = HOB_MEMORY_STATS_INIT, after = before;
        double one;

        make_inputs(root, device, batch, length, work.in);
        if (hob_device_memory(device, &before, NULL) ||
            hob_device_reset_peak(device, NULL))
            return;
        one = timing_of(root, device, run_plain, &work, NULL);
        if (hob_device_memory(device, &after, NULL))
            return;
        say("G16 48 blocks", batch, length, ways[i].how, one);
        printf(", %.1f MB at most\n",
               1e-6 * (double)(after.peak_bytes - before.in_use_bytes));
        hob_scope_close(root);
    }
}

int main(int argc, char **argv)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;
    char spec[256];

    options.policy = HOB_POLICY_REPORT;
    if (argc < 2) {
        fprintf(stderr, "usage: block DEVICE [check|small|large|many...]\n");
        return 2;
    }
    snprintf(spec, sizeof(spec), "autodiff(%s)", argv[1]);
    if (hob_runtime_open(&options, &runtime, &error) ||
        hob_device_open(runtime, spec, &device, &error)) {
        fprintf(stderr, "block: %s\n", error.message);
        hob_error_release(&error);
        return 1;
    }
    printf("%s\n", hob_device_name(device));
    if (timing_is_asked_for("check", argc, argv)) {
        const double plain = off(device, 0), captured = off(device, 1);

        printf("gradients beside flex in f32: %.1e, captured %.1e\n", plain,
               captured);
        if (!(plain < 0.02 && captured < 0.02)) {
            printf("WRONG, not timed\n");
            return 1;
        }
    }
    if (timing_is_asked_for("small", argc, argv))
        run_one(device, 1, 128);
    if (timing_is_asked_for("large", argc, argv))
        run_one(device, 8, 1024);
    if (timing_is_asked_for("many", argc, argv))
        run_many(device, 8, 1024);
    hob_device_unref(device);
    return hob_runtime_close(runtime, NULL) != HOB_OK;
}

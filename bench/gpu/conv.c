/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - convolutions of a ResNet and their gradients on one device:
 * conv DEVICE [PART-OF-A-NAME...].
 *
 * Each is first run with fewer images there and on flex, in f32 of the same
 * numbers, and compared; what differs is not timed. Then as in gpu.c. Results
 * are TFLOP/s by the products of the convolution itself, and how far off they
 * were. peer_conv.py has the same in PyTorch; its rows of tf32 are those of f32
 * on a device with tf32=yes.
 */
#include "timing.h"

#include <hob/hob.h>
#include <hob/ops.h>

#include <stdio.h>

enum { IMAGES = 32, FEW_IMAGES = 16 };

/* What is computed. */
enum part { Y, D_X, D_WEIGHT, PARTS };

static const char *const part_names[] = {"y", "d_x", "d_weight"};

static const struct layer {
    int64_t in, size; /* channels, and places along each axis */
    int64_t out, taps, step;
} layers[] = {
    {3, 224, 64, 7, 2},    {64, 56, 64, 3, 1},   {256, 56, 64, 1, 1},
    {128, 56, 128, 3, 2},  {128, 28, 128, 3, 1}, {256, 14, 256, 3, 1},
    {1024, 14, 256, 1, 1}, {512, 14, 512, 3, 1}, {512, 7, 512, 3, 1},
};

enum { LAYERS = sizeof(layers) / sizeof(layers[0]) };

/* A layer of so many images, and where it is. */
struct run {
    const struct layer *of;
    hob_dtype dtype;
    enum part part;
    int64_t x_shape[4], w_shape[4], y_shape[4];
    hob_tensor *x, *w, *grad;
};

static void run_init(struct run *run, const struct layer *of, hob_dtype dtype,
                     enum part part, int64_t images)
{
    const int64_t places = (of->size - 1) / of->step + 1;

    *run = (struct run){
        .of = of,
        .dtype = dtype,
        .part = part,
        .x_shape = {images, of->in, of->size, of->size},
        .w_shape = {of->out, of->in, of->taps, of->taps},
        .y_shape = {images, of->out, places, places},
    };
}

static double flops(const struct run *run)
{
    double work = 2;

    for (int i = 0; i < 4; i++)
        work *= (double)run->y_shape[i];
    return work * (double)(run->of->in * run->of->taps * run->of->taps);
}

static void draw(struct run *run, hob_scope *scope, hob_device *device)
{
    hob_seed(scope, 7);
    run->x =
        hob_random_uniform(scope, run->x_shape, 4, -1, 1, device, run->dtype);
    run->w =
        hob_random_uniform(scope, run->w_shape, 4, -1, 1, device, run->dtype);
    run->grad =
        hob_random_uniform(scope, run->y_shape, 4, -1, 1, device, run->dtype);
}

static hob_tensor *compute(const struct run *run, hob_scope *scope)
{
    const int64_t step[] = {run->of->step}, padding[] = {run->of->taps / 2};
    const int64_t one[] = {1};

    switch (run->part) {
    case Y:
        return hob_conv2d(scope, run->x, run->w, NULL, step, 1, padding, 1, one,
                          1, 1);
    case D_X:
        return hob_conv2d_x_backward(scope, run->x_shape, 4, run->w, run->grad,
                                     step, 1, padding, 1, one, 1, 1);
    default:
        return hob_conv2d_weight_backward(scope, run->x, run->w_shape, 4,
                                          run->grad, step, 1, padding, 1, one,
                                          1, 1);
    }
}

/* ---- checking ---- */

/* The norm of the difference of devices 0 and 1 by that of the latter, which
 * computes with the same numbers in f32; negative where there is none. */
static double difference(hob_runtime *runtime, hob_device *devices[2],
                         struct run run)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *results[2];
    double off;

    for (int i = 0; i < 2; i++) {
        draw(&run, scope, devices[i]);
        if (i) {
            run.x = hob_cast(scope, run.x, HOB_DTYPE_F32);
            run.w = hob_cast(scope, run.w, HOB_DTYPE_F32);
            run.grad = hob_cast(scope, run.grad, HOB_DTYPE_F32);
        }
        results[i] = compute(&run, scope);
    }
    off = timing_difference(results);
    hob_scope_close(scope);
    return off;
}

/* ---- timing ---- */

static hob_status compute_once(hob_scope *scope, void *run)
{
    hob_tensor *out = compute(run, scope);

    return hob_eval(&out, 1, NULL);
}

static void measure(hob_runtime *runtime, hob_device *device, struct run run,
                    const char *name, double off)
{
    hob_scope *root = hob_scope_open(runtime);
    hob_error error = HOB_ERROR_INIT;
    double once;

    draw(&run, root, device);
    once = timing_of(root, device, compute_once, &run, NULL);
    if (hob_scope_error(root, &error) || once < 0)
        printf("%-44s failed: %s\n", name,
               error.message ? error.message : "it cannot be timed");
    else
        printf("%-44s %10.4f ms %9.2f TFLOP/s, off by %.1e\n", name, 1e3 * once,
               flops(&run) / once * 1e-12, off);
    fflush(stdout);
    hob_error_release(&error);
    hob_scope_close(root);
    (void)!hob_device_trim(device, NULL);
}

/* ---- all of them ---- */

/* One row; nonzero if it is wrong. */
static int row(hob_runtime *runtime, hob_device *devices[2],
               const struct layer *of, hob_dtype dtype, enum part part,
               int argc, char **argv)
{
    struct run run;
    char name[96];
    double off;

    snprintf(name, sizeof(name), "conv %s %dx%d, %d to %d, k%d s%d %s",
             hob_dtype_name(dtype), (int)of->size, (int)of->size, (int)of->in,
             (int)of->out, (int)of->taps, (int)of->step, part_names[part]);
    if (!timing_is_asked_for(name, argc, argv))
        return 0;
    run_init(&run, of, dtype, part, FEW_IMAGES);
    off = difference(runtime, devices, run);
    if (!(off >= 0 && off < (dtype == HOB_DTYPE_BF16 ? 4e-3 : 1e-4))) {
        printf("%-44s WRONG: off by %g\n", name, off);
        return 1;
    }
    run_init(&run, of, dtype, part, IMAGES);
    measure(runtime, devices[0], run, name, off);
    return 0;
}

int main(int argc, char **argv)
{
    static const hob_dtype dtypes[] = {HOB_DTYPE_BF16, HOB_DTYPE_F32};
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime = NULL;
    hob_device *devices[2] = {NULL, NULL};
    int failed = 0;

    options.policy = HOB_POLICY_REPORT;
    if (argc < 2) {
        fprintf(stderr, "usage: conv DEVICE [PART-OF-A-NAME...]\n");
        return 2;
    }
    if (hob_runtime_open(&options, &runtime, &error) ||
        hob_device_open(runtime, argv[1], &devices[0], &error) ||
        hob_device_open(runtime, "flex", &devices[1], &error)) {
        fprintf(stderr, "conv: %s\n", error.message);
        hob_error_release(&error);
        return 1;
    }
    printf("%s\n", hob_device_name(devices[0]));
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < LAYERS; i++)
            for (int part = 0; part < PARTS; part++)
                failed |= row(runtime, devices, &layers[i], dtypes[d],
                              (enum part)part, argc, argv);
    hob_device_unref(devices[0]);
    hob_device_unref(devices[1]);
    (void)!hob_runtime_close(runtime, NULL);
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - convolutions of a ResNet and their gradients on one device:
 * conv DEVICE [PART-OF-A-NAME...].
 *
 * Each is first run with fewer images there and on flex, in f32 of the same
 * numbers, and compared; what differs is not timed. Then as in gpu.c. Results
 * are TFLOP/s by the products of the convolution itself. peer_conv.py has the
 * same in PyTorch.
 */
#include <hob/hob.h>
#include <hob/ops.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, IMAGES = 32, FEW_IMAGES = 16 };

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

/* TENSOR's elements, or NULL. */
static double *values_of(hob_tensor *tensor, int64_t *out_count)
{
    hob_error error = HOB_ERROR_INIT;
    double *values;

    *out_count = hob_tensor_count(tensor);
    values = malloc((size_t)*out_count * sizeof(*values));
    if (values && hob_read_f64(tensor, values, *out_count, &error)) {
        fprintf(stderr, "%s\n", error.message);
        free(values);
        values = NULL;
    }
    hob_error_release(&error);
    return values;
}

/* The norm of the difference of devices 0 and 1 by that of the latter, which
 * computes with the same numbers in f32; negative where there is none. */
static double difference(hob_runtime *runtime, hob_device *devices[2],
                         struct run run)
{
    double *values[2] = {NULL, NULL}, up = 0, down = 0;
    int64_t count = 0;

    for (int i = 0; i < 2; i++) {
        hob_scope *scope = hob_scope_open(runtime);

        draw(&run, scope, devices[i]);
        if (i) {
            run.x = hob_cast(scope, run.x, HOB_DTYPE_F32);
            run.w = hob_cast(scope, run.w, HOB_DTYPE_F32);
            run.grad = hob_cast(scope, run.grad, HOB_DTYPE_F32);
        }
        values[i] = values_of(compute(&run, scope), &count);
        hob_scope_close(scope);
    }
    for (int64_t k = 0; k < count && values[0] && values[1]; k++) {
        up += (values[0][k] - values[1][k]) * (values[0][k] - values[1][k]);
        down += values[1][k] * values[1][k];
    }
    if (!values[0] || !values[1])
        down = -1;
    free(values[0]);
    free(values[1]);
    return down < 0 ? -1 : sqrt(up) / (sqrt(down) + 1e-30);
}

/* ---- timing ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(const struct run *run, hob_scope *root,
                      hob_device *device, int times)
{
    const double begin = now();

    for (int i = 0; i < times; i++) {
        hob_scope *scope = hob_scope_child(root);

        compute(run, scope);
        hob_scope_close(scope);
    }
    if (hob_device_sync(device, NULL))
        return -1;
    return (now() - begin) / times;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(hob_runtime *runtime, hob_device *device, struct run run,
                    const char *name)
{
    hob_scope *root = hob_scope_open(runtime);
    hob_error error = HOB_ERROR_INIT;
    double samples[ROUNDS], once;
    int times;

    draw(&run, root, device);
    seconds(&run, root, device, 1);
    once = seconds(&run, root, device, 3);
    times = once > 0 ? (int)(0.02 / once) + 1 : 1;
    for (int i = 0; i < ROUNDS; i++)
        samples[i] = seconds(&run, root, device, times);
    qsort(samples, ROUNDS, sizeof(samples[0]), ascending);
    once = samples[ROUNDS / 2];
    if (hob_scope_error(root, &error))
        printf("%-44s failed: %s\n", name, error.message);
    else
        printf("%-44s %10.4f ms %9.2f TFLOP/s\n", name, 1e3 * once,
               flops(&run) / once * 1e-12);
    fflush(stdout);
    hob_error_release(&error);
    hob_scope_close(root);
    (void)!hob_device_trim(device, NULL);
}

/* ---- all of them ---- */

static int is_asked_for(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strstr(name, argv[i]))
            return 1;
    return argc < 3;
}

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
    if (!is_asked_for(name, argc, argv))
        return 0;
    run_init(&run, of, dtype, part, FEW_IMAGES);
    off = difference(runtime, devices, run);
    if (!(off >= 0 && off < (dtype == HOB_DTYPE_BF16 ? 4e-3 : 1e-4))) {
        printf("%-44s WRONG: off by %g\n", name, off);
        return 1;
    }
    run_init(&run, of, dtype, part, IMAGES);
    measure(runtime, devices[0], run, name);
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

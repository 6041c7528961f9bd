/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.c - nn.linear_relu against loops in double, its gradient against
 * central differences of the same loops. Odd sizes, leading dimensions, f32
 * (flex's kernel) and f16 (the body). On fusion it takes the place of the three
 * ops that it is. HOB_TEST_DEVICE names another device than flex, as in
 * cube-vulkan:0.
 */
#include "linear_relu.h"

#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAD = 2, ROWS = 5, IN = 7, OUT = 3, PARAMS = 3 };
enum { X_COUNT = LEAD * ROWS * IN, W_COUNT = IN * OUT, B_COUNT = OUT };
enum { Y_COUNT = LEAD * ROWS * OUT };

static const int counts[PARAMS] = {X_COUNT, W_COUNT, B_COUNT};
static const char *const names[PARAMS] = {"x", "w", "b"};

/* The three arguments, one after the other. */
struct inputs {
    double values[PARAMS][X_COUNT];
};

/* Multiples of 1/64 in -1..1: exact in every dtype here. */
static void fill(struct inputs *inputs)
{
    unsigned state = 12345;

    memset(inputs, 0, sizeof(*inputs));
    for (int p = 0; p < PARAMS; p++)
        for (int i = 0; i < counts[p]; i++) {
            state = state * 1103515245 + 12345;
            inputs->values[p][i] = ((int)(state >> 16 & 127) - 64) / 64.0;
        }
}

static void reference(const struct inputs *inputs, double *y)
{
    for (int row = 0; row < LEAD * ROWS; row++)
        for (int j = 0; j < OUT; j++) {
            double sum = inputs->values[2][j];

            for (int k = 0; k < IN; k++)
                sum += inputs->values[0][row * IN + k] *
                       inputs->values[1][k * OUT + j];
            y[row * OUT + j] = sum > 0 ? sum : 0;
        }
}

/* d(sum of y)/d(value INDEX of parameter P). The step is small enough to
 * cross no kink: values are multiples of 2^-12. */
static double slope(const struct inputs *inputs, int p, int index)
{
    const double step = 1.0 / (1 << 20);
    struct inputs moved = *inputs;
    double low[Y_COUNT], high[Y_COUNT], sum = 0;

    moved.values[p][index] += step;
    reference(&moved, high);
    moved.values[p][index] -= 2 * step;
    reference(&moved, low);
    for (int i = 0; i < Y_COUNT; i++)
        sum += high[i] - low[i];
    return sum / (2 * step);
}

static int compare(const char *what, hob_tensor *tensor, const double *wanted,
                   int count, double tolerance, hob_error *error)
{
    double got[X_COUNT];

    if (hob_read_f64(tensor, got, count, error))
        return 1;
    for (int i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) <= tolerance * (1 + fabs(wanted[i])))) {
            printf("%s[%d] is %.9g, not %.9g\n", what, i, got[i], wanted[i]);
            return 1;
        }
    return 0;
}

static int test_dtype(hob_scope *scope, hob_device *device, hob_dtype dtype,
                      double tolerance, hob_error *error)
{
    static const int64_t shapes[PARAMS][3] = {
        {LEAD, ROWS, IN}, {IN, OUT}, {OUT}};
    static const int32_t ranks[PARAMS] = {3, 2, 1};
    struct inputs inputs;
    hob_tensor *leaves[PARAMS], *y;
    hob_grads *grads = NULL;
    double wanted[X_COUNT];
    int failed;

    fill(&inputs);
    for (int p = 0; p < PARAMS; p++)
        leaves[p] = hob_require_grad(
            scope, hob_cast(scope,
                            hob_from_f64(scope, device, inputs.values[p],
                                         shapes[p], ranks[p]),
                            dtype));
    y = nn_linear_relu(scope, leaves[0], leaves[1], leaves[2]);
    reference(&inputs, wanted);
    failed =
        compare("y", hob_detach(scope, y), wanted, Y_COUNT, tolerance, error);
    if (failed || hob_backward(scope, y, 0, &grads, error))
        return 1;
    for (int p = 0; p < PARAMS; p++) {
        hob_tensor *gradient = NULL;

        for (int i = 0; i < counts[p]; i++)
            wanted[i] = slope(&inputs, p, i);
        failed |=
            hob_grad(scope, leaves[p], grads, &gradient, error) || !gradient ||
            compare(names[p], gradient, wanted, counts[p], tolerance, error);
    }
    hob_grads_free(grads);
    return failed;
}

/* A wrong shape is one clear error, not a crash. */
static int test_refusal(hob_scope *scope, hob_device *device)
{
    const float ones[6] = {1, 1, 1, 1, 1, 1};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = hob_from_f32(scope, device, ones, (int64_t[]){2, 3}, 2);
    hob_tensor *w = hob_from_f32(scope, device, ones, (int64_t[]){2, 3}, 2);
    hob_tensor *b = hob_from_f32(scope, device, ones, (int64_t[]){3}, 1);
    int failed;

    (void)nn_linear_relu(scope, x, w, b);
    failed = hob_scope_error(scope, &error) != HOB_ERR_SHAPE ||
             !strstr(error.message, "nn.linear_relu");
    if (failed)
        printf("bad shapes: %s\n", error.message ? error.message : "accepted");
    hob_scope_clear_error(scope);
    hob_error_release(&error);
    return failed;
}

static void stay_silent(void *context, hob_status status, const char *op,
                        const char *message)
{
    (void)context;
    (void)status;
    (void)op;
    (void)message;
}

static hob_tensor *draw(hob_scope *scope, hob_device *device,
                        const int64_t *shape, uint32_t rank)
{
    return hob_random_uniform(scope, shape, rank, -1, 1, device, HOB_DTYPE_F32);
}

/* More than a tile of a GPU's kernel each way, and nothing at all. */
static int test_sizes(hob_scope *scope, hob_device *device, hob_error *error)
{
    static const int64_t sizes[][3] = {
        {70, 33, 131}, {0, 3, 2}, {2, 0, 3}, {2, 3, 0}};

    for (int s = 0; s < 4; s++) {
        const int64_t rows = sizes[s][0], in = sizes[s][1], out = sizes[s][2];
        hob_tensor *x = draw(scope, device, (int64_t[]){rows, in}, 2);
        hob_tensor *w = draw(scope, device, (int64_t[]){out, in}, 2);
        hob_tensor *b = draw(scope, device, &out, 1);
        hob_tensor *got, *wanted, *off;
        double most = 0;

        w = hob_swap_dims(scope, w, 0, 1); /* not contiguous */
        got = nn_linear_relu(scope, x, w, b);
        wanted = hob_relu(scope, hob_linear(scope, x, w, b));
        if (hob_scope_error(scope, error))
            return 1;
        if (!hob_tensor_count(got))
            continue;
        off = hob_max(scope, hob_abs(scope, hob_sub(scope, got, wanted)));
        if (hob_read_f64(off, &most, 1, error) || !(most < 1e-4)) {
            printf("%d x %d x %d: off by %g\n", (int)rows, (int)in, (int)out,
                   most);
            return 1;
        }
    }
    return 0;
}

/* ---- on fusion ---- */

static void count_patterns(void *context, const struct hob_fusion_event *event)
{
    if (event->pattern && event->op_count &&
        !strcmp(event->name, "nn.linear_relu"))
        ++*(int *)context;
}

/* Product, sum and relu are one op, as the manifest's patterns say. */
static int test_pattern(hob_runtime *runtime, const char *base,
                        hob_error *error)
{
    char spec[200];
    hob_device *device = NULL;
    hob_scope *scope;
    struct inputs inputs;
    double wanted[Y_COUNT];
    int failed, replaced = 0;
    hob_tensor *x, *w, *b, *y;

    snprintf(spec, sizeof(spec), "fusion(%s)", base);
    if (hob_device_open(runtime, spec, &device, error))
        return 1;
    failed = hob_fusion_watch(device, count_patterns, &replaced, error);
    scope = hob_scope_open(runtime);
    fill(&inputs);
    reference(&inputs, wanted);
    x = hob_from_f64(scope, device, inputs.values[0],
                     (int64_t[]){LEAD * ROWS, IN}, 2);
    w = hob_from_f64(scope, device, inputs.values[1], (int64_t[]){IN, OUT}, 2);
    b = hob_from_f64(scope, device, inputs.values[2], (int64_t[]){OUT}, 1);
    x = hob_cast(scope, x, HOB_DTYPE_F32);
    w = hob_cast(scope, w, HOB_DTYPE_F32);
    b = hob_cast(scope, b, HOB_DTYPE_F32);
    y = hob_relu(scope, hob_add(scope, hob_matmul(scope, x, w), b));
    failed |= compare("relu(x w + b)", y, wanted, Y_COUNT, 1e-5, error);
    y = hob_relu(scope, hob_linear(scope, x, w, b));
    failed |= compare("relu of linear", y, wanted, Y_COUNT, 1e-5, error);
    if (replaced != 2) {
        printf("it took the place of others %d times, not twice\n", replaced);
        failed = 1;
    }
    hob_scope_close(scope);
    hob_device_unref(device);
    return failed;
}

int main(void)
{
    const char *base = getenv("HOB_TEST_DEVICE");
    char spec[200];
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime = NULL;
    hob_device *device = NULL;
    int failed = 6;

    snprintf(spec, sizeof(spec), "autodiff(%s)", base ? base : "flex");
    options.policy = HOB_POLICY_REPORT;
    options.on_panic = stay_silent;
    if (!hob_runtime_open(&options, &runtime, &error) &&
        !hob_device_open(runtime, spec, &device, &error)) {
        hob_scope *scope = hob_scope_open(runtime);

        /* Sums of seven exact products; one rounding of the dtype each. */
        failed = test_dtype(scope, device, HOB_DTYPE_F64, 1e-9, &error);
        failed += test_dtype(scope, device, HOB_DTYPE_F32, 1e-5, &error);
        failed += test_dtype(scope, device, HOB_DTYPE_F16, 1e-2, &error);
        failed += test_sizes(scope, device, &error);
        failed += test_refusal(scope, device);
        failed += test_pattern(runtime, base ? base : "flex", &error);
        hob_scope_close(scope);
    }
    hob_device_unref(device);
    if (hob_runtime_close(runtime, error.status ? NULL : &error) && !failed)
        failed = 1;
    if (error.message)
        printf("%s\n", error.message);
    hob_error_release(&error);
    printf("%d passed, %d failed\n", 6 - failed, failed);
    return failed != 0;
}

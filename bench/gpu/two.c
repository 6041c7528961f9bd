/* SPDX-License-Identifier: Apache-2.0 */
/*
 * two.c - two devices of one host: two DEVICE DEVICE.
 *
 * Copies from one to the other and back, bit by bit and how fast; ops and a
 * training step on the second one, which must give what the first one gives
 * and leave it alone; an op that has tensors of both. peer_two.py prints
 * PyTorch's copies. The status says whether all was right.
 */
#include "timing.h"

#include <hob/hob.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMS = 4, STEPS = 20 };

static hob_runtime *runtime;
static hob_device *devices[2], *tracked[2];
static int failures;

static void check(int is_right, const char *what)
{
    printf("%-52s %s\n", what, is_right ? "right" : "WRONG");
    fflush(stdout);
    failures += !is_right;
}

/* Whether SCOPE saw no failure; says which it was. */
static int went_well(hob_scope *scope)
{
    hob_error error = HOB_ERROR_INIT;
    const int failed = hob_scope_error(scope, &error) != HOB_OK;

    if (failed)
        printf("  %s\n", error.message);
    hob_error_release(&error);
    return !failed;
}

/* Whether two tensors, wherever they are, have the same bytes. */
static int is_same(hob_scope *scope, hob_tensor *a, hob_tensor *b)
{
    const size_t bytes =
        (size_t)hob_tensor_count(a) * hob_dtype_size(hob_tensor_dtype(a));
    char *data = went_well(scope) ? malloc(2 * bytes + 1) : NULL;
    const int same = data && hob_tensor_count(a) == hob_tensor_count(b) &&
                     !hob_read(a, data, bytes, NULL) &&
                     !hob_read(b, data + bytes, bytes, NULL) &&
                     !memcmp(data, data + bytes, bytes);

    free(data);
    return same;
}

/* ---- copies ---- */

/* ROWS x COLUMNS random numbers on device FROM. */
static hob_tensor *random_on(hob_scope *scope, int from, int64_t rows,
                             int64_t columns)
{
    const int64_t shape[2] = {rows, columns};

    return hob_random_uniform(scope, shape, 2, -1, 1, devices[from],
                              HOB_DTYPE_F32);
}

static void copy_there_and_back(int64_t rows, int64_t columns, int is_turned)
{
    char name[80];

    for (int from = 0; from < 2; from++) {
        hob_scope *scope = hob_scope_open(runtime);
        hob_tensor *x = random_on(scope, from, rows, columns), *there, *back;

        if (is_turned)
            x = hob_swap_dims(scope, x, 0, 1);
        there = hob_to_device(scope, x, devices[!from]);
        back = hob_to_device(scope, there, devices[from]);
        snprintf(name, sizeof(name), "copy %" PRId64 " x %" PRId64 "%s from %d",
                 rows, columns, is_turned ? ", turned," : "", from);
        check(hob_tensor_device(there) == devices[!from] &&
                  is_same(scope, x, there) && is_same(scope, x, back),
              name);
        hob_scope_close(scope);
    }
}

/* What is overwritten as soon as it was copied, and copied while it is still
 * computed. */
static void copy_in_order(void)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *x = random_on(scope, 0, 4096, 4096), *wanted, *there;
    int same = 1;

    wanted = x;
    for (int i = 0; i < 8; i++)
        wanted = hob_mul_scalar(scope, wanted, hob_f64(-1.25));
    hob_keep(scope, wanted);
    for (int round = 0; round < 4 && same; round++) {
        hob_scope *inner = hob_scope_child(scope);
        hob_tensor *y = x;

        for (int i = 0; i < 8; i++)
            y = hob_mul_scalar(inner, i ? hob_move(inner, y) : y,
                               hob_f64(-1.25));
        there = hob_to_device(inner, hob_move(inner, y), devices[1]);
        /* The memory of y is taken again at once. */
        (void)hob_mul_scalar(inner, x, hob_f64(0));
        same = is_same(inner, wanted, there);
        hob_scope_close(inner);
    }
    check(same, "copies wait for work, and work for copies");
    hob_scope_close(scope);
}

struct copy {
    hob_tensor *of;
    hob_device *to;
};

static hob_status run_copy(hob_scope *scope, void *work)
{
    const struct copy *copy = work;

    (void)hob_to_device(scope, copy->of, copy->to);
    return HOB_OK;
}

static void time_copies(int64_t bytes)
{
    for (int from = 0; from < 2; from++) {
        hob_scope *scope = hob_scope_open(runtime);
        struct copy copy = {
            .of = hob_zeros(scope, &bytes, 1, devices[from], HOB_DTYPE_U8),
            .to = devices[!from]};
        const double once = timing_of(scope, copy.to, run_copy, &copy, NULL);

        printf("copy of %" PRId64 " bytes from %d %*s%10.3f us %8.2f GB/s\n",
               bytes, from, 12, "", 1e6 * once, (double)bytes / once * 1e-9);
        fflush(stdout);
        if (once < 0 || !went_well(scope))
            failures++;
        hob_scope_close(scope);
    }
}

/* ---- ops ---- */

static hob_tensor *run_add(hob_scope *scope, hob_tensor *a, hob_tensor *b)
{
    return hob_add(scope, a, b);
}

static hob_tensor *run_softmax(hob_scope *scope, hob_tensor *a, hob_tensor *b)
{
    (void)b;
    return hob_softmax(scope, a, -1);
}

static hob_tensor *run_sum(hob_scope *scope, hob_tensor *a, hob_tensor *b)
{
    return hob_sum_dim(scope, hob_mul(scope, a, b), 0);
}

static const struct {
    const char *name;
    hob_tensor *(*run)(hob_scope *scope, hob_tensor *a, hob_tensor *b);
} ops[] = {{"add on both", run_add},
           {"matmul on both", hob_matmul},
           {"softmax on both", run_softmax},
           {"sum on both", run_sum}};

static void run_ops(void)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        hob_scope *scope = hob_scope_open(runtime);
        hob_tensor *a = random_on(scope, 0, 511, 511);
        hob_tensor *b = random_on(scope, 0, 511, 511);
        hob_tensor *one = ops[i].run(scope, a, b);
        hob_tensor *other =
            ops[i].run(scope, hob_to_device(scope, a, devices[1]),
                       hob_to_device(scope, b, devices[1]));

        check(is_same(scope, one, other), ops[i].name);
        hob_scope_close(scope);
    }
}

static void mix(void)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *a = random_on(scope, 0, 2, 2), *b = random_on(scope, 1, 2, 2);
    hob_status status;

    (void)hob_add(scope, a, b);
    status = hob_scope_error(scope, &error);
    printf("  %s\n", error.message ? error.message : "nothing said");
    check(status == HOB_ERR_DEVICE && error.message &&
              strstr(error.message, hob_device_name(devices[0])) &&
              strstr(error.message, hob_device_name(devices[1])),
          "tensors of both in one op are refused");
    hob_error_release(&error);
    hob_scope_close(scope);
}

/* ---- training ---- */

/* One step of two layers, in place. */
static int step(hob_scope *scope, int on, hob_tensor **params, hob_tensor *x,
                hob_tensor *labels, double *out_loss)
{
    hob_tensor *leaves[PARAMS], *grads[PARAMS], *y, *loss;
    hob_scope *below = hob_no_grad(scope, tracked[on]);
    hob_grads *all = NULL;

    for (int i = 0; i < PARAMS; i++)
        leaves[i] = hob_require_grad(scope, params[i]);
    y = hob_relu(scope, hob_linear(scope, x, leaves[0], leaves[1]));
    loss = hob_cross_entropy(scope, hob_linear(scope, y, leaves[2], leaves[3]),
                             labels);
    if (hob_backward(scope, loss, 0, &all, NULL))
        return 0;
    for (int i = 0; i < PARAMS; i++)
        if (hob_grad(scope, leaves[i], all, &grads[i], NULL))
            return 0;
    hob_grads_free(all);
    for (int i = 0; i < PARAMS; i++)
        params[i] = hob_sgd_step(below, params[i], grads[i], 0.1, 0);
    return !hob_item(loss, out_loss, NULL);
}

/* The losses of some steps on device ON from what lies on device 0. */
static int train(int on, hob_tensor *const *start, hob_tensor *x,
                 hob_tensor *labels, double *out_losses)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *params[PARAMS];
    int well = 1;

    x = hob_to_device(scope, x, tracked[on]);
    labels = hob_to_device(scope, labels, tracked[on]);
    for (int i = 0; i < PARAMS; i++)
        params[i] = hob_to_device(scope, start[i], tracked[on]);
    for (int i = 0; i < STEPS && well; i++) {
        well = step(scope, on, params, x, labels, &out_losses[i]);
        for (int k = 0; k < PARAMS && well; k++)
            params[k] = hob_to_device(scope, params[k], tracked[on]);
    }
    well = went_well(scope) && well;
    hob_scope_close(scope);
    return well;
}

static uint64_t blocks_of(int on)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;

    return hob_device_memory(devices[on], &stats, NULL)
               ? 0
               : stats.in_use_bytes + stats.system_count;
}

static void run_training(void)
{
    hob_scope *scope = hob_scope_open(runtime);
    const int64_t sizes[] = {784, 256, 10};
    const int64_t batch = 512, shape[2] = {batch, sizes[0]};
    double losses[2][STEPS];
    hob_tensor *start[PARAMS], *x, *labels, *guard, *held;
    uint64_t before;

    for (int i = 0; i < 2; i++) {
        start[2 * i] = hob_random_uniform(scope, &sizes[i], 2, -0.05, 0.05,
                                          devices[0], HOB_DTYPE_F32);
        start[2 * i + 1] =
            hob_zeros(scope, &sizes[i + 1], 1, devices[0], HOB_DTYPE_F32);
    }
    x = hob_random_uniform(scope, shape, 2, 0, 1, devices[0], HOB_DTYPE_F32);
    labels = hob_cast(
        scope,
        hob_random_uniform(scope, &batch, 1, 0, 10, devices[0], HOB_DTYPE_F32),
        HOB_DTYPE_I32);
    guard = random_on(scope, 0, 1024, 1024);
    held = hob_to_device(scope, guard, devices[1]);
    check(train(0, start, x, labels, losses[0]) &&
              losses[0][STEPS - 1] < losses[0][0],
          "training on the first");
    before = blocks_of(0);
    check(train(1, start, x, labels, losses[1]) &&
              !memcmp(losses[0], losses[1], sizeof(losses[0])),
          "the same losses on the second");
    check(blocks_of(0) == before && is_same(scope, guard, held),
          "the first one's memory as it was");
    hob_scope_close(scope);
}

/* ---- all ---- */

static int open_all(char **specs)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_status status;
    char spec[256];

    options.policy = HOB_POLICY_REPORT;
    status = hob_runtime_open(&options, &runtime, &error);
    for (int i = 0; i < 2 && !status; i++) {
        snprintf(spec, sizeof(spec), "autodiff(%s)", specs[i]);
        status = hob_device_open(runtime, specs[i], &devices[i], &error);
        if (!status)
            status = hob_device_open(runtime, spec, &tracked[i], &error);
    }
    if (status)
        fprintf(stderr, "two: %s\n", error.message);
    hob_error_release(&error);
    return !status;
}

int main(int argc, char **argv)
{
    static const int64_t shapes[][2] = {
        {1, 1}, {1, 3}, {63, 65}, {4097, 3}, {1021, 1031}, {1 << 13, 1 << 13}};

    if (argc != 3) {
        fprintf(stderr, "usage: two DEVICE DEVICE\n");
        return 2;
    }
    if (!open_all(argv + 1))
        return 1;
    printf("%s, %s\n", hob_device_name(devices[0]),
           hob_device_name(devices[1]));
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        copy_there_and_back(shapes[i][0], shapes[i][1], 0);
        copy_there_and_back(shapes[i][0], shapes[i][1], 1);
    }
    copy_in_order();
    run_ops();
    mix();
    run_training();
    time_copies(4096);
    time_copies(1 << 20);
    time_copies(1 << 28);
    for (int i = 0; i < 2; i++) {
        hob_device_unref(tracked[i]);
        hob_device_unref(devices[i]);
    }
    if (hob_runtime_close(runtime, NULL))
        failures++;
    printf("%d wrong\n", failures);
    return failures != 0;
}

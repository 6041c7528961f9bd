/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peak of a device's memory under fusion is not above that of the same
 * program op by op: what is put off does not keep what it is made of for
 * longer than the ops would.
 */
#include "hob_check.h"
#include "test_device.h"

#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static hob_runtime *runtime;
static hob_scope *root;
static hob_error error;

static void setup(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.plugin_paths = test_device_paths(&options.plugin_path_count);
    options.threads = 2;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    root = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_scope_close(root);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* ---- a network of equal layers ---- */

enum { MOST_LAYERS = 40, STATE = 3 };

enum optimizer { ADAM, SGD };

struct net {
    int64_t width, batch;
    int layers;
    enum optimizer optimizer;
    int has_bias, is_residual;
    hob_device *device;
    /* Of each layer's weights, then of each one's bias: param, m, v. */
    hob_tensor *state[2 * MOST_LAYERS][STATE];
    hob_tensor *x;
};

static int param_count(const struct net *net)
{
    return net->has_bias ? 2 * net->layers : net->layers;
}

static void net_init(struct net *net)
{
    const int64_t sizes[] = {net->width, net->width};
    const int64_t batch[] = {net->batch, net->width};

    hob_seed(root, 1);
    net->x =
        hob_random_uniform(root, batch, 2, -1, 1, net->device, HOB_DTYPE_F32);
    ck_assert_hob_ok(hob_eval(&net->x, 1, &error));
    for (int i = 0; i < param_count(net); i++) {
        const uint32_t rank = i < net->layers ? 2 : 1;

        net->state[i][0] = hob_random_uniform(root, sizes, rank, -0.1, 0.1,
                                              net->device, HOB_DTYPE_F32);
        for (int k = 1; k < STATE; k++)
            net->state[i][k] =
                hob_zeros(root, sizes, rank, net->device, HOB_DTYPE_F32);
        ck_assert_hob_ok(hob_eval(net->state[i], STATE, &error));
    }
}

/* One layer: what it gives for X, or is added to that. */
static hob_tensor *layer(const struct net *net, hob_scope *in, hob_tensor *x,
                         hob_tensor *weight, hob_tensor *bias)
{
    hob_tensor *y = x;

    if (net->is_residual)
        y = hob_gelu(in, hob_layer_norm(in, x, bias, NULL, 1e-5));
    y = hob_matmul(in, y, weight);
    if (net->is_residual)
        return hob_add(in, hob_move(in, y), x);
    if (bias)
        y = hob_add(in, hob_move(in, y), bias);
    return hob_relu(in, hob_move(in, y));
}

/* The gradients, kept by STEP, by a scope that is closed. */
static hob_tensor *find_gradients(const struct net *net, hob_scope *step,
                                  hob_tensor **out)
{
    hob_scope *inside = hob_scope_child(step);
    hob_tensor *leaves[2 * MOST_LAYERS], *x = net->x, *loss;
    hob_grads *grads = NULL;

    for (int i = 0; i < param_count(net); i++)
        leaves[i] = hob_require_grad(
            inside, hob_to_device(inside, net->state[i][0], net->device));
    for (int i = 0; i < net->layers; i++)
        x = layer(net, inside, x, leaves[i],
                  net->has_bias ? leaves[net->layers + i] : NULL);
    loss = hob_mean(inside, hob_square(inside, x));
    ck_assert_hob_ok(hob_backward(inside, loss, 0, &grads, &error));
    for (int i = 0; i < param_count(net); i++)
        ck_assert_hob_ok(hob_grad(step, leaves[i], grads, &out[i], &error));
    loss = hob_keep(step, hob_inner(inside, loss));
    hob_grads_free(grads);
    hob_scope_close(inside);
    return loss;
}

static void net_step(struct net *net, int number)
{
    hob_scope *step = hob_scope_child(root);
    hob_tensor *grads[2 * MOST_LAYERS];

    (void)find_gradients(net, step, grads);
    for (int i = 0; i < param_count(net); i++) {
        hob_tensor *made[STATE], **old = net->state[i];

        if (net->optimizer == ADAM) {
            ck_assert_hob_ok(hob_adam_step(
                step, hob_move(step, old[0]), grads[i], hob_move(step, old[1]),
                hob_move(step, old[2]), number, 1e-3, 0.9, 0.999, 1e-8, 0, NULL,
                &made[0], &made[1], &made[2]));
            for (int k = 0; k < STATE; k++)
                hob_assign(root, &old[k], made[k]);
        } else {
            made[0] = hob_mul_scalar(step, grads[i], hob_f64(1e-3));
            made[0] =
                hob_sub(step, hob_move(step, old[0]), hob_move(step, made[0]));
            hob_assign(root, &old[0], made[0]);
        }
    }
    hob_scope_close(step);
}

/* The peak of the third of some steps of NET on the device SPEC, beyond what is
 * there before it; the weights of the first layer go to OUT. */
static uint64_t peak_of(struct net net, const char *spec, double *out)
{
    struct hob_memory_stats before = HOB_MEMORY_STATS_INIT;
    struct hob_memory_stats after = HOB_MEMORY_STATS_INIT;

    ck_assert_hob_ok(test_device_open(runtime, spec, &net.device, &error));
    net_init(&net);
    for (int i = 1; i < 3; i++)
        net_step(&net, i);
    ck_assert_hob_ok(hob_device_sync(net.device, &error));
    ck_assert_hob_ok(hob_device_reset_peak(net.device, &error));
    ck_assert_hob_ok(hob_device_memory(net.device, &before, &error));
    net_step(&net, 3);
    ck_assert_hob_ok(hob_device_sync(net.device, &error));
    ck_assert_hob_ok(hob_device_memory(net.device, &after, &error));
    ck_assert_uint_eq(after.in_use_bytes, before.in_use_bytes);
    ck_assert_hob_ok(hob_read_f64(net.state[0][0], out,
                                  (uint64_t)(net.width * net.width), &error));
    ck_assert_hob_ok(hob_scope_error(root, &error));
    hob_device_unref(net.device);
    return after.peak_bytes - before.in_use_bytes;
}

static const struct net nets[] = {
    {.width = 96, .batch = 512, .layers = 8, .optimizer = ADAM},
    {.width = 96, .batch = 512, .layers = 8, .optimizer = ADAM, .has_bias = 1},
    {.width = 96, .batch = 512, .layers = 8, .optimizer = SGD, .has_bias = 1},
    /* More ops than a window has. */
    {.width = 64, .batch = 200, .layers = 40, .optimizer = ADAM, .has_bias = 1},
    /* The weights are larger than what goes through them. */
    {.width = 128, .batch = 16, .layers = 8, .optimizer = ADAM, .has_bias = 1},
    {.width = 128, .batch = 16, .layers = 8, .optimizer = SGD},
    /* What a layer reads is wanted by another one too. */
    {.width = 96,
     .batch = 512,
     .layers = 8,
     .optimizer = ADAM,
     .has_bias = 1,
     .is_residual = 1},
};

START_TEST(test_fusion_memory_of_a_step)
{
    const struct net *net = &nets[_i];
    const size_t count = (size_t)(net->width * net->width);
    double *weights = malloc(2 * count * sizeof(double));
    const uint64_t plain = peak_of(*net, "autodiff(flex)", weights);
    const uint64_t fused =
        peak_of(*net, "autodiff(fusion(flex))", weights + count);

    ck_assert_uint_le(fused, plain);
    /* In one window: what each layer gives, and the gradients of what one
     * gives and of what it reads. */
    if (test_device_is_flex() && net->batch > net->width && net->layers < 20 &&
        !net->is_residual)
        ck_assert_uint_le(
            fused, (uint64_t)((net->layers + 2) * net->batch * net->width) * 4 *
                       105 / 100);
    for (size_t i = 0; i < count; i++)
        ck_assert_double_eq_tol(weights[i], weights[count + i], 1e-4);
    free(weights);
}
END_TEST

/* ---- one weight for all layers ---- */

enum { DEEP_WIDTH = 64, DEEP_BATCH = 128 };

struct deep {
    int layers;
    const char *decorator; /* of the device, around flex or fusion of it */
    int kept;              /* of what a layer gives: so many at most */
};

/* LAYERS of X, of which nothing but the graph holds what one makes. */
static hob_tensor *deep_forward(hob_scope *scope, hob_tensor *x, int layers,
                                hob_tensor *weight, hob_tensor *bias)
{
    hob_tensor *kept = NULL;

    for (int i = 0; i < layers; i++) {
        hob_scope *in = hob_scope_child(scope);
        hob_tensor *y = hob_add(in, hob_matmul(in, x, weight), bias);

        hob_assign(scope, &kept, hob_gelu(in, y));
        x = kept;
        hob_scope_close(in);
    }
    return x;
}

/* The gradient of LEAVES[0], and the peak of what that takes, on DEVICE. */
static uint64_t deep_peak(hob_device *device, hob_tensor *const *leaves,
                          hob_tensor *x, int layers, double *out)
{
    struct hob_memory_stats before = HOB_MEMORY_STATS_INIT;
    struct hob_memory_stats after = HOB_MEMORY_STATS_INIT;
    hob_scope *outer = hob_scope_child(root);
    hob_scope *inside = hob_scope_child(outer);
    hob_tensor *made[2] = {NULL};
    hob_grads *grads = NULL;

    ck_assert_hob_ok(hob_device_sync(device, &error));
    ck_assert_hob_ok(hob_device_reset_peak(device, &error));
    ck_assert_hob_ok(hob_device_memory(device, &before, &error));
    ck_assert_hob_ok(hob_backward(
        inside, deep_forward(inside, x, layers, leaves[0], leaves[1]), 0,
        &grads, &error));
    for (int i = 0; i < 2; i++)
        ck_assert_hob_ok(hob_grad(outer, leaves[i], grads, &made[i], &error));
    ck_assert_hob_ok(hob_eval(made, 2, &error));
    ck_assert_hob_ok(hob_device_sync(device, &error));
    ck_assert_hob_ok(hob_device_memory(device, &after, &error));
    hob_grads_free(grads);
    hob_scope_close(inside);
    ck_assert_hob_ok(
        hob_read_f64(made[0], out, DEEP_WIDTH * DEEP_WIDTH, &error));
    hob_scope_close(outer);
    return after.peak_bytes - before.in_use_bytes;
}

static uint64_t deep_peak_on(const struct deep *deep, const char *base,
                             double *out)
{
    const int64_t sizes[] = {DEEP_WIDTH, DEEP_WIDTH};
    const int64_t batch[] = {DEEP_BATCH, DEEP_WIDTH};
    hob_tensor *made[3], *leaves[2];
    hob_device *device;
    uint64_t peak;
    char spec[64];

    snprintf(spec, sizeof(spec), "%s(%s)", deep->decorator, base);
    ck_assert_hob_ok(test_device_open(runtime, spec, &device, &error));
    hob_seed(root, 1);
    made[0] =
        hob_random_uniform(root, sizes, 2, -0.2, 0.2, device, HOB_DTYPE_F32);
    made[1] = hob_random_uniform(root, &sizes[1], 1, -0.2, 0.2, device,
                                 HOB_DTYPE_F32);
    made[2] =
        hob_random_uniform(root, batch, 2, -1, 1, device, HOB_DTYPE_F32);
    ck_assert_hob_ok(hob_eval(made, 3, &error));
    for (int i = 0; i < 2; i++)
        leaves[i] = hob_require_grad(root, made[i]);
    peak = deep_peak(device, leaves, made[2], deep->layers, out);
    ck_assert_hob_ok(hob_scope_error(root, &error));
    hob_device_unref(device);
    return peak;
}

/* What is kept: two of each layer, or one and six in work. */
static const struct deep deeps[] = {
    {.layers = 12, .decorator = "autodiff", .kept = 2 * 12 + 4},
    {.layers = 64, .decorator = "autodiff", .kept = 2 * 64 + 4},
    {.layers = 12, .decorator = "autodiff{checkpoint=balanced}", .kept = 18},
    {.layers = 64, .decorator = "autodiff{checkpoint=balanced}", .kept = 70},
};

/* The gradients of a weight are added up as they come. */
START_TEST(test_fusion_memory_of_one_weight)
{
    const struct deep *deep = &deeps[_i];
    double grads[2][DEEP_WIDTH * DEEP_WIDTH];
    const uint64_t plain = deep_peak_on(deep, "flex", grads[0]);
    const uint64_t fused = deep_peak_on(deep, "fusion(flex)", grads[1]);

    ck_assert_uint_le(fused, plain);
    if (test_device_is_flex())
        ck_assert_uint_le(fused, (uint64_t)(deep->kept * DEEP_BATCH *
                                            DEEP_WIDTH * 4 * 105 / 100));
    for (int i = 0; i < DEEP_WIDTH * DEEP_WIDTH; i++)
        ck_assert_double_eq_tol(grads[0][i], grads[1][i],
                                1e-4 * (1 + fabs(grads[0][i])));
}
END_TEST

/* ---- a sum of many ---- */

/* The peak of a sum of COUNT cumulative sums on SPEC, in matrices of 64 x 64
 * beyond what is there before it; its first element goes to OUT. */
static double sum_peak(const char *spec, int count, double *out)
{
    enum { SIZE = 64 };
    const int64_t sizes[] = {SIZE, SIZE};
    struct hob_memory_stats before = HOB_MEMORY_STATS_INIT;
    struct hob_memory_stats after = HOB_MEMORY_STATS_INIT;
    hob_scope *step = hob_scope_child(root);
    hob_tensor *x, *sum = NULL;
    hob_device *device;
    double all[SIZE * SIZE];

    ck_assert_hob_ok(test_device_open(runtime, spec, &device, &error));
    x = hob_full(step, sizes, 2, hob_f64(0.5), device, HOB_DTYPE_F32);
    ck_assert_hob_ok(hob_eval(&x, 1, &error));
    ck_assert_hob_ok(hob_device_reset_peak(device, &error));
    ck_assert_hob_ok(hob_device_memory(device, &before, &error));
    for (int i = 0; i < count; i++) {
        hob_tensor *term = hob_cumsum(step, x, i % 2);

        sum = sum ? hob_add(step, hob_move(step, sum), hob_move(step, term))
                  : term;
    }
    ck_assert_hob_ok(hob_read_f64(sum, all, SIZE * SIZE, &error));
    ck_assert_hob_ok(hob_device_memory(device, &after, &error));
    *out = all[SIZE];
    hob_scope_close(step);
    hob_device_unref(device);
    return (double)(after.peak_bytes - before.in_use_bytes) / sizeof(float) /
           SIZE / SIZE;
}

/* Three adds save as much traffic as their terms need memory. */
START_TEST(test_fusion_memory_of_a_sum)
{
    double sums[2];

    ck_assert_double_le(sum_peak("flex", 40, &sums[0]), 3);
    ck_assert_double_le(sum_peak("fusion(flex)", 40, &sums[1]), 5);
    ck_assert_double_eq(sums[0], 20 * 0.5 + 20 * 1.0);
    ck_assert_double_eq(sums[1], sums[0]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion memory");
    TCase *tc = tcase_create("memory");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_fusion_memory_of_a_step, 0,
                        (int)(sizeof(nets) / sizeof(nets[0])));
    tcase_add_loop_test(tc, test_fusion_memory_of_one_weight, 0,
                        (int)(sizeof(deeps) / sizeof(deeps[0])));
    tcase_add_test(tc, test_fusion_memory_of_a_sum);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}

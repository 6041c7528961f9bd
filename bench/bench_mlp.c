/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_mlp FOLDER - a training step of a 784-512-256-10 network (C23).
 *
 * Batch 256, relu, cross entropy, SGD or Adam, on HOB_DEVICE or
 * autodiff(flex). The data and the first weights go to FOLDER as NPY files,
 * from which bench/peer_torch.py starts, so that the losses after the same
 * number of steps can be compared: they are printed as "check" lines.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "harness.h"

#include <hob/hob.h>
#include <hob/philox.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 256, LAYERS = 3, PARAMS = 2 * LAYERS, CHECK_STEPS = 10 };
static const int64_t sizes[LAYERS + 1] = {784, 512, 256, 10};
static const double sgd_lr = 0.05;
static const double adam_lr = 1e-3;

struct net {
    hob_scope *root; /* owns what lives from step to step */
    hob_device *device;
    hob_tensor *x;
    hob_tensor *y;
    hob_tensor *first[PARAMS];  /* weights at the start */
    hob_tensor *params[PARAMS]; /* weight, bias, weight, ... */
    hob_tensor *m[PARAMS];
    hob_tensor *v[PARAMS];
    int64_t step;
    int adam;
    double loss;
    hob_error error;
};

static hob_tensor *uniform(struct net *net, uint64_t stream,
                           const int64_t *shape, int32_t rank, double low,
                           double high)
{
    int64_t count = 1;
    hob_tensor *tensor;
    float *data;

    for (int32_t i = 0; i < rank; i++)
        count *= shape[i];
    data = malloc((size_t)count * sizeof(*data));
    if (!data)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[HOB_PHILOX_WORDS];

        hob_philox_block(stream, (uint64_t)i, words);
        data[i] =
            (float)(low + (high - low) * (double)hob_philox_f32(words[0]));
    }
    tensor = hob_from_f32(net->root, net->device, data, shape, rank);
    free(data);
    return tensor;
}

static hob_status save(struct net *net, const char *folder, const char *name,
                       hob_tensor *tensor)
{
    char path[600];

    (void)snprintf(path, sizeof(path), "%s/%s.npy", folder, name);
    return hob_npy_save(path, tensor, &net->error);
}

/* Make data and weights and write them to FOLDER. */
static hob_status net_make(struct net *net, const char *folder)
{
    const int64_t x_shape[2] = {BATCH, sizes[0]};
    const int64_t y_shape[1] = {BATCH};
    int64_t y[BATCH];
    char name[16];
    hob_status st;

    for (int i = 0; i < BATCH; i++)
        y[i] = (i * 7 + i / 10) % sizes[LAYERS];
    net->x = uniform(net, 1, x_shape, 2, 0, 1);
    net->y = hob_from_i64(net->root, net->device, y, y_shape, 1);
    st = save(net, folder, "x", net->x);
    if (!st)
        st = save(net, folder, "y", net->y);
    for (int i = 0; i < PARAMS && !st; i++) {
        const int64_t *shape = &sizes[i / 2];
        double bound = 1 / sqrt((double)sizes[i / 2]);

        net->first[i] =
            i % 2 ? uniform(net, (uint64_t)i + 2, shape + 1, 1, -bound, bound)
                  : uniform(net, (uint64_t)i + 2, shape, 2, -bound, bound);
        (void)snprintf(name, sizeof(name), "p%d", i);
        st = save(net, folder, name, net->first[i]);
    }
    return st;
}

/* Go back to the first weights. */
static hob_status net_reset(struct net *net, int adam)
{
    hob_scope *scope = hob_scope_child(net->root);
    hob_status st;

    net->adam = adam;
    net->step = 0;
    for (int i = 0; i < PARAMS; i++) {
        /* A copy, for steps may write to it in place. */
        hob_tensor *copy =
            hob_mul_scalar(scope, hob_inner(scope, net->first[i]), hob_f64(1));

        hob_assign(net->root, &net->params[i], copy);
        hob_assign(net->root, &net->m[i],
                   hob_mul_scalar(scope, copy, hob_f64(0)));
        hob_assign(net->root, &net->v[i],
                   hob_mul_scalar(scope, copy, hob_f64(0)));
    }
    st = hob_scope_error(scope, &net->error);
    hob_scope_close(scope);
    return st;
}

/* Loss and gradients, owned by SCOPE; all else ends with its own scope. */
static hob_status gradients(struct net *net, hob_scope *scope,
                            hob_tensor **out_loss, hob_tensor **out_grads)
{
    hob_scope *inside = hob_scope_child(scope);
    hob_grads *grads = NULL;
    hob_tensor *leaves[PARAMS];
    hob_tensor *h = net->x;
    hob_tensor *loss;
    hob_status st;

    for (int i = 0; i < PARAMS; i++)
        leaves[i] = hob_require_grad(
            inside, hob_to_device(inside, net->params[i], net->device));
    for (int i = 0; i < LAYERS; i++) {
        h = hob_linear(inside, h, leaves[2 * i], leaves[2 * i + 1]);
        if (i + 1 < LAYERS)
            h = hob_relu(inside, h);
    }
    loss = hob_cross_entropy(inside, h, net->y);
    st = hob_backward(inside, loss, 0, &grads, &net->error);
    for (int i = 0; i < PARAMS && !st; i++)
        st = hob_grad(scope, leaves[i], grads, &out_grads[i], &net->error);
    *out_loss = hob_keep(scope, loss);
    hob_grads_free(grads);
    hob_scope_close(inside);
    return st;
}

static hob_status update(struct net *net, hob_scope *scope, int i,
                         hob_tensor *grad)
{
    hob_tensor *param = NULL;
    hob_tensor *m = NULL;
    hob_tensor *v = NULL;
    hob_status st;

    if (!net->adam) {
        hob_tensor *down =
            hob_mul_scalar(scope, hob_move(scope, grad), hob_f64(sgd_lr));

        hob_assign(net->root, &net->params[i],
                   hob_sub(scope, hob_move(scope, net->params[i]), down));
        return HOB_OK;
    }
    st = hob_adam_step(scope, hob_move(scope, net->params[i]), grad,
                       hob_move(scope, net->m[i]), hob_move(scope, net->v[i]),
                       net->step, adam_lr, 0.9, 0.999, 1e-8, 0, &param, &m, &v);
    if (st)
        return st;
    hob_assign(net->root, &net->params[i], param);
    hob_assign(net->root, &net->m[i], m);
    hob_assign(net->root, &net->v[i], v);
    return HOB_OK;
}

static hob_status step(struct net *net)
{
    hob_scope *scope = hob_scope_child(net->root);
    hob_tensor *grads[PARAMS] = {NULL};
    hob_tensor *loss = NULL;
    hob_status st;

    net->step++;
    st = gradients(net, scope, &loss, grads);
    for (int i = 0; i < PARAMS && !st; i++)
        st = update(net, scope, i, grads[i]);
    if (!st)
        st = hob_item(loss, &net->loss, &net->error);
    if (!st)
        st = hob_scope_error(scope, &net->error);
    hob_scope_close(scope);
    return st;
}

static void steps(void *context, uint64_t repeats)
{
    struct net *net = context;

    for (uint64_t i = 0; i < repeats && !net->error.status; i++)
        (void)step(net);
}

/* Check, then measure. */
static hob_status measure(struct net *net, int adam)
{
    const char *name = adam ? "adam" : "sgd";
    struct bench_result result;
    hob_status st = net_reset(net, adam);

    for (int i = 0; i < CHECK_STEPS && !st; i++)
        st = step(net);
    if (st)
        return st;
    printf("check\tmlp %s, loss after %d steps\t%.6f\n", name, CHECK_STEPS,
           net->loss);
    result = bench_run(steps, net, 1, 41);
    bench_print(adam ? "mlp step, adam" : "mlp step, sgd", result, "us",
                hob_device_name(net->device));
    return net->error.status;
}

int main(int argc, char **argv)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    struct net net = {.step = 0};
    hob_runtime *runtime = NULL;
    const char *spec = getenv("HOB_DEVICE");
    hob_status st;

    if (argc != 2) {
        fprintf(stderr, "usage: bench_mlp FOLDER\n");
        return 2;
    }
    options.policy = HOB_POLICY_REPORT;
    st = hob_runtime_open(&options, &runtime, &net.error);
    if (!st)
        st = hob_device_open(runtime, spec && *spec ? spec : "autodiff(flex)",
                             &net.device, &net.error);
    if (st)
        goto out;
    net.root = hob_scope_open(runtime);
    st = net_make(&net, argv[1]);
    if (!st)
        st = measure(&net, 0);
    if (!st)
        st = measure(&net, 1);
    hob_scope_close(net.root);

out:
    if (st)
        fprintf(stderr, "bench_mlp: %s: %s\n", hob_status_name(st),
                net.error.message ? net.error.message : "");
    hob_error_release(&net.error);
    hob_device_unref(net.device);
    if (hob_runtime_close(runtime, &net.error))
        fprintf(stderr, "bench_mlp: %s\n", net.error.message);
    hob_error_release(&net.error);
    return st != HOB_OK;
}

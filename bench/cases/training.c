/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.c - steps of training: C23 a perceptron, the network of
 * examples/fashion, which has bytes go in, and a convolutional one; C24 a tiny
 * perceptron. The result is the loss of the first steps.
 *
 * The inputs are x, y (classes, or numbers to come near to), then a weight
 * and a bias for each layer. n: 0 what network, 1 the optimiser.
 *
 * The reference is the same in float64, so what the networks compute is
 * checked by PyTorch's losses, which must be the reference's as well.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NETWORK, OPTIMIZER };
enum network { PERCEPTRON, FASHION, CONVOLUTIONAL };
enum optimizer { SGD, ADAM };
enum { PARAMS = BENCH_INPUTS - 2, STEPS = 3 };
static const double sgd_lr = 0.05, adam_lr = 1e-3;

struct net {
    const struct bench_case *c;
    hob_runtime *runtime;
    hob_device *device;
    hob_scope *root; /* owns what lives from step to step */
    hob_tensor *x, *y;
    hob_tensor *first[PARAMS]; /* at the start */
    hob_tensor *params[PARAMS], *m[PARAMS], *v[PARAMS];
    int param_count;
    uint32_t linear_relu; /* the op nn.linear_relu, of FASHION */
    int64_t step;
    double loss;
};

/* ---- a step ---- */

static hob_tensor *block(hob_scope *scope, hob_tensor *x, hob_tensor *weight,
                         hob_tensor *bias)
{
    static const int64_t one[2] = {1, 1}, two[2] = {2, 2}, none[2] = {0, 0};
    hob_tensor *h =
        hob_conv2d(scope, x, weight, bias, one, 2, one, 2, one, 2, 1);

    h = hob_relu(scope, hob_move(scope, h));
    return hob_max_pool2d(scope, h, two, 2, two, 2, none, 2, one, 2, 0);
}

/* relu(x @ weight + bias) by the extension, as the example has it. */
static hob_tensor *linear_relu(const struct net *net, hob_scope *scope,
                               hob_tensor *x, hob_tensor *const *params)
{
    const hob_value args[] = {hob_value_tensor(x), hob_value_tensor(params[0]),
                              hob_value_tensor(params[1])};

    return hob_scope_host(scope)->call1(scope, net->linear_relu, args, 3);
}

static hob_tensor *forward(const struct net *net, hob_scope *scope,
                           hob_tensor *const *params)
{
    const int layers = net->param_count / 2;
    hob_tensor *h = net->x;
    int i = 0;

    if (net->c->n[NETWORK] == FASHION) {
        h = hob_cast(scope, h, hob_tensor_dtype(params[0]));
        h = hob_mul_scalar(scope, hob_move(scope, h), hob_f64(1.0 / 255));
        for (; i + 1 < layers; i++)
            h = linear_relu(net, scope, h, params + 2 * i);
    }

    if (net->c->n[NETWORK] == CONVOLUTIONAL) {
        int64_t flat[2];

        for (; i + 1 < layers; i++)
            h = block(scope, h, params[2 * i], params[2 * i + 1]);
        flat[0] = net->c->in[0].shape[0];
        flat[1] = hob_tensor_count(h) / flat[0];
        h = hob_reshape(scope, h, flat, 2);
    }
    for (; i < layers; i++) {
        h = hob_linear(scope, h, params[2 * i], params[2 * i + 1]);
        if (i + 1 < layers)
            h = hob_relu(scope, hob_move(scope, h));
    }
    if (net->c->in[1].dtype == HOB_DTYPE_I64)
        return hob_cross_entropy(scope, h, net->y);
    return hob_mean(scope, hob_square(scope, hob_sub(scope, h, net->y)));
}

/* Loss and gradients, owned by SCOPE; all else ends with its own scope. */
static hob_status gradients(const struct net *net, hob_scope *scope,
                            hob_tensor **out_loss, hob_tensor **out_grads,
                            hob_error *error)
{
    hob_scope *inside = hob_scope_child(scope);
    hob_grads *grads = NULL;
    hob_tensor *leaves[PARAMS];
    hob_tensor *loss;
    hob_status st;

    for (int i = 0; i < net->param_count; i++)
        leaves[i] = hob_require_grad(
            inside, hob_to_device(inside, net->params[i], net->device));
    loss = forward(net, inside, leaves);
    st = hob_backward(inside, loss, 0, &grads, error);
    for (int i = 0; i < net->param_count && !st; i++)
        st = hob_grad(scope, leaves[i], grads, &out_grads[i], error);
    *out_loss = hob_keep(scope, loss);
    hob_grads_free(grads);
    hob_scope_close(inside);
    return st;
}

static hob_status update(struct net *net, hob_scope *scope, int i,
                         hob_tensor *grad)
{
    hob_tensor *param = NULL, *m = NULL, *v = NULL;
    hob_status st;

    if (net->c->n[OPTIMIZER] == SGD) {
        hob_assign(net->root, &net->params[i],
                   hob_sgd_step(scope, hob_move(scope, net->params[i]), grad,
                                sgd_lr, 0));
        return HOB_OK;
    }
    st = hob_adam_step(scope, hob_move(scope, net->params[i]), grad,
                       hob_move(scope, net->m[i]), hob_move(scope, net->v[i]),
                       net->step, adam_lr, 0.9, 0.999, 1e-8, 0, NULL, &param,
                       &m, &v);
    if (st)
        return st;
    hob_assign(net->root, &net->params[i], param);
    hob_assign(net->root, &net->m[i], m);
    hob_assign(net->root, &net->v[i], v);
    return HOB_OK;
}

static hob_status step(struct net *net, hob_error *error)
{
    hob_scope *scope = hob_scope_child(net->root);
    hob_tensor *grads[PARAMS] = {NULL};
    hob_tensor *loss = NULL;
    hob_status st;

    net->step++;
    st = gradients(net, scope, &loss, grads, error);
    for (int i = 0; i < net->param_count && !st; i++)
        st = update(net, scope, i, grads[i]);
    if (!st)
        st = hob_item(loss, &net->loss, error);
    if (!st)
        st = hob_scope_error(scope, error);
    hob_scope_close(scope);
    return st;
}

/* ---- a network from its inputs ---- */

/* Go back to the first weights. */
static hob_status reset(struct net *net, hob_error *error)
{
    hob_scope *scope = hob_scope_child(net->root);
    hob_status st;

    net->step = 0;
    for (int i = 0; i < net->param_count; i++) {
        /* A copy, for steps may write to it in place. */
        hob_tensor *copy =
            hob_mul_scalar(scope, hob_inner(scope, net->first[i]), hob_f64(1));

        hob_assign(net->root, &net->params[i], copy);
        hob_assign(net->root, &net->m[i],
                   hob_mul_scalar(scope, copy, hob_f64(0)));
        hob_assign(net->root, &net->v[i],
                   hob_mul_scalar(scope, copy, hob_f64(0)));
    }
    st = hob_scope_error(scope, error);
    hob_scope_close(scope);
    return st;
}

static void close_net(struct bench_job *job)
{
    struct net *net = job->state;

    if (!net)
        return;
    hob_scope_close(net->root);
    hob_device_unref(net->device);
    if (hob_runtime_close(net->runtime, NULL))
        job->error.status = HOB_ERR_BUSY;
    free(net);
    job->state = NULL;
}

/* Floats become of DTYPE. */
static hob_status open_net(struct bench_job *job, const char *device,
                           hob_dtype dtype)
{
    struct net *net = calloc(1, sizeof(*net));
    hob_tensor *all[BENCH_INPUTS] = {NULL};
    const int count = bench_input_count(job->c);
    hob_status st;

    job->state = net;
    if (!net)
        return HOB_ERR_MEMORY;
    net->c = job->c;
    st = bench_open(job, device, &net->runtime, &net->device);
    if (st)
        return st;
    net->root = hob_scope_open(net->runtime);
    if (net->c->n[NETWORK] == FASHION) {
        struct hob_op_ref ref = {"nn.linear_relu", 0};

        net->linear_relu = hob_op_resolve(net->root, &ref);
        if (net->linear_relu == UINT32_MAX)
            return hob_error_set(&job->error, HOB_ERR_NOT_FOUND,
                                 "the op nn.linear_relu is not there");
    }
    for (int i = 0; i < count; i++) {
        const struct bench_input *input = &job->c->in[i];

        all[i] =
            hob_from_data(net->root, net->device, input->dtype, job->in[i].data,
                          input->shape, bench_rank(input));
        if (input->dtype == HOB_DTYPE_F32 && dtype != HOB_DTYPE_F32)
            all[i] = hob_cast(net->root, all[i], dtype);
    }
    net->x = all[0];
    net->y = all[1];
    net->param_count = count - 2;
    memcpy(net->first, all + 2, sizeof(net->first));
    return reset(net, &job->error);
}

static hob_status open_f32(struct bench_job *job)
{
    return open_net(job, "autodiff(flex)", HOB_DTYPE_F32);
}

static hob_status open_lazy(struct bench_job *job)
{
    return open_net(job, "autodiff(fusion(flex))", HOB_DTYPE_F32);
}

static hob_status losses(struct bench_job *job, double *out)
{
    struct net *net = job->state;
    hob_status st = reset(net, &job->error);

    for (int64_t i = 0; i < job->c->out_count && !st; i++) {
        st = step(net, &job->error);
        out[i] = net->loss;
    }
    return st;
}

static void steps(struct bench_job *job, uint64_t repeats)
{
    for (uint64_t i = 0; i < repeats && !job->error.status; i++)
        (void)step(job->state, &job->error);
}

static void losses_f64(const struct bench_case *c, const struct bench_array *in,
                       double *out)
{
    struct bench_job job = {.c = c, .threads = 1};

    memcpy(job.in, in, sizeof(job.in));
    if (open_net(&job, "autodiff(flex)", HOB_DTYPE_F64) || losses(&job, out))
        for (int64_t i = 0; i < c->out_count; i++)
            out[i] = INFINITY; /* equals no loss */
    close_net(&job);
    hob_error_release(&job.error);
}

/* ---- the table ---- */

#define F32 HOB_DTYPE_F32
#define I64 HOB_DTYPE_I64
#define U8 HOB_DTYPE_U8
#define TRAINED                                                                \
    .program = {.open = open_f32,                                              \
                .check = losses,                                               \
                .run = steps,                                                  \
                .close = close_net},                                           \
    .is_training = 1, .all = losses_f64, .tolerance = 1e-4, .out_count = STEPS

/* Ops that are put off beside the same at once. */
#define LAZY                                                                   \
    .program = {.open = open_lazy,                                             \
                .check = losses,                                               \
                .run = steps,                                                  \
                .close = close_net},                                           \
    .ways = {{.who = "op by op",                                               \
              .open = open_f32,                                                \
              .check = losses,                                                 \
              .run = steps,                                                    \
              .close = close_net,                                              \
              .is_base = 1}},                                                  \
    .is_training = 1, .all = losses_f64, .tolerance = 1e-4, .out_count = STEPS

#define PERCEPTRON_INPUTS(batch)                                               \
    .in = {{F32, {batch, 784}, 0, 1},          {I64, {batch}, 0, 10},          \
           {F32, {784, 512}, -0.0357, 0.0357}, {F32, {512}, -0.0357, 0.0357},  \
           {F32, {512, 256}, -0.0442, 0.0442}, {F32, {256}, -0.0442, 0.0442},  \
           {F32, {256, 10}, -0.0625, 0.0625},  {F32, {10}, -0.0625, 0.0625}}
/* The network of examples/fashion. With these weights no unit is so near to 0
 * that f32 has it on the other side, of which Adam would make another loss. */
#define FASHION_PARAMS (784.0 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10)
#define FASHION_CASE(size, optimizer, optimizer_id, label, ...)                \
    {                                                                          \
        .id = "C23", .name = "Fashion, batch " #size ", " label ", fusion",    \
        .in =                                                                  \
            {{U8, {size, 784}, 0, 256},         {I64, {size}, 0, 10},          \
             {F32, {784, 256}, -0.085, 0.085},  {F32, {256}, -0.085, 0.085},   \
             {F32, {256, 128}, -0.15, 0.15},    {F32, {128}, -0.15, 0.15},     \
             {F32, {128, 10}, -0.2165, 0.2165}, {F32, {10}, -0.2165, 0.2165}}, \
        .n = {FASHION, optimizer_id}, LAZY,                                    \
        .torch_setup = "net = lambda: nn.perceptron(a, b, [c, d, e, f, g, h]"  \
                       ", '" optimizer "')\nstep = net()",                     \
        .torch = "step()", .torch_check = "nn.losses(net(), 3)",               \
        .flops = 2.0 * (size) *                                                \
                 (3 * (784.0 * 256 + 256 * 128 + 128 * 10) - 784 * 256),       \
        .target = {.peer = 1.2, .base = 1}, __VA_ARGS__                        \
    }
#define FASHION_CASES(size)                                                    \
    FASHION_CASE(size, "sgd", SGD, "SGD", .roots = 0),                         \
        FASHION_CASE(size, "adam", ADAM, "Adam", .roots = FASHION_PARAMS)

/* The first layer has no gradient to its input. */
#define PERCEPTRON_FLOPS(batch)                                                \
    .flops =                                                                   \
        2.0 * (batch) * (3 * (784.0 * 512 + 512 * 256 + 256 * 10) - 784 * 512)

#define PERCEPTRON_PARAMS (784.0 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10)

#define CONVOLUTIONAL_INPUTS(batch, size, channels)                            \
    .in = {{F32, {batch, 1, size, size}, 0, 1},                                \
           {I64, {batch}, 0, 10},                                              \
           {F32, {channels, 1, 3, 3}, -0.33, 0.33},                            \
           {F32, {channels}, -0.33, 0.33},                                     \
           {F32, {2 * (channels), channels, 3, 3}, -0.083, 0.083},             \
           {F32, {2 * (channels)}, -0.083, 0.083},                             \
           {F32,                                                               \
            {2 * (channels) * ((size) / 4) * ((size) / 4), 10},                \
            -0.025,                                                            \
            0.025},                                                            \
           {F32, {10}, -0.025, 0.025}},                                        \
    .n = {CONVOLUTIONAL, SGD},                                                 \
    .flops = 2.0 * (batch) * (size) * (size) * (channels)*9 *                  \
             (2 + 3 * (channels) / 2.0)

#define TORCH_NET(kind, optimizer)                                             \
    .torch_setup =                                                             \
        "net = lambda: nn." kind "(a, b, [c, d, e, f, g, h]" optimizer ")\n"   \
        "step = net()",                                                        \
    .torch = "step()", .torch_check = "nn.losses(net(), 3)"

static const struct bench_case cases[] = {
    {.id = "C23",
     .name = "784-512-256-10, batch 256, SGD",
     PERCEPTRON_INPUTS(256),
     .n = {PERCEPTRON, SGD},
     TRAINED,
     TORCH_NET("perceptron", ", 'sgd'"),
     PERCEPTRON_FLOPS(256),
     .target = {.peer = 1.2}},
    {.id = "C23",
     .name = "784-512-256-10, batch 256, Adam",
     PERCEPTRON_INPUTS(256),
     .n = {PERCEPTRON, ADAM},
     TRAINED,
     TORCH_NET("perceptron", ", 'adam'"),
     PERCEPTRON_FLOPS(256),
     .roots = PERCEPTRON_PARAMS,
     .target = {.peer = 1.2}},
    {.id = "C23",
     .name = "784-512-256-10, batch 256, Adam, fusion",
     PERCEPTRON_INPUTS(256),
     .n = {PERCEPTRON, ADAM},
     LAZY,
     PERCEPTRON_FLOPS(256),
     .roots = PERCEPTRON_PARAMS,
     .target = {.base = 1}},
    {.id = "C23",
     .name = "784-512-256-10, batch 32, SGD, fusion",
     PERCEPTRON_INPUTS(32),
     .n = {PERCEPTRON, SGD},
     LAZY,
     PERCEPTRON_FLOPS(32),
     .target = {.base = 1}},
    {.id = "C23",
     .name = "784-512-256-10, batch 2, Adam, fusion",
     PERCEPTRON_INPUTS(2),
     .n = {PERCEPTRON, ADAM},
     LAZY,
     .is_smoke_only = 1},
    FASHION_CASES(2),
    FASHION_CASES(64),
    FASHION_CASES(256),
    {.id = "C23",
     .name = "convolutional, 28 x 28, batch 64, SGD, fusion",
     CONVOLUTIONAL_INPUTS(64, 28, 16),
     LAZY,
     .target = {.base = 1}},
    {.id = "C23",
     .name = "784-512-256-10, batch 2, Adam",
     PERCEPTRON_INPUTS(2),
     .n = {PERCEPTRON, ADAM},
     TRAINED,
     .is_smoke_only = 1},
    {.id = "C23",
     .name = "convolutional, 28 x 28, batch 64, SGD",
     CONVOLUTIONAL_INPUTS(64, 28, 16),
     TRAINED,
     TORCH_NET("convolutional", ""),
     .target = {.peer = 1.5}},
    {.id = "C23",
     .name = "convolutional, 28 x 28, batch 256, SGD",
     CONVOLUTIONAL_INPUTS(256, 28, 16),
     TRAINED,
     TORCH_NET("convolutional", ""),
     .target = {.peer = 1.5}},
    {.id = "C23",
     .name = "convolutional, 8 x 8, batch 3, SGD",
     CONVOLUTIONAL_INPUTS(3, 8, 4),
     TRAINED,
     .is_smoke_only = 1},

    {.id = "C24",
     .name = "4-8-1, batch 4, SGD",
     .in = {{F32, {4, 4}, 0, 0},
            {F32, {4, 1}, 0, 0},
            {F32, {4, 8}, -0.5, 0.5},
            {F32, {8}, -0.5, 0.5},
            {F32, {8, 1}, -0.35, 0.35},
            {F32, {1}, -0.35, 0.35}},
     .n = {PERCEPTRON, SGD},
     TRAINED,
     .torch_setup = "net = lambda: nn.perceptron(a, b, [c, d, e, f], 'sgd')\n"
                    "step = net()",
     .torch = "step()",
     .torch_check = "nn.losses(net(), 3)",
     .is_serial = 1,
     .target = {.peer = 12, .ns = 10000}},
};

const struct bench_family bench_training = {cases,
                                            sizeof(cases) / sizeof(cases[0])};

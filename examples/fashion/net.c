/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include "linear_relu.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const int64_t widths[NET_LAYERS + 1] = {NET_INPUT, 256, 128,
                                               NET_CLASSES};

static const char *const names[NET_PARAMS] = {"layer1.weight", "layer1.bias",
                                              "layer2.weight", "layer2.bias",
                                              "layer3.weight", "layer3.bias"};

/* The shape of parameter INDEX; returns its rank. */
static int32_t param_shape(int index, int64_t out_shape[2])
{
    int layer = index / 2;

    if (index % 2) {
        out_shape[0] = widths[layer + 1];
        return 1;
    }
    out_shape[0] = widths[layer];
    out_shape[1] = widths[layer + 1];
    return 2;
}

hob_status net_init(struct net *net, hob_scope *root, hob_device *device,
                    uint64_t seed, hob_error *error)
{
    hob_status st = HOB_OK;

    memset(net, 0, sizeof(*net));
    net->device = device;
    hob_seed(root, seed);
    for (int i = 0; !st && i < NET_PARAMS; i++) {
        hob_scope *scope = hob_scope_child(root);
        int64_t shape[2];
        uint32_t rank = (uint32_t)param_shape(i, shape);
        /* He et al. 2015, eq. 10: relu halves the variance. */
        double std = i % 2 ? 0 : sqrt(2.0 / (double)shape[0]);
        hob_tensor *value =
            i % 2 ? hob_zeros(scope, shape, rank, device, HOB_DTYPE_F32)
                  : hob_random_normal(scope, shape, rank, 0, std, device,
                                      HOB_DTYPE_F32);
        hob_tensor *zero;

        hob_assign(root, &net->params[i], hob_inner(scope, value));
        zero = hob_mul_scalar(scope, net->params[i], hob_f64(0));
        hob_assign(root, &net->m[i], zero);
        zero = hob_mul_scalar(scope, net->params[i], hob_f64(0));
        hob_assign(root, &net->v[i], zero);
        st = hob_scope_error(scope, error);
        hob_scope_close(scope);
    }
    return st;
}

hob_tensor *net_forward(hob_scope *scope, hob_tensor *const *params,
                        hob_tensor *images)
{
    /* Pixels stay bytes until here: a quarter of the memory to gather. */
    hob_tensor *x = hob_cast(scope, images, HOB_DTYPE_F32);

    x = hob_mul_scalar(scope, hob_move(scope, x), hob_f64(1.0 / 255));
    x = nn_linear_relu(scope, x, params[0], params[1]);
    x = nn_linear_relu(scope, x, params[2], params[3]);
    return hob_linear(scope, x, params[4], params[5]);
}

/* Forward and backward in a scope of their own, so that nothing but the loss
 * and the gradients, owned by SCOPE, is left of them. */
static hob_tensor *gradients(struct net *net, hob_scope *scope,
                             hob_tensor *images, hob_tensor *labels,
                             hob_tensor **out_grads)
{
    hob_scope *inside = hob_scope_child(scope);
    hob_grads *grads = NULL;
    hob_tensor *leaves[NET_PARAMS];
    hob_tensor *loss;
    hob_error error = HOB_ERROR_INIT;

    for (int i = 0; i < NET_PARAMS; i++)
        leaves[i] = hob_require_grad(
            inside, hob_to_device(inside, net->params[i], net->device));
    loss =
        hob_cross_entropy(inside, net_forward(inside, leaves, images), labels);
    if (hob_backward(inside, loss, 0, &grads, &error))
        goto out;
    for (int i = 0; i < NET_PARAMS; i++)
        if (hob_grad(scope, leaves[i], grads, &out_grads[i], &error))
            goto out;
    loss = hob_keep(scope, hob_inner(inside, loss));

out:
    if (error.status)
        loss = hob_scope_host(scope)->scope_fail(scope, error.status, "%s",
                                                 error.message);
    hob_error_release(&error);
    hob_grads_free(grads);
    hob_scope_close(inside);
    return loss;
}

hob_tensor *net_train(struct net *net, hob_scope *root, hob_scope *scope,
                      hob_tensor *images, hob_tensor *labels, double lr)
{
    hob_tensor *grads[NET_PARAMS] = {NULL};
    hob_tensor *loss = gradients(net, scope, images, labels, grads);

    net->step++;
    for (int i = 0; i < NET_PARAMS; i++) {
        hob_tensor *param, *m, *v;

        if (!grads[i])
            break;
        /* The last use of the old values: Adam may overwrite them. */
        if (hob_adam_step(scope, hob_move(scope, net->params[i]), grads[i],
                          hob_move(scope, net->m[i]),
                          hob_move(scope, net->v[i]), net->step, lr, 0.9, 0.999,
                          1e-8, 0, NULL, &param, &m, &v))
            break;
        hob_assign(root, &net->params[i], param);
        hob_assign(root, &net->m[i], m);
        hob_assign(root, &net->v[i], v);
    }
    return loss;
}

hob_status net_save(const struct net *net, const char *path, double accuracy,
                    hob_error *error)
{
    struct hob_named_tensor tensors[NET_PARAMS];
    char accuracy_text[32];
    const char *metadata[] = {"network", "fashion 784-256-128-10",
                              "test_accuracy", accuracy_text};

    snprintf(accuracy_text, sizeof(accuracy_text), "%.4f", accuracy);
    for (int i = 0; i < NET_PARAMS; i++) {
        tensors[i].name = names[i];
        tensors[i].tensor = net->params[i];
    }
    return hob_safetensors_save(path, tensors, NET_PARAMS, metadata, 2, error);
}

/* A file of another network has tensors of the same names, perhaps. */
static hob_status check_param(int index, hob_tensor *tensor, const char *path,
                              hob_error *error)
{
    int64_t shape[2];
    int32_t rank = param_shape(index, shape);

    if (hob_tensor_dtype(tensor) == HOB_DTYPE_F32 &&
        hob_tensor_rank(tensor) == rank &&
        memcmp(hob_tensor_shape(tensor), shape, (size_t)rank * 8) == 0)
        return HOB_OK;
    return hob_error_set(error, HOB_ERR_FORMAT,
                         "%s: tensor \"%s\" has not the dtype or shape of "
                         "this network; train again to write a new file",
                         path, names[index]);
}

hob_status net_load(struct net *net, hob_scope *root, hob_device *device,
                    const char *path, hob_error *error)
{
    hob_safetensors *file = NULL;
    hob_status st;

    memset(net, 0, sizeof(*net));
    net->device = device;
    st = hob_safetensors_open(path, &file, error);
    for (int i = 0; !st && i < NET_PARAMS; i++) {
        st = hob_safetensors_read(file, root, device, names[i], &net->params[i],
                                  error);
        if (!st)
            st = check_param(i, net->params[i], path, error);
    }
    hob_safetensors_close(file);
    return st;
}

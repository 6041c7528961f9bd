/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.c - rules of layer_norm, rms_norm and batch_norm.
 *
 * The normalised x is computed again: saving it would cost as much memory as
 * x, which is kept in any case. A second derivative goes through the bodies of
 * the backward ops.
 */
#include "rules.h"

/* 1 / sqrt(variance + epsilon) */
static hob_tensor *inverse_deviation(hob_scope *scope, hob_tensor *variance,
                                     double epsilon)
{
    return hob_recip(scope, hob_sqrt(scope, hob_add_scalar(scope, variance,
                                                           hob_f64(epsilon))));
}

static hob_status layer_norm(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *d_x, *d_weight, *d_bias;
    hob_status st;

    call->out_grads[2] = call->grads[0]; /* is summed to its shape */
    if (!call->needs_grad[0] && !call->needs_grad[1])
        return HOB_OK;
    st = hob_layer_norm_backward(scope, call->inputs[0], call->inputs[1],
                                 call->grads[0], call->args[3].u.f64, &d_x,
                                 &d_weight, &d_bias);
    if (st)
        return st;
    call->out_grads[0] = d_x;
    if (call->needs_grad[1])
        call->out_grads[1] = d_weight;
    if (call->needs_grad[2])
        call->out_grads[2] = d_bias;
    return HOB_OK;
}

static hob_status rms_norm(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *d_x, *d_weight;
    hob_status st = hob_rms_norm_backward(scope, call->inputs[0],
                                          call->inputs[1], call->grads[0],
                                          call->args[2].u.f64, &d_x, &d_weight);

    if (st)
        return st;
    call->out_grads[0] = d_x;
    if (call->needs_grad[1])
        call->out_grads[1] = d_weight;
    return HOB_OK;
}

/* TENSOR [c] to broadcast along dimension 1 of RANK: [c, 1, ..] */
static hob_tensor *along_channels(hob_scope *scope, hob_tensor *tensor,
                                  const struct hob_meta *x)
{
    int64_t shape[HOB_MAX_RANK];

    for (uint32_t i = 0; i < x->rank; i++)
        shape[i] = i == 1 ? x->shape[1] : 1;
    return hob_reshape(scope, tensor, shape, x->rank);
}

/* TENSOR of x's shape summed over all but dimension 1: [c] */
static hob_tensor *sum_to_channels(hob_scope *scope, hob_tensor *tensor,
                                   const struct hob_meta *x)
{
    int64_t planes[] = {x->shape[0], x->shape[1], 1};

    for (uint32_t i = 2; i < x->rank; i++)
        planes[2] *= x->shape[i];
    tensor = hob_sum_dim(scope, hob_reshape(scope, tensor, planes, 3), 2);
    return hob_reshape(scope, hob_sum_dim(scope, tensor, 0), &planes[1], 1);
}

/*
 * mean and variance are inputs of their own. With r = 1 / sqrt(variance +
 * epsilon) and sums over all but the channels:
 *     dx = grad weight r           dmean = -sum(dx)
 *     dvariance = -1/2 weight r^3 sum(grad (x - mean))
 *     dweight = r sum(grad (x - mean))       dbias = sum(grad)
 */
static hob_status batch_norm(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *x = &call->input_metas[0];
    hob_tensor *weight = call->inputs[1];
    hob_tensor *grad = call->grads[0];
    hob_tensor *inverse =
        inverse_deviation(scope, call->inputs[4], call->args[5].u.f64);
    hob_tensor *scale = weight ? hob_mul(scope, weight, inverse) : inverse;
    hob_tensor *total = NULL;
    hob_tensor *moment = NULL;

    if (call->needs_grad[0])
        call->out_grads[0] =
            hob_mul(scope, grad, along_channels(scope, scale, x));
    if (call->needs_grad[2] || call->needs_grad[3])
        total = sum_to_channels(scope, grad, x);
    if (call->needs_grad[1] || call->needs_grad[4]) {
        hob_tensor *centred = hob_sub(
            scope, call->inputs[0], along_channels(scope, call->inputs[3], x));

        moment = sum_to_channels(scope, hob_mul(scope, grad, centred), x);
    }
    if (call->needs_grad[1])
        call->out_grads[1] = hob_mul(scope, moment, inverse);
    if (call->needs_grad[2])
        call->out_grads[2] = total;
    if (call->needs_grad[3])
        call->out_grads[3] = hob_neg(scope, hob_mul(scope, total, scale));
    if (call->needs_grad[4])
        call->out_grads[4] =
            hob_mul_scalar(scope,
                           hob_mul(scope, hob_mul(scope, moment, scale),
                                   hob_square(scope, inverse)),
                           hob_f64(-0.5));
    return HOB_OK;
}

/* x for x and weight, weight for x alone; of batch_norm: x and mean for weight
 * and variance, weight for what is scaled, variance for all but bias. */
static const uint32_t layer_needs[HOB_MAX_PARAMS] = {3, 1, 0};
static const uint32_t batch_needs[HOB_MAX_PARAMS] = {
    1 << 1 | 1 << 4, 1 << 0 | 1 << 3 | 1 << 4, 1 << 4, 1 << 1 | 1 << 4,
    1 << 0 | 1 << 1 | 1 << 3 | 1 << 4};

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_LAYER_NORM,
     {HEAD, .save_args = 3, .save_if = layer_needs, .backward = layer_norm}},
    {HOB_OP_RMS_NORM,
     {HEAD, .save_args = 3, .save_if = layer_needs, .backward = rms_norm}},
    {HOB_OP_BATCH_NORM,
     {HEAD, .save_args = 27, .save_if = batch_needs, .backward = batch_norm}},
};

#undef HEAD

const struct ad_family ad_rules_norm = {rules,
                                        sizeof(rules) / sizeof(rules[0])};

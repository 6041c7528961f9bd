/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.c - rules of layer_norm, rms_norm, group_norm and batch_norm.
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

/* Channels and places of a group are one row of [n * groups, ..], whose
 * gradient is layer_norm's. */
static hob_status group_norm(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *x = &call->input_metas[0];
    const double epsilon = call->args[4].u.f64;
    const int64_t groups = x->shape[1] ? call->args[1].u.i64 : 1;
    hob_tensor *grad = call->grads[0];
    hob_tensor *part, *d_x, *d_weight, *d_bias;
    int64_t rows[] = {x->shape[0] * groups, x->shape[1] / groups};
    hob_status st;

    if (call->needs_grad[2])
        call->out_grads[2] = sum_to_channels(scope, grad, x);
    if (call->needs_grad[1]) {
        part =
            hob_group_norm(scope, call->inputs[0], groups, NULL, NULL, epsilon);
        call->out_grads[1] =
            sum_to_channels(scope, hob_mul(scope, grad, part), x);
    }
    if (!call->needs_grad[0])
        return HOB_OK;
    for (uint32_t i = 2; i < x->rank; i++)
        rows[1] *= x->shape[i];
    part = call->inputs[1];
    if (part)
        grad = hob_mul(scope, grad, along_channels(scope, part, x));
    st = hob_layer_norm_backward(
        scope, hob_reshape(scope, call->inputs[0], rows, 2), NULL,
        hob_reshape(scope, grad, rows, 2), epsilon, &d_x, &d_weight, &d_bias);
    if (st)
        return st;
    call->out_grads[0] = hob_reshape(scope, d_x, x->shape, x->rank);
    return HOB_OK;
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

    if (call->needs_grad[1] || call->needs_grad[4]) {
        hob_tensor *d_x;
        hob_status st =
            hob_batch_norm_backward(scope, call->inputs[0], call->inputs[3],
                                    scale, grad, &d_x, &total, &moment);

        if (st)
            return st;
        if (call->needs_grad[0])
            call->out_grads[0] = d_x;
    } else {
        if (call->needs_grad[0])
            call->out_grads[0] =
                hob_mul(scope, grad, along_channels(scope, scale, x));
        if (call->needs_grad[2] || call->needs_grad[3])
            total = sum_to_channels(scope, grad, x);
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
static const uint32_t group_needs[HOB_MAX_PARAMS] = {1 << 0 | 1 << 2, 0,
                                                     1 << 0};
static const uint32_t batch_needs[HOB_MAX_PARAMS] = {
    1 << 1 | 1 << 4, 1 << 0 | 1 << 3 | 1 << 4, 1 << 4, 1 << 1 | 1 << 4,
    1 << 0 | 1 << 1 | 1 << 3 | 1 << 4};

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_LAYER_NORM,
     {HEAD, .save_args = 3, .save_if = layer_needs, .backward = layer_norm}},
    {HOB_OP_RMS_NORM,
     {HEAD, .save_args = 3, .save_if = layer_needs, .backward = rms_norm}},
    {HOB_OP_GROUP_NORM,
     {HEAD, .save_args = 5, .save_if = group_needs, .backward = group_norm}},
    {HOB_OP_BATCH_NORM,
     {HEAD, .save_args = 27, .save_if = batch_needs, .backward = batch_norm}},
};

#undef HEAD

const struct ad_family ad_rules_norm = {rules,
                                        sizeof(rules) / sizeof(rules[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - rules of convolution and pooling.
 *
 * conv2d is linear in x and in weight, so the gradients of its backward ops
 * are conv2d and its other backward op: all orders of derivatives exist.
 */
#include "rules.h"

/* stride, padding, dilation and groups: four arguments in this order. */
struct geometry {
    const hob_value *stride;
    const hob_value *padding;
    const hob_value *dilation;
    int64_t groups;
};

static struct geometry geometry_at(const hob_value *args)
{
    struct geometry geometry = {args, args + 1, args + 2, args[3].u.i64};

    return geometry;
}

static hob_tensor *forward(hob_scope *scope, hob_tensor *x, hob_tensor *weight,
                           struct geometry g)
{
    return hob_conv2d(scope, x, weight, NULL, g.stride->u.i64s, g.stride->count,
                      g.padding->u.i64s, g.padding->count, g.dilation->u.i64s,
                      g.dilation->count, g.groups);
}

static hob_tensor *to_x(hob_scope *scope, const struct hob_meta *x,
                        hob_tensor *weight, hob_tensor *grad, struct geometry g)
{
    return hob_conv2d_x_backward(
        scope, x->shape, x->rank, weight, grad, g.stride->u.i64s,
        g.stride->count, g.padding->u.i64s, g.padding->count,
        g.dilation->u.i64s, g.dilation->count, g.groups);
}

static hob_tensor *to_weight(hob_scope *scope, hob_tensor *x,
                             const struct hob_meta *weight, hob_tensor *grad,
                             struct geometry g)
{
    return hob_conv2d_weight_backward(
        scope, x, weight->shape, weight->rank, grad, g.stride->u.i64s,
        g.stride->count, g.padding->u.i64s, g.padding->count,
        g.dilation->u.i64s, g.dilation->count, g.groups);
}

/* [n, c, h, w] summed to [c] */
static hob_tensor *sum_to_channels(hob_scope *scope, hob_tensor *grad,
                                   const struct hob_meta *meta)
{
    int64_t planes[] = {meta->shape[0], meta->shape[1],
                        meta->shape[2] * meta->shape[3]};

    grad = hob_sum_dim(scope, hob_reshape(scope, grad, planes, 3), 2);
    return hob_reshape(scope, hob_sum_dim(scope, grad, 0), &planes[1], 1);
}

static hob_status conv2d(hob_scope *scope, const struct hob_grad_call *call)
{
    struct geometry geometry = geometry_at(call->args + 3);
    hob_tensor *grad = call->grads[0];

    if (call->needs_grad[0])
        call->out_grads[0] =
            to_x(scope, &call->input_metas[0], call->inputs[1], grad, geometry);
    if (call->needs_grad[1])
        call->out_grads[1] = to_weight(scope, call->inputs[0],
                                       &call->input_metas[1], grad, geometry);
    if (call->needs_grad[2])
        call->out_grads[2] = sum_to_channels(scope, grad, &call->ret_metas[0]);
    return HOB_OK;
}

/* Inputs: weight, grad. The gradient that comes in has x's shape. */
static hob_status conv2d_x(hob_scope *scope, const struct hob_grad_call *call)
{
    struct geometry geometry = geometry_at(call->args + 3);
    hob_tensor *x = call->grads[0];

    if (call->needs_grad[0])
        call->out_grads[0] = to_weight(scope, x, &call->input_metas[0],
                                       call->inputs[1], geometry);
    if (call->needs_grad[1])
        call->out_grads[1] = forward(scope, x, call->inputs[0], geometry);
    return HOB_OK;
}

/* Inputs: x, grad. The gradient that comes in has weight's shape. */
static hob_status conv2d_weight(hob_scope *scope,
                                const struct hob_grad_call *call)
{
    struct geometry geometry = geometry_at(call->args + 3);
    hob_tensor *weight = call->grads[0];

    if (call->needs_grad[0])
        call->out_grads[0] = to_x(scope, &call->input_metas[0], weight,
                                  call->inputs[1], geometry);
    if (call->needs_grad[1])
        call->out_grads[1] = forward(scope, call->inputs[0], weight, geometry);
    return HOB_OK;
}

/* ---- pools ---- */

static hob_tensor *pool_back(hob_scope *scope, const struct hob_meta *x,
                             hob_tensor *grad, hob_tensor *indices)
{
    return hob_max_pool2d_backward(scope, x->shape, x->rank, grad, indices);
}

/* Pool again for the places of the maxima. */
static hob_status max_pool2d(hob_scope *scope, const struct hob_grad_call *call)
{
    const hob_value *args = call->args;
    hob_tensor *values = NULL;
    hob_tensor *indices = NULL;
    hob_status status = hob_max_pool2d_with_indices(
        scope, call->inputs[0], args[1].u.i64s, args[1].count, args[2].u.i64s,
        args[2].count, args[3].u.i64s, args[3].count, args[4].u.i64s,
        args[4].count, args[5].u.i64 != 0, HOB_DTYPE_NONE, &values, &indices);

    if (!status)
        call->out_grads[0] =
            pool_back(scope, &call->input_metas[0], call->grads[0], indices);
    return status;
}

static hob_status max_pool2d_with_indices(hob_scope *scope,
                                          const struct hob_grad_call *call)
{
    call->out_grads[0] =
        pool_back(scope, &call->input_metas[0], call->grads[0], call->rets[1]);
    return HOB_OK;
}

/* Inputs: grad, indices. Read the planes where they were written. */
static hob_status max_pool2d_backward(hob_scope *scope,
                                      const struct hob_grad_call *call)
{
    const struct hob_meta *x = &call->ret_metas[0];
    const struct hob_meta *small = &call->input_metas[0];
    int64_t planes[] = {x->shape[0], x->shape[1], x->shape[2] * x->shape[3]};
    int64_t places[] = {small->shape[0], small->shape[1],
                        small->shape[2] * small->shape[3]};
    hob_tensor *indices = hob_reshape(scope, call->inputs[1], places, 3);
    hob_tensor *read = hob_gather(
        scope, hob_reshape(scope, call->grads[0], planes, 3), indices, 2);

    call->out_grads[0] = ad_reshape(scope, read, small);
    return HOB_OK;
}

static hob_status avg_pool2d(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *x = &call->input_metas[0];
    const hob_value *args = call->args;

    call->out_grads[0] = hob_avg_pool2d_backward(
        scope, x->shape, x->rank, call->grads[0], args[1].u.i64s, args[1].count,
        args[2].u.i64s, args[2].count, args[3].u.i64s, args[3].count,
        args[4].u.i64 != 0, args[5].u.i64 != 0);
    return HOB_OK;
}

static hob_status avg_pool2d_backward(hob_scope *scope,
                                      const struct hob_grad_call *call)
{
    const hob_value *args = call->args + 1; /* behind x_shape */

    call->out_grads[0] =
        hob_avg_pool2d(scope, call->grads[0], args[1].u.i64s, args[1].count,
                       args[2].u.i64s, args[2].count, args[3].u.i64s,
                       args[3].count, args[4].u.i64 != 0, args[5].u.i64 != 0);
    return HOB_OK;
}

/* By parameter: of conv2d, of conv2d_x_backward (x_shape is parameter 0) and
 * of conv2d_weight_backward (weight_shape is parameter 1). */
static const uint32_t conv2d_needs[HOB_MAX_PARAMS] = {2, 1};
static const uint32_t conv2d_x_needs[HOB_MAX_PARAMS] = {0, 4, 2};
static const uint32_t conv2d_weight_needs[HOB_MAX_PARAMS] = {4, 0, 1};

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_CONV2D,
     {HEAD, .save_args = 3, .save_if = conv2d_needs, .backward = conv2d}},
    {HOB_OP_CONV2D_X_BACKWARD,
     {HEAD, .save_args = 6, .save_if = conv2d_x_needs, .backward = conv2d_x}},
    {HOB_OP_CONV2D_WEIGHT_BACKWARD,
     {HEAD, .save_args = 5, .save_if = conv2d_weight_needs,
      .backward = conv2d_weight}},
    {HOB_OP_MAX_POOL2D, {HEAD, .save_args = 1, .backward = max_pool2d}},
    {HOB_OP_MAX_POOL2D_WITH_INDICES,
     {HEAD, .save_rets = 2, .backward = max_pool2d_with_indices}},
    {HOB_OP_MAX_POOL2D_BACKWARD,
     {HEAD, .save_args = 4, .backward = max_pool2d_backward}},
    {HOB_OP_AVG_POOL2D, {HEAD, .backward = avg_pool2d}},
    {HOB_OP_AVG_POOL2D_BACKWARD, {HEAD, .backward = avg_pool2d_backward}},
};

#undef HEAD

const struct ad_family ad_rules_conv = {rules,
                                        sizeof(rules) / sizeof(rules[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - rules of convolution and pooling.
 *
 * conv2d is linear in x and in weight, so the gradients of its backward ops
 * are conv2d and its other backward op: all orders of derivatives exist.
 * conv3d's gradients are the transposed convolution and conv2d's, with the taps
 * along the depth as channels.
 */
#include "rules.h"

#include <hob/ext/window.h>

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

/* [n, c, ..] summed to [c] */
static hob_tensor *sum_to_channels(hob_scope *scope, hob_tensor *grad,
                                   const struct hob_meta *meta)
{
    int64_t planes[] = {meta->shape[0], meta->shape[1], 1};

    for (uint32_t i = 2; i < meta->rank; i++)
        planes[2] *= meta->shape[i];
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

/* ---- conv3d ---- */

/* The lists of a geometry of three dimensions, complete. */
struct volume {
    int64_t stride[3], padding[3], dilation[3];
};

static int64_t number(const hob_value *list, uint32_t i, int64_t fallback)
{
    return !list->count ? fallback : list->u.i64s[list->count == 1 ? 0 : i];
}

static struct volume volume_of(struct geometry g)
{
    struct volume v;

    for (uint32_t i = 0; i < 3; i++) {
        v.stride[i] = number(g.stride, i, 1);
        v.padding[i] = number(g.padding, i, 0);
        v.dilation[i] = number(g.dilation, i, 1);
    }
    return v;
}

/* Elements at the end that no window reached are output padding. */
static hob_tensor *volume_to_x(hob_scope *scope,
                               const struct hob_grad_call *call,
                               const struct volume *v, int64_t groups)
{
    const int64_t *x = call->input_metas[0].shape;
    const int64_t *weight = call->input_metas[1].shape;
    const int64_t *y = call->ret_metas[0].shape;
    int64_t rest[3];

    for (int i = 0; i < 3; i++)
        rest[i] = x[2 + i] + 2 * v->padding[i] - (y[2 + i] - 1) * v->stride[i] -
                  hob_window_extent(weight[2 + i], v->dilation[i]);
    return hob_conv_transpose3d(scope, call->grads[0], call->inputs[1], NULL,
                                v->stride, 3, v->padding, 3, rest, 3,
                                v->dilation, 3, groups);
}

/* What taps along the depth meet: X [n, c, d, h, w] as planes [n * windows,
 * c * taps, h, w]. */
static hob_tensor *depth_as_channels(hob_scope *scope, hob_tensor *x,
                                     const struct volume *v,
                                     const int64_t *sizes, int64_t taps,
                                     int64_t windows)
{
    static const int64_t axes[6] = {0, 2, 1, 5, 3, 4};
    const int64_t padding[6] = {0, 0, 0, 0, v->padding[0], v->padding[0]};
    const int64_t starts[6] = {0}, steps[6] = {1, 1, 1, 1, 1, v->dilation[0]};
    const int64_t ends[6] = {INT64_MAX, INT64_MAX, INT64_MAX,
                             INT64_MAX, INT64_MAX, INT64_MAX};
    const int64_t planes[4] = {sizes[0] * windows, sizes[1] * taps, sizes[3],
                               sizes[4]};

    x = hob_pad(scope, x, padding, 6, HOB_PAD_MODE_CONSTANT, hob_i64(0));
    x = hob_unfold(scope, x, 2, hob_window_extent(taps, v->dilation[0]),
                   v->stride[0]);
    x = hob_slice(scope, x, starts, 6, ends, 6, steps, 6);
    return hob_reshape(scope, hob_permute(scope, x, axes, 6), planes, 4);
}

static hob_tensor *volume_to_weight(hob_scope *scope,
                                    const struct hob_grad_call *call,
                                    const struct volume *v, int64_t groups)
{
    const int64_t *weight = call->input_metas[1].shape;
    const int64_t *y = call->ret_metas[0].shape;
    const int64_t flat[4] = {weight[0], weight[1] * weight[2], weight[3],
                             weight[4]};
    const int64_t planes[4] = {y[0] * y[2], y[1], y[3], y[4]};
    hob_tensor *x = depth_as_channels(
        scope, call->inputs[0], v, call->input_metas[0].shape, weight[2], y[2]);
    hob_tensor *grad = hob_reshape(
        scope, hob_swap_dims(scope, call->grads[0], 1, 2), planes, 4);

    return ad_reshape(scope,
                      hob_conv2d_weight_backward(
                          scope, x, flat, 4, grad, v->stride + 1, 2,
                          v->padding + 1, 2, v->dilation + 1, 2, groups),
                      &call->input_metas[1]);
}

static hob_status conv3d(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct geometry g = geometry_at(call->args + 3);
    const struct volume v = volume_of(g);

    if (call->needs_grad[0])
        call->out_grads[0] = volume_to_x(scope, call, &v, g.groups);
    if (call->needs_grad[1])
        call->out_grads[1] = volume_to_weight(scope, call, &v, g.groups);
    if (call->needs_grad[2])
        call->out_grads[2] =
            sum_to_channels(scope, call->grads[0], &call->ret_metas[0]);
    return HOB_OK;
}

/* ---- conv2d's gradients ---- */

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

static hob_status max_pool2d(hob_scope *scope, const struct hob_grad_call *call)
{
    const hob_value *args = call->args;

    call->out_grads[0] = hob_max_pool2d_x_backward(
        scope, call->inputs[0], call->grads[0], args[1].u.i64s, args[1].count,
        args[2].u.i64s, args[2].count, args[3].u.i64s, args[3].count,
        args[4].u.i64s, args[4].count, args[5].u.i64 != 0);
    return HOB_OK;
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

/* By parameter: of conv2d and conv3d, of conv2d_x_backward (x_shape is
 * parameter 0) and of conv2d_weight_backward (weight_shape is parameter 1). */
static const uint32_t conv2d_needs[HOB_MAX_PARAMS] = {2, 1};
static const uint32_t conv2d_x_needs[HOB_MAX_PARAMS] = {0, 4, 2};
static const uint32_t conv2d_weight_needs[HOB_MAX_PARAMS] = {4, 0, 1};

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_CONV2D,
     {HEAD, .save_args = 3, .save_if = conv2d_needs, .backward = conv2d}},
    {HOB_OP_CONV3D,
     {HEAD, .save_args = 3, .save_if = conv2d_needs, .backward = conv3d}},
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

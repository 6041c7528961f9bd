/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - rules of the ops that read between the elements.
 */
#include "rules.h"

/* interpolate and interpolate_backward are each other's transpose. */
static hob_status interpolate(hob_scope *scope,
                              const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_interpolate_backward(
        scope, call->grads[0], call->input_metas[0].shape + 2, 2,
        (enum hob_interpolate_backward_mode)call->args[2].u.i64,
        call->args[3].u.i64 != 0);
    return HOB_OK;
}

static hob_status interpolate_backward(hob_scope *scope,
                                       const struct hob_grad_call *call)
{
    call->out_grads[0] =
        hob_interpolate(scope, call->grads[0], call->input_metas[0].shape + 2,
                        2, (enum hob_interpolate_mode)call->args[2].u.i64,
                        call->args[3].u.i64 != 0);
    return HOB_OK;
}

/* So are adaptive_avg_pool and its gradient. */
static hob_status adaptive_avg_pool(hob_scope *scope,
                                    const struct hob_grad_call *call)
{
    const struct hob_meta *x = &call->input_metas[0];
    const uint32_t count = call->args[1].count;

    call->out_grads[0] = hob_adaptive_avg_pool_backward(
        scope, call->grads[0], x->shape + x->rank - count, count);
    return HOB_OK;
}

static hob_status adaptive_avg_pool_backward(hob_scope *scope,
                                             const struct hob_grad_call *call)
{
    const struct hob_meta *grad = &call->input_metas[0];
    const uint32_t count = call->args[1].count;

    call->out_grads[0] = hob_adaptive_avg_pool(
        scope, call->grads[0], grad->shape + grad->rank - count, count);
    return HOB_OK;
}

static hob_status grid_sample(hob_scope *scope,
                              const struct hob_grad_call *call)
{
    const hob_value *args = call->args + 2;

    return hob_grid_sample_backward(
        scope, call->inputs[0], call->inputs[1], call->grads[0],
        (enum hob_grid_sample_backward_mode)args[0].u.i64,
        (enum hob_grid_sample_backward_padding)args[1].u.i64,
        args[2].u.i64 != 0, &call->out_grads[0], &call->out_grads[1]);
}

/* The grid's unit places, as the columns x, y and 1, times grad. */
static hob_status affine_grid(hob_scope *scope,
                              const struct hob_grad_call *call)
{
    const int64_t *out = call->ret_metas[0].shape;
    const int64_t size[4] = {1, 1, out[1], out[2]};
    const int64_t places[2] = {out[1] * out[2], 2};
    const int64_t flat[3] = {out[0], places[0], 2};
    const int64_t starts[2] = {0, 0}, ends[2] = {2, 3};
    const hob_dtype own = (hob_dtype)call->input_metas[0].dtype;
    const hob_dtype dtype = own == HOB_DTYPE_F64 ? own : HOB_DTYPE_F32;
    hob_tensor *grad = call->grads[0], *parts[2], *unit;

    unit = hob_eye(scope, 3, hob_scope_host(scope)->tensor_device(grad), dtype);
    unit = hob_unsqueeze(
        scope, hob_slice(scope, unit, starts, 2, ends, 2, NULL, 0), 0);
    unit = hob_affine_grid(scope, unit, size, 4, call->args[2].u.i64 != 0);
    if (own != dtype)
        grad = hob_cast(scope, grad, dtype);
    grad = hob_reshape(scope, grad, flat, 3);
    parts[0] = hob_matmul(scope, hob_swap_dims(scope, grad, 1, 2),
                          hob_reshape(scope, unit, places, 2));
    parts[1] = hob_swap_dims(scope, hob_sum_dim(scope, grad, 1), 1, 2);
    grad = hob_cat(scope, parts, 2, 2);
    call->out_grads[0] = own == dtype ? grad : hob_cast(scope, grad, own);
    return HOB_OK;
}

static hob_status ctc_loss(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *const *in = call->inputs;

    call->out_grads[0] = hob_ctc_loss_backward(
        scope, in[0], in[1], in[2], in[3], call->grads[0], call->args[4].u.i64);
    return HOB_OK;
}

static hob_status deform_conv2d(hob_scope *scope,
                                const struct hob_grad_call *call)
{
    hob_tensor *const *in = call->inputs, *grad = call->grads[0];
    const hob_value *args = call->args + 5;
    hob_tensor **out = call->out_grads;

    if (call->needs_grad[4]) {
        out[4] = hob_sum_dim(scope, hob_sum_dim(scope, grad, 3), 2);
        out[4] = hob_reshape(scope, hob_sum_dim(scope, out[4], 0),
                             call->input_metas[4].shape, 1);
    }
    return hob_deform_conv2d_backward(
        scope, in[0], in[1], in[2], in[3], grad, args[0].u.i64s, args[0].count,
        args[1].u.i64s, args[1].count, args[2].u.i64s, args[2].count,
        args[3].u.i64, args[4].u.i64, &out[0], &out[1], &out[2], &out[3]);
}

/* Lists FIRST up to FIRST + 3 of CALL, as both ops of columns take them. */
#define LISTS(first)                                                           \
    call->args[first].u.i64s, call->args[first].count,                         \
        call->args[(first) + 1].u.i64s, call->args[(first) + 1].count,         \
        call->args[(first) + 2].u.i64s, call->args[(first) + 2].count,         \
        call->args[(first) + 3].u.i64s, call->args[(first) + 3].count

/* And so are im2col and col2im. */
static hob_status im2col(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_col2im(
        scope, call->grads[0], call->input_metas[0].shape + 2, 2, LISTS(1));
    return HOB_OK;
}

static hob_status col2im(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_im2col(scope, call->grads[0], LISTS(2));
    return HOB_OK;
}
#undef LISTS

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_INTERPOLATE, {HEAD, .backward = interpolate}},
    {HOB_OP_INTERPOLATE_BACKWARD, {HEAD, .backward = interpolate_backward}},
    {HOB_OP_ADAPTIVE_AVG_POOL, {HEAD, .backward = adaptive_avg_pool}},
    {HOB_OP_ADAPTIVE_AVG_POOL_BACKWARD,
     {HEAD, .backward = adaptive_avg_pool_backward}},
    {HOB_OP_GRID_SAMPLE, {HEAD, .save_args = 3, .backward = grid_sample}},
    {HOB_OP_AFFINE_GRID, {HEAD, .backward = affine_grid}},
    {HOB_OP_CTC_LOSS, {HEAD, .save_args = 15, .backward = ctc_loss}},
    {HOB_OP_DEFORM_CONV2D, {HEAD, .save_args = 15, .backward = deform_conv2d}},
    {HOB_OP_IM2COL, {HEAD, .backward = im2col}},
    {HOB_OP_COL2IM, {HEAD, .backward = col2im}},
};

#undef HEAD

const struct ad_family ad_rules_sample = {rules,
                                          sizeof(rules) / sizeof(rules[0])};

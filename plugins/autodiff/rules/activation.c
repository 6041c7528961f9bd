/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activation.c - rules of activations and of cross_entropy.
 *
 * The backward ops have bodies, through which a second derivative goes.
 */
#include "rules.h"

static hob_status relu(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] =
        hob_relu_backward(scope, call->rets[0], ad_last_grad(scope, call));
    return HOB_OK;
}

static hob_status gelu(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] =
        hob_gelu_backward(scope, call->inputs[0], ad_last_grad(scope, call));
    return HOB_OK;
}

static hob_status sigmoid(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] =
        hob_sigmoid_backward(scope, call->rets[0], ad_last_grad(scope, call));
    return HOB_OK;
}

static hob_status softmax(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_softmax_backward(
        scope, call->rets[0], call->grads[0], call->args[1].u.i64);
    return HOB_OK;
}

static hob_status log_softmax(hob_scope *scope,
                              const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_log_softmax_backward(
        scope, call->rets[0], call->grads[0], call->args[1].u.i64);
    return HOB_OK;
}

/* The activations of activation_backward; ALPHA is what that op says. */
static hob_status slope(hob_scope *scope, const struct hob_grad_call *call,
                        enum hob_activation_backward_kind kind, double alpha)
{
    call->out_grads[0] = hob_activation_backward(scope, call->inputs[0],
                                                 call->grads[0], kind, alpha);
    return HOB_OK;
}

#define SLOPE(op, kind, alpha)                                                 \
    static hob_status op(hob_scope *scope, const struct hob_grad_call *call)   \
    {                                                                          \
        return slope(scope, call, HOB_ACTIVATION_BACKWARD_KIND_##kind, alpha); \
    }
SLOPE(silu, SILU, 1)
SLOPE(mish, MISH, 1)
SLOPE(softplus, SOFTPLUS, call->args[1].u.f64)
SLOPE(log_sigmoid, LOG_SIGMOID, 1)
SLOPE(softsign, SOFTSIGN, 1)
SLOPE(leaky_relu, LEAKY_RELU, call->args[1].u.f64)
SLOPE(elu, ELU, call->args[1].u.f64)
SLOPE(celu, CELU, call->args[1].u.f64)
SLOPE(selu, SELU, 1)
SLOPE(hard_swish, HARD_SWISH, 1)
#undef SLOPE

/* alpha where the output is not cut off. */
static hob_status hard_sigmoid(hob_scope *scope,
                               const struct hob_grad_call *call)
{
    hob_tensor *y = call->rets[0];
    hob_tensor *cut =
        hob_logical_or(scope, hob_less_equal_scalar(scope, y, hob_i64(0)),
                       hob_greater_equal_scalar(scope, y, hob_i64(1)));

    call->out_grads[0] = hob_mask_fill(
        scope, hob_mul_scalar(scope, call->grads[0], call->args[1]), cut,
        hob_i64(0));
    return HOB_OK;
}

/* slope in the shape of RANK dimensions that broadcasts with x. */
static hob_tensor *by_channel(hob_scope *scope, hob_tensor *slopes,
                              uint32_t rank)
{
    int64_t shape[HOB_MAX_RANK];

    for (uint32_t i = 0; i < rank; i++)
        shape[i] = i == 1 ? hob_tensor_count(slopes) : 1;
    return hob_reshape(scope, slopes, shape, rank);
}

static hob_status prelu(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *x = &call->input_metas[0];
    hob_tensor *grad = call->grads[0];
    hob_tensor *below = hob_less_scalar(scope, call->inputs[0], hob_i64(0));

    if (call->needs_grad[0])
        call->out_grads[0] = hob_where(
            scope, below,
            hob_mul(scope, grad, by_channel(scope, call->inputs[1], x->rank)),
            grad);
    if (call->needs_grad[1]) {
        struct hob_meta wide = *x;
        hob_tensor *sum =
            hob_mask_fill(scope, hob_mul(scope, grad, call->inputs[0]),
                          hob_logical_not(scope, below), hob_i64(0));

        for (uint32_t i = 0; i < x->rank; i++)
            wide.shape[i] = i == 1 ? ad_count(&call->input_metas[1]) : 1;
        call->out_grads[1] = ad_reshape(scope, ad_sum_to(scope, sum, &wide),
                                        &call->input_metas[1]);
    }
    return HOB_OK;
}

/* a s(b), the halves a and b: grad s(b), and grad a through s. */
static hob_status glu(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *x = &call->input_metas[0];
    int64_t dim = ad_dim(call->args[1].u.i64, x->rank);
    int64_t half = x->shape[dim] / 2;
    hob_tensor *a = ad_narrow(scope, call->inputs[0], dim, 0, half);
    hob_tensor *b = ad_narrow(scope, call->inputs[0], dim, half, 2 * half);
    hob_tensor *grad = call->grads[0], *parts[2];

    b = hob_sigmoid(scope, b);
    parts[0] = hob_mul(scope, grad, b);
    parts[1] = hob_sigmoid_backward(scope, b, hob_mul(scope, grad, a));
    call->out_grads[0] = hob_cat(scope, parts, 2, dim);
    return HOB_OK;
}

static hob_status cross_entropy(hob_scope *scope,
                                const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_cross_entropy_backward(
        scope, call->inputs[0], call->inputs[1], call->grads[0]);
    return HOB_OK;
}

/* x for both, slope for x alone. */
static const uint32_t prelu_needs[HOB_MAX_PARAMS] = {1 | 1 << 1, 1};

#define HEAD .struct_size = sizeof(struct hob_backward)
#define CHEAP HEAD, .flags = HOB_BACKWARD_MEMORY_BOUND

static const struct ad_rule rules[] = {
    {HOB_OP_RELU, {CHEAP, .save_rets = 1, .backward = relu}},
    {HOB_OP_GELU, {CHEAP, .save_args = 1, .backward = gelu}},
    {HOB_OP_SIGMOID, {CHEAP, .save_rets = 1, .backward = sigmoid}},
    {HOB_OP_SOFTMAX, {HEAD, .save_rets = 1, .backward = softmax}},
    {HOB_OP_LOG_SOFTMAX, {HEAD, .save_rets = 1, .backward = log_softmax}},
    {HOB_OP_SILU, {CHEAP, .save_args = 1, .backward = silu}},
    {HOB_OP_MISH, {CHEAP, .save_args = 1, .backward = mish}},
    {HOB_OP_SOFTPLUS, {CHEAP, .save_args = 1, .backward = softplus}},
    {HOB_OP_LOG_SIGMOID, {CHEAP, .save_args = 1, .backward = log_sigmoid}},
    {HOB_OP_SOFTSIGN, {CHEAP, .save_args = 1, .backward = softsign}},
    {HOB_OP_LEAKY_RELU, {CHEAP, .save_args = 1, .backward = leaky_relu}},
    {HOB_OP_ELU, {CHEAP, .save_args = 1, .backward = elu}},
    {HOB_OP_CELU, {CHEAP, .save_args = 1, .backward = celu}},
    {HOB_OP_SELU, {CHEAP, .save_args = 1, .backward = selu}},
    {HOB_OP_HARD_SWISH, {CHEAP, .save_args = 1, .backward = hard_swish}},
    {HOB_OP_HARD_SIGMOID, {CHEAP, .save_rets = 1, .backward = hard_sigmoid}},
    {HOB_OP_PRELU,
     {CHEAP, .save_args = 3, .save_if = prelu_needs, .backward = prelu}},
    {HOB_OP_GLU, {CHEAP, .save_args = 1, .backward = glu}},
    {HOB_OP_CROSS_ENTROPY, {HEAD, .save_args = 3, .backward = cross_entropy}},
};

#undef CHEAP
#undef HEAD

const struct ad_family ad_rules_activation = {rules,
                                              sizeof(rules) / sizeof(rules[0])};

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
        hob_relu_backward(scope, call->rets[0], call->grads[0]);
    return HOB_OK;
}

static hob_status gelu(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] =
        hob_gelu_backward(scope, call->inputs[0], call->grads[0]);
    return HOB_OK;
}

static hob_status sigmoid(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] =
        hob_sigmoid_backward(scope, call->rets[0], call->grads[0]);
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

static hob_status cross_entropy(hob_scope *scope,
                                const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_cross_entropy_backward(
        scope, call->inputs[0], call->inputs[1], call->grads[0]);
    return HOB_OK;
}

#define HEAD .struct_size = sizeof(struct hob_backward)
#define CHEAP HEAD, .flags = HOB_BACKWARD_MEMORY_BOUND

static const struct ad_rule rules[] = {
    {HOB_OP_RELU, {CHEAP, .save_rets = 1, .backward = relu}},
    {HOB_OP_GELU, {CHEAP, .save_args = 1, .backward = gelu}},
    {HOB_OP_SIGMOID, {CHEAP, .save_rets = 1, .backward = sigmoid}},
    {HOB_OP_SOFTMAX, {HEAD, .save_rets = 1, .backward = softmax}},
    {HOB_OP_LOG_SOFTMAX, {HEAD, .save_rets = 1, .backward = log_softmax}},
    {HOB_OP_CROSS_ENTROPY, {HEAD, .save_args = 3, .backward = cross_entropy}},
};

#undef CHEAP
#undef HEAD

const struct ad_family ad_rules_activation = {rules,
                                              sizeof(rules) / sizeof(rules[0])};

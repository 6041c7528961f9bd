/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - the rule of attention.
 *
 * The backward op has a body, through which a second derivative goes; lse and
 * delta come as tensors of their own, so their share of it does too.
 */
#include "rules.h"

static hob_status attention(hob_scope *scope, const struct hob_grad_call *call)
{
    const hob_value *scale = &call->args[5], *softcap = &call->args[6];
    const int bias_grad = call->inputs[4] && call->needs_grad[4];
    hob_tensor *const *in = call->inputs;
    hob_tensor *grad = call->grads[0];
    hob_tensor *delta, *grads[4];
    hob_status st;

    if (!grad)
        grad = ad_zeros(scope, &call->ret_metas[0], in[0]);
    delta = hob_attention_delta(scope, call->rets[0], grad);
    if (call->grads[1])
        delta = hob_sub(scope, delta, call->grads[1]);
    st = hob_attention_backward(
        scope, in[0], in[1], in[2], in[3], in[4], call->rets[1], delta, grad,
        scale->tag == HOB_TAG_ABSENT ? hob_none() : hob_f64(scale->u.f64),
        softcap->tag == HOB_TAG_ABSENT ? hob_none() : hob_f64(softcap->u.f64),
        (int)call->args[7].u.i64, bias_grad, &grads[0], &grads[1], &grads[2],
        &grads[3]);
    if (st)
        return st;
    for (uint32_t i = 0; i < 3; i++)
        call->out_grads[i] = grads[i];
    if (bias_grad)
        call->out_grads[4] = grads[3];
    return HOB_OK;
}

static const struct ad_rule rules[] = {
    {HOB_OP_ATTENTION,
     {.struct_size = sizeof(struct hob_backward),
      .save_args = 31,
      .save_rets = 3,
      .backward = attention}},
};

const struct ad_family ad_rules_attention = {rules,
                                             sizeof(rules) / sizeof(rules[0])};

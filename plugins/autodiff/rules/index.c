/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - rules of gathering and scattering.
 *
 * What was read several times gets its gradients added up.
 */
#include "rules.h"

static hob_status gather(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];

    call->out_grads[0] =
        hob_scatter_add(scope, ad_zeros(scope, &call->input_metas[0], grad),
                        call->inputs[1], grad, call->args[2].u.i64);
    return HOB_OK;
}

static hob_status scatter_add(hob_scope *scope,
                              const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];

    call->out_grads[0] = grad;
    if (call->needs_grad[2])
        call->out_grads[2] =
            hob_gather(scope, grad, call->inputs[1], call->args[3].u.i64);
    return HOB_OK;
}

static hob_status select_rule(hob_scope *scope,
                              const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];

    call->out_grads[0] =
        hob_select_add(scope, ad_zeros(scope, &call->input_metas[0], grad),
                       call->inputs[1], grad, call->args[2].u.i64);
    return HOB_OK;
}

static hob_status select_add(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];

    call->out_grads[0] = grad;
    if (call->needs_grad[2])
        call->out_grads[2] =
            hob_select(scope, grad, call->inputs[1], call->args[3].u.i64);
    return HOB_OK;
}

/*
 * The selected element at a place is the one whose number is the count of
 * true masks before it. Where the mask is false that number is meaningless
 * (and -1 at the front, hence the clamp), so the result is filled with zero.
 */
static hob_status mask_select(hob_scope *scope,
                              const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    hob_tensor *grad = call->grads[0];
    hob_tensor *mask, *places, *spread;
    int64_t count = ad_count(meta);

    if (!ad_count(&call->ret_metas[0])) {
        call->out_grads[0] = ad_zeros(scope, meta, grad);
        return HOB_OK;
    }
    mask =
        hob_reshape(scope, ad_expand(scope, call->inputs[1], meta), &count, 1);
    places = hob_cumsum(scope, hob_cast(scope, mask, HOB_DTYPE_I64), 0);
    places = hob_clamp(scope, hob_sub_scalar(scope, places, hob_i64(1)),
                       hob_i64(0), hob_none());
    spread = hob_mask_fill(scope, hob_select(scope, grad, places, 0),
                           hob_logical_not(scope, mask), hob_f64(0));
    call->out_grads[0] = ad_reshape(scope, spread, meta);
    return HOB_OK;
}

static hob_status embedding(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_embedding_backward(
        scope, call->inputs[0], call->inputs[1], call->grads[0]);
    return HOB_OK;
}

/* Of weight only the shape matters. */
static hob_status embedding_backward(hob_scope *scope,
                                     const struct hob_grad_call *call)
{
    if (call->needs_grad[2])
        call->out_grads[2] =
            hob_embedding(scope, call->grads[0], call->inputs[1]);
    return HOB_OK;
}

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_GATHER, {HEAD, .save_args = 2, .backward = gather}},
    {HOB_OP_SCATTER_ADD, {HEAD, .save_args = 2, .backward = scatter_add}},
    {HOB_OP_SELECT, {HEAD, .save_args = 2, .backward = select_rule}},
    {HOB_OP_SELECT_ADD, {HEAD, .save_args = 2, .backward = select_add}},
    {HOB_OP_MASK_SELECT, {HEAD, .save_args = 2, .backward = mask_select}},
    {HOB_OP_EMBEDDING, {HEAD, .save_args = 3, .backward = embedding}},
    {HOB_OP_EMBEDDING_BACKWARD,
     {HEAD, .save_args = 2, .backward = embedding_backward}},
};

#undef HEAD

const struct ad_family ad_rules_index = {rules,
                                         sizeof(rules) / sizeof(rules[0])};

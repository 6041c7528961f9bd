/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linalg.c - rules of matmul, linear and matmul_quantized.
 */
#include "rules.h"

/*
 * lhs^T grad, summed over the batch, for a right side META without one: the
 * batch is then nothing but more rows, and one product does it all.
 */
static hob_tensor *rhs_grad_flat(hob_scope *scope, hob_tensor *lhs,
                                 const struct hob_meta *lhs_meta,
                                 hob_tensor *grad,
                                 const struct hob_meta *grad_meta)
{
    int64_t width_in = lhs_meta->shape[lhs_meta->rank - 1];
    int64_t width_out = grad_meta->shape[grad_meta->rank - 1];
    int64_t rows = 1;

    for (uint32_t i = 0; i + 1 < grad_meta->rank; i++)
        rows *= grad_meta->shape[i];
    if (lhs_meta->rank > 2) {
        lhs = hob_reshape(scope, lhs, (int64_t[]){rows, width_in}, 2);
        grad = hob_reshape(scope, grad, (int64_t[]){rows, width_out}, 2);
    }
    return hob_matmul(scope, ad_transpose(scope, lhs), grad);
}

static hob_status matmul(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];
    const struct hob_meta *metas = call->input_metas;

    if (call->needs_grad[0])
        call->out_grads[0] =
            hob_matmul(scope, grad, ad_transpose(scope, call->inputs[1]));
    if (!call->needs_grad[1])
        return HOB_OK;
    /* Batched products are summed to the right side by the walk. */
    if (metas[1].rank == 2)
        call->out_grads[1] = rhs_grad_flat(scope, call->inputs[0], &metas[0],
                                           grad, &call->ret_metas[0]);
    else
        call->out_grads[1] =
            hob_matmul(scope, ad_transpose(scope, call->inputs[0]), grad);
    return HOB_OK;
}

static hob_status linear(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];
    const struct hob_meta *ret = &call->ret_metas[0];

    if (call->needs_grad[0])
        call->out_grads[0] =
            hob_linear(scope, grad, ad_transpose(scope, call->inputs[1]), NULL);
    if (call->needs_grad[1]) {
        const struct hob_meta *x = &call->input_metas[0];
        hob_tensor *input = call->inputs[0];

        if (x->rank == 1) {
            int64_t in = x->shape[0];
            int64_t out = ret->shape[0];

            call->out_grads[1] =
                hob_mul(scope, hob_reshape(scope, input, (int64_t[]){in, 1}, 2),
                        hob_reshape(scope, grad, (int64_t[]){1, out}, 2));
        } else {
            call->out_grads[1] = rhs_grad_flat(scope, input, x, grad, ret);
        }
    }
    if (call->needs_grad[2])
        call->out_grads[2] = grad;
    return HOB_OK;
}

/* The weight is a constant. */
static hob_status matmul_quantized(hob_scope *scope,
                                   const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_matmul_quantized(
        scope, call->grads[0], call->inputs[1], call->args[2].u.i64 == 0);
    return HOB_OK;
}

static const uint32_t other_side[HOB_MAX_PARAMS] = {2, 1};

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_MATMUL,
     {HEAD, .save_args = 3, .save_if = other_side, .backward = matmul}},
    {HOB_OP_LINEAR,
     {HEAD, .save_args = 3, .save_if = other_side, .backward = linear}},
    {HOB_OP_MATMUL_QUANTIZED,
     {HEAD, .save_args = 2, .backward = matmul_quantized}},
};

#undef HEAD

const struct ad_family ad_rules_linalg = {rules,
                                          sizeof(rules) / sizeof(rules[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.c - rules of sort and topk: gradients go back where elements came
 * from. Sorting is stable, so sorting again gives the same places.
 */
#include "rules.h"

static void put_back(hob_scope *scope, const struct hob_grad_call *call,
                     hob_tensor *indices, int64_t dim)
{
    hob_tensor *grad = call->grads[0];

    call->out_grads[0] =
        hob_scatter_add(scope, ad_zeros(scope, &call->input_metas[0], grad),
                        indices, grad, dim);
}

static hob_status sort(hob_scope *scope, const struct hob_grad_call *call)
{
    int64_t dim = call->args[1].u.i64;

    put_back(scope, call,
             hob_argsort(scope, call->inputs[0], dim, call->args[2].u.i64 != 0,
                         HOB_DTYPE_NONE),
             dim);
    return HOB_OK;
}

static hob_status topk(hob_scope *scope, const struct hob_grad_call *call)
{
    int64_t dim = call->args[2].u.i64;

    put_back(scope, call,
             hob_argtopk(scope, call->inputs[0], call->args[1].u.i64, dim,
                         HOB_DTYPE_NONE),
             dim);
    return HOB_OK;
}

static hob_status sort_with_indices(hob_scope *scope,
                                    const struct hob_grad_call *call)
{
    put_back(scope, call, call->rets[1], call->args[1].u.i64);
    return HOB_OK;
}

static hob_status topk_with_indices(hob_scope *scope,
                                    const struct hob_grad_call *call)
{
    put_back(scope, call, call->rets[1], call->args[2].u.i64);
    return HOB_OK;
}

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_SORT, {HEAD, .save_args = 1, .backward = sort}},
    {HOB_OP_SORT_WITH_INDICES,
     {HEAD, .save_rets = 2, .backward = sort_with_indices}},
    {HOB_OP_TOPK, {HEAD, .save_args = 1, .backward = topk}},
    {HOB_OP_TOPK_WITH_INDICES,
     {HEAD, .save_rets = 2, .backward = topk_with_indices}},
};

#undef HEAD

const struct ad_family ad_rules_sort = {rules,
                                        sizeof(rules) / sizeof(rules[0])};

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

/* ---- scatter: one rule an update ---- */

/* What a rule of scatter needs: its arguments, and the way back. */
struct scattering {
    hob_scope *scope;
    hob_tensor *x, *indices, *value, *grad;
    int64_t dim;
};

static hob_tensor *back(const struct scattering *s, hob_tensor *y)
{
    return hob_gather(s->scope, y, s->indices, s->dim);
}

static hob_tensor *zero_unless(const struct scattering *s, hob_tensor *mask,
                               hob_tensor *grad)
{
    return hob_mask_fill(s->scope, grad, hob_logical_not(s->scope, mask),
                         hob_f64(0));
}

/* Of several values for a place the last one stays: that of the greatest
 * position along dim. Where none came, it is -1. */
static void assign_grads(const struct scattering *s,
                         const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    hob_device *device = hob_scope_host(s->scope)->tensor_device(s->grad);
    struct hob_meta line = call->input_metas[1];
    hob_tensor *places, *last;

    for (uint32_t i = 0; i < line.rank; i++)
        line.shape[i] = i == s->dim ? line.shape[i] : 1;
    places =
        hob_arange(s->scope, 0, line.shape[s->dim], 1, device, HOB_DTYPE_I64);
    places = ad_expand(s->scope, ad_reshape(s->scope, places, &line),
                       &call->input_metas[1]);
    last = hob_full(s->scope, meta->shape, meta->rank, hob_i64(-1), device,
                    HOB_DTYPE_I64);
    last = hob_scatter(s->scope, last, s->indices, places, s->dim,
                       HOB_SCATTER_UPDATE_MAX);
    if (call->needs_grad[0])
        call->out_grads[0] = zero_unless(
            s, hob_less_scalar(s->scope, last, hob_i64(0)), s->grad);
    if (call->needs_grad[2])
        call->out_grads[2] = zero_unless(
            s, hob_equal(s->scope, back(s, last), places), back(s, s->grad));
}

static hob_tensor *is_zero(const struct scattering *s, hob_tensor *y)
{
    return hob_equal_scalar(s->scope, y, hob_i64(0));
}

static hob_tensor *one_for_zero(const struct scattering *s, hob_tensor *y)
{
    return hob_mask_fill(s->scope, y, is_zero(s, y), hob_f64(1));
}

/* GRAD times the product of all factors but FACTOR, of which ZEROS are 0 and
 * the others' product is PRODUCT. */
static hob_tensor *factor_grad(const struct scattering *s, hob_tensor *factor,
                               hob_tensor *product, hob_tensor *zeros,
                               hob_tensor *grad)
{
    hob_scope *scope = s->scope;
    hob_tensor *own = hob_cast(scope, is_zero(s, factor), HOB_DTYPE_I64);
    hob_tensor *others = hob_div(scope, product, one_for_zero(s, factor));

    return zero_unless(s, is_zero(s, hob_sub(scope, zeros, own)),
                       hob_mul(scope, grad, others));
}

/* Zeros among the factors of a place are counted, so they do no harm. */
static void mul_grads(const struct scattering *s,
                      const struct hob_grad_call *call)
{
    hob_scope *scope = s->scope;
    hob_tensor *product =
        hob_scatter(scope, one_for_zero(s, s->x), s->indices,
                    one_for_zero(s, s->value), s->dim, HOB_SCATTER_UPDATE_MUL);
    hob_tensor *zeros = hob_scatter_add(
        scope, hob_cast(scope, is_zero(s, s->x), HOB_DTYPE_I64), s->indices,
        hob_cast(scope, is_zero(s, s->value), HOB_DTYPE_I64), s->dim);

    if (call->needs_grad[0])
        call->out_grads[0] = factor_grad(s, s->x, product, zeros, s->grad);
    if (call->needs_grad[2])
        call->out_grads[2] = factor_grad(s, s->value, back(s, product),
                                         back(s, zeros), back(s, s->grad));
}

/* To what won; several that did share alike, as in maximum. */
static void extreme_grads(const struct scattering *s,
                          const struct hob_grad_call *call,
                          enum hob_scatter_update update)
{
    hob_scope *scope = s->scope;
    hob_tensor *y =
        hob_scatter(scope, s->x, s->indices, s->value, s->dim, update);
    hob_tensor *x_won = hob_equal(scope, s->x, y);
    hob_tensor *value_won = hob_equal(scope, s->value, back(s, y));
    hob_tensor *winners = hob_scatter_add(
        scope, hob_cast(scope, x_won, HOB_DTYPE_I64), s->indices,
        hob_cast(scope, value_won, HOB_DTYPE_I64), s->dim);
    hob_tensor *share = hob_div(
        scope, s->grad,
        hob_cast(scope, winners, (hob_dtype)call->input_metas[0].dtype));

    if (call->needs_grad[0])
        call->out_grads[0] = zero_unless(s, x_won, share);
    if (call->needs_grad[2])
        call->out_grads[2] = zero_unless(s, value_won, back(s, share));
}

static hob_status scatter(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct scattering s = {
        .scope = scope,
        .x = call->inputs[0],
        .indices = call->inputs[1],
        .value = call->inputs[2],
        .grad = call->grads[0],
        .dim = ad_dim(call->args[3].u.i64, call->input_metas[0].rank)};
    enum hob_scatter_update update =
        (enum hob_scatter_update)call->args[4].u.i64;

    switch (update) {
    case HOB_SCATTER_UPDATE_ADD:
        call->out_grads[0] = s.grad;
        if (call->needs_grad[2])
            call->out_grads[2] = back(&s, s.grad);
        break;
    case HOB_SCATTER_UPDATE_MUL:
        mul_grads(&s, call);
        break;
    case HOB_SCATTER_UPDATE_MIN:
    case HOB_SCATTER_UPDATE_MAX:
        extreme_grads(&s, call, update);
        break;
    default:
        assign_grads(&s, call);
        break;
    }
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
    {HOB_OP_SCATTER, {HEAD, .save_args = 7, .backward = scatter}},
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

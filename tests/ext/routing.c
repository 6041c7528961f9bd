/* SPDX-License-Identifier: Apache-2.0 */
#include "routing.h"

#include "routing_glue.h"

struct route_counts route_counts;

const struct hob_plugin *route_entry(const struct hob_host *host)
{
    return hob_plugin_entry(host);
}

/* ---- shapes ---- */

/* OUT is like argument INDEX. */
static hob_status like_argument(const struct hob_call *call, uint32_t index,
                                struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, index);

    out->dtype = x->dtype;
    out->rank = x->rank;
    memcpy(out->shape, x->shape, sizeof(out->shape));
    return HOB_OK;
}

hob_status route_unwrap_infer(struct hob_call *call, struct hob_meta *out)
{
    switch (call->args[ROUTE_UNWRAP_ARG_OPERAND].u.i64) {
    case ROUTE_OPERAND_DENSE:
        return like_argument(call, ROUTE_UNWRAP_ARG_OPERAND_DENSE, out);
    case ROUTE_OPERAND_SPARSE:
        return like_argument(call, ROUTE_UNWRAP_ARG_OPERAND_SPARSE_VALUES, out);
    }
    return call->host->fail(call, HOB_ERR_ARGUMENT, "operand is Empty");
}

hob_status route_classify_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, ROUTE_CLASSIFY_ARG_X);
    hob_status status = HOB_OK;

    call->plains[0].u.i64 = ROUTE_OPERAND_EMPTY;
    if (x->rank == 1) {
        call->plains[0].u.i64 = ROUTE_OPERAND_DENSE;
        status = like_argument(call, 0, &out[ROUTE_CLASSIFY_RET_DENSE]);
    } else if (x->rank == 2) {
        call->plains[0].u.i64 = ROUTE_OPERAND_SPARSE;
        status = like_argument(call, 0, &out[ROUTE_CLASSIFY_RET_SPARSE_VALUES]);
        out[ROUTE_CLASSIFY_RET_SPARSE_INDICES] =
            out[ROUTE_CLASSIFY_RET_SPARSE_VALUES];
        out[ROUTE_CLASSIFY_RET_SPARSE_INDICES].dtype = HOB_DTYPE_I32;
    }
    return status;
}

/* ---- bodies ---- */

hob_tensor *route_unwrap_body(hob_scope *scope,
                              const struct route_operand *operand)
{
    (void)scope;
    return operand->variant == ROUTE_OPERAND_DENSE ? operand->u.dense
                                                   : operand->u.sparse.values;
}

hob_tensor *route_blend_body(hob_scope *scope,
                             const struct route_operand *operand,
                             hob_tensor *like)
{
    switch (operand->variant) {
    case ROUTE_OPERAND_DENSE:
        return hob_add(scope, like, operand->u.dense);
    case ROUTE_OPERAND_SPARSE:
        return hob_scatter_add(scope, like, operand->u.sparse.indices,
                               operand->u.sparse.values, 0);
    case ROUTE_OPERAND_EMPTY:
        break;
    }
    return like;
}

hob_tensor *route_double_body(hob_scope *scope, hob_tensor *x)
{
    return hob_add(scope, x, x);
}

hob_tensor *route_mul_pair_body(hob_scope *scope, const struct route_pair *pair)
{
    return hob_mul(scope, pair->x, pair->y);
}

hob_tensor *route_mul_pair_turned_body(hob_scope *scope,
                                       const struct route_pair *pair)
{
    return hob_mul(scope, pair->x, pair->y);
}

hob_status route_scale_pair_body(hob_scope *scope,
                                 const struct route_pair *pair, double factor,
                                 struct route_pair *out)
{
    out->x = hob_mul_scalar(scope, pair->x, hob_f64(factor));
    out->y = hob_mul_scalar(scope, pair->y, hob_f64(factor));
    return HOB_OK;
}

hob_tensor *route_add_pair_body(hob_scope *scope, hob_tensor *z,
                                const struct route_pair *pair)
{
    return hob_add(scope, z, hob_add(scope, pair->x, pair->y));
}

hob_tensor *route_dot_pairs_body(hob_scope *scope, const struct route_pair *a,
                                 const struct route_pair *b)
{
    return hob_add(scope, hob_mul(scope, a->x, b->x),
                   hob_mul(scope, a->y, b->y));
}

hob_status route_split_body(hob_scope *scope, hob_tensor *x, hob_tensor **out_0,
                            hob_tensor **out_1, int64_t *out_2)
{
    (void)out_2; /* inference has filled it in */
    *out_0 = hob_abs(scope, x);
    *out_1 = hob_less_scalar(scope, x, hob_f64(0));
    return HOB_OK;
}

hob_status route_rescale_body(hob_scope *scope,
                              const struct route_scaled *scaled,
                              struct route_scaled *out)
{
    return route_scale_pair_body(scope, &scaled->pair, scaled->factor,
                                 &out->pair);
}

hob_tensor *route_weigh_body(hob_scope *scope, const struct route_nest *nest,
                             hob_tensor *const *others, uint32_t others_count)
{
    hob_tensor *sum = hob_add(
        scope,
        hob_mul_scalar(scope,
                       hob_add(scope, nest->scaled.pair.x, nest->scaled.pair.y),
                       hob_f64(nest->scaled.factor)),
        nest->operand.variant == ROUTE_OPERAND_EMPTY
            ? nest->scaled.pair.x
            : route_unwrap_body(scope, &nest->operand));

    for (uint32_t i = 0; i < others_count; i++)
        sum = hob_add(scope, sum, others[i]);
    return hob_mul_scalar(scope, sum, hob_i64(nest->rows));
}

hob_status route_classify_body(hob_scope *scope, hob_tensor *x,
                               struct route_operand *out)
{
    if (out->variant == ROUTE_OPERAND_DENSE)
        out->u.dense = hob_neg(scope, x);
    if (out->variant == ROUTE_OPERAND_SPARSE) {
        out->u.sparse.values = hob_mul(scope, x, x);
        out->u.sparse.indices = hob_cast(scope, x, HOB_DTYPE_I32);
    }
    return HOB_OK;
}

hob_tensor *route_watch_body(hob_scope *scope, const struct route_pair *pair,
                             hob_tensor *more, hob_tensor *at,
                             hob_tensor *const *list, uint32_t list_count)
{
    (void)more;
    (void)at;
    (void)list;
    (void)list_count;
    return hob_add(scope, pair->x, pair->y);
}

/* ---- kernels ---- */

/* Result 0 is a * x + b * y, all f32 and contiguous as the tests make them. */
static hob_status combine(struct hob_call *call, atomic_int *count, float a,
                          float b, uint32_t y_index)
{
    const float *x = (const float *)hob_arg_view(call, 0)->data;
    const float *y = (const float *)hob_arg_view(call, y_index)->data;
    const struct hob_view *out = hob_ret_view(call, 0);

    atomic_fetch_add(count, 1);
    for (int64_t i = 0; i < hob_view_count(out); i++)
        ((float *)out->data)[i] = a * x[i] + b * y[i];
    return HOB_OK;
}

hob_status route_double_reference(void *device, struct hob_call *call)
{
    (void)device;
    return combine(call, &route_counts.reference, 1, 1, 0);
}

hob_status route_double_flex(void *device, struct hob_call *call)
{
    (void)device;
    return combine(call, &route_counts.flex, 1, 1, 0);
}

hob_status route_quick_reference(void *device, struct hob_call *call)
{
    return route_double_reference(device, call);
}

hob_status route_quick_flex(void *device, struct hob_call *call)
{
    return route_double_flex(device, call);
}

hob_status route_hollow_reference(void *device, struct hob_call *call)
{
    (void)device;
    return combine(call, &route_counts.reference, 1, 0, 0);
}

hob_status route_cheap_flex(void *device, struct hob_call *call)
{
    (void)device;
    return combine(call, &route_counts.flex, 1, 1, ROUTE_CHEAP_ARG_PAIR_Y);
}

hob_status route_load_reference(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);

    (void)device;
    atomic_fetch_add(&route_counts.reference, 1);
    for (int64_t i = 0; i < hob_view_count(out); i++)
        ((float *)out->data)[i] = (float)i;
    return HOB_OK;
}

hob_status route_gated_reference(void *device, struct hob_call *call)
{
    return route_load_reference(device, call);
}

/* ---- gradients ---- */

static hob_status mul_pair_backward(hob_scope *scope,
                                    const struct hob_grad_call *call)
{
    int saved = 0;

    for (uint32_t i = 0; i < call->input_count; i++)
        saved += call->inputs[i] != NULL;
    atomic_store(&route_counts.saved_count, saved);
    if (call->needs_grad[ROUTE_MUL_PAIR_IN_PAIR_X])
        call->out_grads[ROUTE_MUL_PAIR_IN_PAIR_X] = hob_mul(
            scope, call->grads[0], call->inputs[ROUTE_MUL_PAIR_IN_PAIR_Y]);
    if (call->needs_grad[ROUTE_MUL_PAIR_IN_PAIR_Y])
        call->out_grads[ROUTE_MUL_PAIR_IN_PAIR_Y] = hob_mul(
            scope, call->grads[0], call->inputs[ROUTE_MUL_PAIR_IN_PAIR_X]);
    return HOB_OK;
}

hob_status route_mul_pair_backward(hob_scope *scope,
                                   const struct hob_grad_call *call)
{
    return mul_pair_backward(scope, call);
}

hob_status route_mul_pair_turned_backward(hob_scope *scope,
                                          const struct hob_grad_call *call)
{
    return mul_pair_backward(scope, call);
}

hob_status route_cheap_backward(hob_scope *scope,
                                const struct hob_grad_call *call)
{
    (void)scope;
    call->out_grads[ROUTE_CHEAP_IN_PAIR_X] = call->grads[0];
    call->out_grads[ROUTE_CHEAP_IN_PAIR_Y] = call->grads[0];
    return HOB_OK;
}

hob_status route_watch_backward(hob_scope *scope,
                                const struct hob_grad_call *call)
{
    (void)scope;
    atomic_store(&route_counts.input_count, call->input_count);
    for (uint32_t i = 0; i < call->input_count && i < ROUTE_WATCHED; i++) {
        atomic_store(&route_counts.needs_gradient[i], call->needs_grad[i]);
        if (call->needs_grad[i])
            call->out_grads[i] = call->grads[0];
    }
    return HOB_OK;
}

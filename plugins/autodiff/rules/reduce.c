/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - rules of reductions and running reductions.
 */
#include "rules.h"

static hob_status sum(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] =
        ad_expand(scope, call->grads[0], &call->input_metas[0]);
    return HOB_OK;
}

/* The gradient is scaled before it is spread: one element a result. */
static hob_status mean_of(hob_scope *scope, const struct hob_grad_call *call,
                          int64_t count)
{
    hob_tensor *part =
        hob_div_scalar(scope, call->grads[0], hob_f64((double)count));

    call->out_grads[0] = ad_expand(scope, part, &call->input_metas[0]);
    return HOB_OK;
}

static hob_status mean(hob_scope *scope, const struct hob_grad_call *call)
{
    return mean_of(scope, call, ad_count(&call->input_metas[0]));
}

static hob_status mean_dim(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];

    return mean_of(scope, call,
                   meta->shape[ad_dim(call->args[1].u.i64, meta->rank)]);
}

/* ---- products ---- */

/* ones [.., 1, ..] of META along DIM */
static hob_tensor *one_slice(hob_scope *scope, const struct hob_meta *meta,
                             int64_t dim, hob_tensor *like)
{
    struct hob_meta slice = *meta;

    slice.shape[dim] = 1;
    return hob_ones(scope, slice.shape, slice.rank,
                    hob_scope_host(scope)->tensor_device(like),
                    (hob_dtype)slice.dtype);
}

/* The product of all elements before each, along DIM of X (META). */
static hob_tensor *product_before(hob_scope *scope, hob_tensor *x,
                                  const struct hob_meta *meta, int64_t dim)
{
    hob_tensor *parts[2];

    parts[0] = one_slice(scope, meta, dim, x);
    if (meta->shape[dim] == 1)
        return parts[0];
    parts[1] = hob_cumprod(
        scope, ad_narrow(scope, x, dim, 0, meta->shape[dim] - 1), dim);
    return hob_cat(scope, parts, 2, dim);
}

/* The slope of a product is the product of all others: those before times
 * those after, so zeros do no harm. */
static hob_tensor *product_of_others(hob_scope *scope, hob_tensor *x,
                                     const struct hob_meta *meta, int64_t dim)
{
    hob_tensor *before = product_before(scope, x, meta, dim);
    hob_tensor *after =
        product_before(scope, hob_flip(scope, x, &dim, 1), meta, dim);

    return hob_mul(scope, before, hob_flip(scope, after, &dim, 1));
}

static hob_status prod_dim(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    int64_t dim = ad_dim(call->args[1].u.i64, meta->rank);
    hob_tensor *grad = call->grads[0];

    if (!ad_count(meta))
        call->out_grads[0] = ad_zeros(scope, meta, grad);
    else
        call->out_grads[0] = hob_mul(
            scope, grad, product_of_others(scope, call->inputs[0], meta, dim));
    return HOB_OK;
}

static hob_status prod(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    hob_tensor *grad = call->grads[0];
    struct hob_meta flat = *meta;
    hob_tensor *others;

    flat.rank = 1;
    flat.shape[0] = ad_count(meta);
    if (!flat.shape[0]) {
        call->out_grads[0] = ad_zeros(scope, meta, grad);
        return HOB_OK;
    }
    others = product_of_others(scope, ad_reshape(scope, call->inputs[0], &flat),
                               &flat, 0);
    call->out_grads[0] = hob_mul(scope, grad, ad_reshape(scope, others, meta));
    return HOB_OK;
}

static hob_status cumsum(hob_scope *scope, const struct hob_grad_call *call)
{
    int64_t dim = call->args[1].u.i64;
    hob_tensor *back = hob_flip(scope, call->grads[0], &dim, 1);

    call->out_grads[0] = hob_flip(scope, hob_cumsum(scope, back, dim), &dim, 1);
    return HOB_OK;
}

/* X moved STEP places towards the front along DIM, END filling up. */
static hob_tensor *shift(hob_scope *scope, hob_tensor *x,
                         const struct hob_meta *meta, int64_t dim, int64_t step,
                         double end)
{
    struct hob_meta tail = *meta;
    hob_tensor *parts[2];

    tail.shape[dim] = step;
    parts[0] = ad_narrow(scope, x, dim, step, meta->shape[dim]);
    parts[1] = hob_full(scope, tail.shape, tail.rank, hob_f64(end),
                        hob_scope_host(scope)->tensor_device(x),
                        (hob_dtype)tail.dtype);
    return hob_cat(scope, parts, 2, dim);
}

/*
 * With y_k = x_0 .. x_k, the gradient of x_i is the product before i times
 *     r_i = g_i + x_{i+1} r_{i+1}.
 * No division, so zeros do no harm. The recurrence is solved by doubling: a
 * pair (a, b) stands for r -> a r + b, and pairs compose associatively, so
 * log2(n) passes over whole tensors do.
 */
static hob_status cumprod(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    int64_t dim = ad_dim(call->args[1].u.i64, meta->rank);
    hob_tensor *x = call->inputs[0];
    hob_tensor *b = call->grads[0];
    hob_tensor *a;

    if (!ad_count(meta)) {
        call->out_grads[0] = ad_zeros(scope, meta, b);
        return HOB_OK;
    }
    a = meta->shape[dim] > 1 ? shift(scope, x, meta, dim, 1, 0) : NULL;
    for (int64_t step = 1; step < meta->shape[dim]; step *= 2) {
        hob_tensor *later = shift(scope, b, meta, dim, step, 0);

        b = hob_add(scope, b, hob_mul(scope, a, later));
        if (2 * step < meta->shape[dim])
            a = hob_mul(scope, a, shift(scope, a, meta, dim, step, 0));
    }
    call->out_grads[0] = hob_mul(scope, b, product_before(scope, x, meta, dim));
    return HOB_OK;
}

/* ---- extremes: to the chosen element alone, of equals the first ---- */

/* GRAD [.., 1, ..] at INDICES of zeros of META. */
static hob_tensor *put_at(hob_scope *scope, const struct hob_meta *meta,
                          hob_tensor *indices, hob_tensor *grad, int64_t dim)
{
    return hob_scatter_add(scope, ad_zeros(scope, meta, grad), indices, grad,
                           dim);
}

static hob_tensor *find_extreme(hob_scope *scope, hob_tensor *x, int64_t dim,
                                int greatest)
{
    /* 64 bits, because a whole tensor may be longer than i32 counts. */
    return greatest ? hob_argmax(scope, x, dim, HOB_DTYPE_I64)
                    : hob_argmin(scope, x, dim, HOB_DTYPE_I64);
}

static hob_status extreme_dim(hob_scope *scope,
                              const struct hob_grad_call *call, int greatest)
{
    int64_t dim = call->args[1].u.i64;
    hob_tensor *indices = find_extreme(scope, call->inputs[0], dim, greatest);

    call->out_grads[0] =
        put_at(scope, &call->input_metas[0], indices, call->grads[0], dim);
    return HOB_OK;
}

static hob_status extreme(hob_scope *scope, const struct hob_grad_call *call,
                          int greatest)
{
    const struct hob_meta *meta = &call->input_metas[0];
    struct hob_meta flat = *meta;
    hob_tensor *indices;
    hob_tensor *grad;

    flat.rank = 1;
    flat.shape[0] = ad_count(meta);
    indices = find_extreme(scope, ad_reshape(scope, call->inputs[0], &flat), 0,
                           greatest);
    grad = hob_reshape(scope, call->grads[0], (int64_t[]){1}, 1);
    call->out_grads[0] =
        ad_reshape(scope, put_at(scope, &flat, indices, grad, 0), meta);
    return HOB_OK;
}

static hob_status max_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return extreme(scope, call, 1);
}

static hob_status min_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return extreme(scope, call, 0);
}

static hob_status max_dim(hob_scope *scope, const struct hob_grad_call *call)
{
    return extreme_dim(scope, call, 1);
}

static hob_status min_dim(hob_scope *scope, const struct hob_grad_call *call)
{
    return extreme_dim(scope, call, 0);
}

/* max_dim_with_indices and min_dim_with_indices: the second result says. */
static hob_status with_indices(hob_scope *scope,
                               const struct hob_grad_call *call)
{
    call->out_grads[0] = put_at(scope, &call->input_metas[0], call->rets[1],
                                call->grads[0], call->args[1].u.i64);
    return HOB_OK;
}

/* cummax and cummin: to where the running extreme was met last, so of equals
 * to the latest. From a NaN on it is the last NaN. */
static hob_status running_extreme(hob_scope *scope,
                                  const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    int64_t dim = ad_dim(call->args[1].u.i64, meta->rank);
    hob_tensor *x = call->inputs[0];
    hob_device *device = hob_scope_host(scope)->tensor_device(x);
    hob_tensor *met, *places;
    struct hob_meta line = *meta;

    if (!ad_count(meta)) {
        call->out_grads[0] = ad_zeros(scope, meta, call->grads[0]);
        return HOB_OK;
    }
    for (uint32_t i = 0; i < meta->rank; i++)
        line.shape[i] = i == dim ? meta->shape[i] : 1;
    met = hob_logical_or(scope, hob_equal(scope, x, call->rets[0]),
                         hob_is_nan(scope, x));
    places = hob_arange(scope, 0, meta->shape[dim], 1, device, HOB_DTYPE_I64);
    places = hob_mul(scope, ad_reshape(scope, places, &line),
                     hob_cast(scope, met, HOB_DTYPE_I64));
    call->out_grads[0] = put_at(scope, meta, hob_cummax(scope, places, dim),
                                call->grads[0], dim);
    return HOB_OK;
}

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_SUM, {HEAD, .backward = sum}},
    {HOB_OP_SUM_DIM, {HEAD, .backward = sum}},
    {HOB_OP_MEAN, {HEAD, .backward = mean}},
    {HOB_OP_MEAN_DIM, {HEAD, .backward = mean_dim}},
    {HOB_OP_PROD, {HEAD, .save_args = 1, .backward = prod}},
    {HOB_OP_PROD_DIM, {HEAD, .save_args = 1, .backward = prod_dim}},
    {HOB_OP_MAX, {HEAD, .save_args = 1, .backward = max_rule}},
    {HOB_OP_MAX_DIM, {HEAD, .save_args = 1, .backward = max_dim}},
    {HOB_OP_MIN, {HEAD, .save_args = 1, .backward = min_rule}},
    {HOB_OP_MIN_DIM, {HEAD, .save_args = 1, .backward = min_dim}},
    {HOB_OP_MAX_DIM_WITH_INDICES,
     {HEAD, .save_rets = 2, .backward = with_indices}},
    {HOB_OP_MIN_DIM_WITH_INDICES,
     {HEAD, .save_rets = 2, .backward = with_indices}},
    {HOB_OP_CUMSUM, {HEAD, .backward = cumsum}},
    {HOB_OP_CUMPROD, {HEAD, .save_args = 1, .backward = cumprod}},
    {HOB_OP_CUMMAX,
     {HEAD, .save_args = 1, .save_rets = 1, .backward = running_extreme}},
    {HOB_OP_CUMMIN,
     {HEAD, .save_args = 1, .save_rets = 1, .backward = running_extreme}},
};

#undef HEAD

const struct ad_family ad_rules_reduce = {rules,
                                          sizeof(rules) / sizeof(rules[0])};

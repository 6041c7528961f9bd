/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c - rules of views, and of ops that put tensors together.
 *
 * All are linear and need metadata only.
 */
#include "rules.h"

#include <stdlib.h>
#include <string.h>

/* reshape, squeeze, unsqueeze: the same elements in the input's shape. */
static hob_status reshape(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] =
        ad_reshape(scope, call->grads[0], &call->input_metas[0]);
    return HOB_OK;
}

/* The walk sums over what was broadcast. */
static hob_status expand(hob_scope *scope, const struct hob_grad_call *call)
{
    (void)scope;
    call->out_grads[0] = call->grads[0];
    return HOB_OK;
}

static hob_status permute(hob_scope *scope, const struct hob_grad_call *call)
{
    uint32_t rank = call->input_metas[0].rank;
    int64_t inverse[HOB_MAX_RANK] = {0};

    for (uint32_t i = 0; i < rank && i < call->args[1].count; i++)
        inverse[ad_dim(call->args[1].u.i64s[i], rank)] = i;
    call->out_grads[0] = hob_permute(scope, call->grads[0], inverse, rank);
    return HOB_OK;
}

static hob_status swap_dims(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_swap_dims(
        scope, call->grads[0], call->args[1].u.i64, call->args[2].u.i64);
    return HOB_OK;
}

static hob_status flip(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_flip(scope, call->grads[0], call->args[1].u.i64s,
                                  call->args[1].count);
    return HOB_OK;
}

/* VALUE written into X at the ranges in three arguments from RANGES on. */
static hob_tensor *write_ranges(hob_scope *scope, hob_tensor *x,
                                hob_tensor *value, const hob_value *ranges)
{
    return hob_slice_assign(scope, x, value, ranges[0].u.i64s, ranges[0].count,
                            ranges[1].u.i64s, ranges[1].count, ranges[2].u.i64s,
                            ranges[2].count);
}

static hob_status slice(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];

    call->out_grads[0] =
        write_ranges(scope, ad_zeros(scope, &call->input_metas[0], grad), grad,
                     call->args + 1);
    return HOB_OK;
}

static hob_status slice_assign(hob_scope *scope,
                               const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];
    const hob_value *ranges = call->args + 2;

    if (call->needs_grad[0])
        call->out_grads[0] = write_ranges(
            scope, grad, ad_zeros(scope, &call->input_metas[1], grad), ranges);
    if (call->needs_grad[1])
        call->out_grads[1] = hob_slice(
            scope, grad, ranges[0].u.i64s, ranges[0].count, ranges[1].u.i64s,
            ranges[1].count, ranges[2].u.i64s, ranges[2].count);
    return HOB_OK;
}

/*
 * Windows may overlap: they are the columns of a plane of one row, for each
 * place in the other dimensions.
 */
static hob_status unfold(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    const struct hob_meta *ret = &call->ret_metas[0];
    const int64_t dim = ad_dim(call->args[1].u.i64, meta->rank);
    const int64_t n = meta->shape[dim], rank = meta->rank;
    const int64_t plane[2] = {1, n}, kernel[2] = {1, call->args[2].u.i64};
    const int64_t stride[2] = {1, call->args[3].u.i64};
    int64_t columns[3] = {1, kernel[1], ret->shape[dim]};
    int64_t axes[HOB_MAX_RANK], shape[HOB_MAX_RANK];
    hob_tensor *grad = call->grads[0];

    if (!ad_count(ret)) {
        call->out_grads[0] = ad_zeros(scope, meta, grad);
        return HOB_OK;
    }
    for (int64_t i = 0, at = 0; i < rank; i++) /* the others, in front */
        if (i != dim) {
            axes[at] = i;
            shape[at++] = meta->shape[i];
            columns[0] *= meta->shape[i];
        }
    axes[rank - 1] = rank; /* within the window, then the windows */
    axes[rank] = dim;
    shape[rank - 1] = n;
    grad = hob_permute(scope, grad, axes, (uint32_t)rank + 1);
    grad = hob_col2im(scope, hob_reshape(scope, grad, columns, 3), plane, 2,
                      kernel, 2, stride, 2, NULL, 0, NULL, 0);
    grad = hob_reshape(scope, grad, shape, (uint32_t)rank);
    for (int64_t i = 0; i < rank; i++)
        axes[i] = i < dim ? i : i == dim ? rank - 1 : i - 1;
    call->out_grads[0] = hob_permute(scope, grad, axes, (uint32_t)rank);
    return HOB_OK;
}

/* Each tensor's part of the gradient. */
static hob_status cat(hob_scope *scope, const struct hob_grad_call *call)
{
    int64_t dim = ad_dim(call->args[1].u.i64, call->ret_metas[0].rank);
    int64_t first = 0;

    for (uint32_t i = 0; i < call->input_count; i++) {
        int64_t last = first + call->input_metas[i].shape[dim];

        if (call->needs_grad[i])
            call->out_grads[i] =
                ad_narrow(scope, call->grads[0], dim, first, last);
        first = last;
    }
    return HOB_OK;
}

static hob_status stack(hob_scope *scope, const struct hob_grad_call *call)
{
    int64_t dim = ad_dim(call->args[1].u.i64, call->ret_metas[0].rank);

    for (uint32_t i = 0; i < call->input_count; i++)
        if (call->needs_grad[i])
            call->out_grads[i] = ad_reshape(
                scope, ad_narrow(scope, call->grads[0], dim, i, i + 1),
                &call->input_metas[i]);
    return HOB_OK;
}

/* split, split_sizes, chunk: the gradients of the parts, side by side again. */
static hob_status parts(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor **grads = malloc(call->ret_count * sizeof(hob_tensor *));
    hob_tensor *like = NULL;

    if (!grads)
        return HOB_ERR_MEMORY;
    for (uint32_t i = 0; i < call->ret_count && !like; i++)
        like = call->grads[i];
    for (uint32_t i = 0; i < call->ret_count; i++)
        grads[i] = call->grads[i]
                       ? call->grads[i]
                       : ad_zeros(scope, &call->ret_metas[i], like);
    call->out_grads[0] =
        hob_cat(scope, grads, call->ret_count, call->args[2].u.i64);
    free(grads);
    return HOB_OK;
}

/* Sum over the repeats: [.., times * n, ..] seen as [.., times, n, ..]; or,
 * at the greatest rank, the repeats one by one. */
static hob_status repeat_dim(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    int64_t dim = ad_dim(call->args[1].u.i64, meta->rank);
    int64_t times = call->args[2].u.i64;
    int64_t size = meta->shape[dim];
    hob_tensor *grad = call->grads[0];
    hob_tensor *total;

    if (!times || !ad_count(meta)) {
        call->out_grads[0] = ad_zeros(scope, meta, grad);
    } else if (meta->rank < HOB_MAX_RANK) {
        struct hob_meta split = *meta;

        split.rank++;
        memcpy(split.shape + dim + 1, meta->shape + dim,
               (size_t)(meta->rank - dim) * sizeof(int64_t));
        split.shape[dim] = times;
        total = hob_sum_dim(scope, ad_reshape(scope, grad, &split), dim);
        call->out_grads[0] = ad_reshape(scope, total, meta);
    } else {
        total = ad_narrow(scope, grad, dim, 0, size);
        for (int64_t i = 1; i < times; i++)
            total =
                hob_add(scope, total,
                        ad_narrow(scope, grad, dim, i * size, (i + 1) * size));
        call->out_grads[0] = total;
    }
    return HOB_OK;
}

/* Back along one dimension: what was padded is added to what it was read
 * from, the edge or what it mirrors. */
static hob_tensor *unpad(hob_scope *scope, hob_tensor *grad, int64_t dim,
                         int64_t size, int64_t before, int64_t after,
                         int is_edge)
{
    hob_tensor *sum = ad_narrow(scope, grad, dim, before, before + size);
    const int64_t counts[2] = {before, after};

    for (int i = 0; i < 2; i++) {
        const int64_t count = is_edge ? 1 : counts[i];
        /* Mirrors leave out the edge itself. */
        const int64_t first = i == 0    ? !is_edge
                              : is_edge ? size - 1
                                        : size - 1 - count;
        int64_t starts[HOB_MAX_RANK] = {0}, ends[HOB_MAX_RANK];
        hob_tensor *part;

        if (!counts[i])
            continue;
        part = ad_narrow(scope, grad, dim, i ? before + size : 0,
                         i ? before + size + after : before);
        if (is_edge)
            part = hob_sum_dim(scope, part, dim);
        else
            part = hob_flip(scope, part, &dim, 1);
        for (int64_t k = 0; k <= dim; k++)
            ends[k] = INT64_MAX;
        starts[dim] = first;
        ends[dim] = first + count;
        part = hob_add(scope, part,
                       ad_narrow(scope, sum, dim, first, first + count));
        sum = hob_slice_assign(scope, hob_move(scope, sum), part, starts,
                               (uint32_t)dim + 1, ends, (uint32_t)dim + 1, NULL,
                               0);
    }
    return sum;
}

static hob_status pad(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *x = &call->input_metas[0];
    const hob_value *padding = &call->args[1];
    const enum hob_pad_mode mode = (enum hob_pad_mode)call->args[2].u.i64;
    int64_t back[2 * HOB_MAX_RANK];
    hob_tensor *grad = call->grads[0];

    if (mode == HOB_PAD_MODE_CONSTANT) {
        for (uint32_t i = 0; i < padding->count; i++)
            back[i] = -padding->u.i64s[i];
        call->out_grads[0] = hob_pad(scope, grad, back, padding->count,
                                     HOB_PAD_MODE_CONSTANT, hob_i64(0));
        return HOB_OK;
    }
    for (uint32_t i = padding->count / 2; i-- > 0;) { /* the last one first */
        const uint32_t dim = x->rank - 1 - i;

        grad = unpad(scope, grad, dim, x->shape[dim], padding->u.i64s[2 * i],
                     padding->u.i64s[2 * i + 1], mode == HOB_PAD_MODE_EDGE);
    }
    call->out_grads[0] = grad;
    return HOB_OK;
}

static hob_status roll(hob_scope *scope, const struct hob_grad_call *call)
{
    const hob_value *dims = &call->args[2];
    const uint32_t rank = call->input_metas[0].rank;
    int64_t sums[HOB_MAX_RANK] = {0}, all[HOB_MAX_RANK];

    /* One shift a dimension, below its size. */
    for (uint32_t i = 0; i < dims->count; i++) {
        const int64_t dim = ad_dim(dims->u.i64s[i], rank);
        const int64_t size = call->input_metas[0].shape[dim];

        if (size)
            sums[dim] = (sums[dim] - call->args[1].u.i64s[i] % size) % size;
    }
    for (uint32_t i = 0; i < rank; i++)
        all[i] = i;
    call->out_grads[0] = hob_roll(scope, call->grads[0], sums, rank, all, rank);
    return HOB_OK;
}

static hob_status triu(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_triu(scope, call->grads[0], call->args[1].u.i64);
    return HOB_OK;
}

static hob_status tril(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_tril(scope, call->grads[0], call->args[1].u.i64);
    return HOB_OK;
}

#define HEAD .struct_size = sizeof(struct hob_backward)
#define CHEAP HEAD, .flags = HOB_BACKWARD_MEMORY_BOUND

static const struct ad_rule rules[] = {
    {HOB_OP_RESHAPE, {CHEAP, .backward = reshape}},
    {HOB_OP_PERMUTE, {CHEAP, .backward = permute}},
    {HOB_OP_SWAP_DIMS, {CHEAP, .backward = swap_dims}},
    {HOB_OP_SLICE, {CHEAP, .backward = slice}},
    {HOB_OP_EXPAND, {CHEAP, .backward = expand}},
    {HOB_OP_FLIP, {CHEAP, .backward = flip}},
    {HOB_OP_SQUEEZE, {CHEAP, .backward = reshape}},
    {HOB_OP_UNSQUEEZE, {CHEAP, .backward = reshape}},
    {HOB_OP_UNFOLD, {CHEAP, .backward = unfold}},
    {HOB_OP_CAT, {HEAD, .backward = cat}},
    {HOB_OP_STACK, {HEAD, .backward = stack}},
    {HOB_OP_SPLIT, {CHEAP, .backward = parts}},
    {HOB_OP_SPLIT_SIZES, {CHEAP, .backward = parts}},
    {HOB_OP_CHUNK, {CHEAP, .backward = parts}},
    {HOB_OP_REPEAT_DIM, {CHEAP, .backward = repeat_dim}},
    {HOB_OP_PAD, {CHEAP, .backward = pad}},
    {HOB_OP_ROLL, {CHEAP, .backward = roll}},
    {HOB_OP_TRIU, {CHEAP, .backward = triu}},
    {HOB_OP_TRIL, {CHEAP, .backward = tril}},
    {HOB_OP_SLICE_ASSIGN, {CHEAP, .backward = slice_assign}},
};

#undef CHEAP
#undef HEAD

const struct ad_family ad_rules_shape = {rules,
                                         sizeof(rules) / sizeof(rules[0])};

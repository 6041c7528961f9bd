/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flash_attention.c - attention whose memory does not grow with the square of
 * the sequence, and its gradient.
 *
 * Here are shapes, the bodies, which every backend can run, and the backward
 * rule. flex has kernels of its own, forward.c and backward.c, and so have GPUs
 * forward, gpu.c; their gradients are the body's.
 */
#include "flash_attention_glue.h"

#include "job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- shapes ---- */

struct text {
    char text[20 * HOB_MAX_RANK + 3];
};

/* SHAPE as in "[2, 3]". */
static struct text shape_text(const int64_t *shape, uint32_t rank)
{
    struct text out;
    size_t used = 0;

    out.text[used++] = '[';
    for (uint32_t i = 0; i < rank; i++)
        used += (size_t)snprintf(out.text + used, sizeof(out.text) - used - 1,
                                 "%s%" PRId64, i ? ", " : "", shape[i]);
    out.text[used++] = ']';
    out.text[used] = 0;
    return out;
}

static struct text view_text(const struct hob_view *view)
{
    return shape_text(view->shape, view->rank);
}

/* Broadcast LEAD with SIZES, both aligned at their last. */
static int broadcast(struct hob_meta *lead, const int64_t *sizes, uint32_t rank)
{
    if (rank > lead->rank) {
        const uint32_t more = rank - lead->rank;

        for (uint32_t i = lead->rank; i-- > 0;)
            lead->shape[i + more] = lead->shape[i];
        for (uint32_t i = 0; i < more; i++)
            lead->shape[i] = 1;
        lead->rank = (uint8_t)rank;
    }
    for (uint32_t i = 0; i < rank; i++) {
        int64_t *size = &lead->shape[lead->rank - rank + i];

        if (*size == 1)
            *size = sizes[i];
        else if (sizes[i] != 1 && sizes[i] != *size)
            return 0;
    }
    return 1;
}

static hob_status check_mask(struct hob_call *call, const struct hob_view *mask,
                             const struct hob_meta *lead, int64_t s_q,
                             int64_t s_k)
{
    int64_t scores[HOB_MAX_RANK];
    const uint32_t rank = lead->rank + 2u;
    int fits;

    for (uint32_t i = 0; i < lead->rank; i++)
        scores[i] = lead->shape[i];
    scores[rank - 2] = s_q;
    scores[rank - 1] = s_k;
    fits = mask->rank <= rank;
    for (uint32_t i = 0; i < mask->rank && fits; i++)
        fits = mask->shape[i] == 1 ||
               mask->shape[i] == scores[rank - mask->rank + i];
    if (fits)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: mask is %s; it must broadcast to the scores, "
                            "%s ([.., s_q, s_k])",
                            call->op_name, view_text(mask).text,
                            shape_text(scores, rank).text);
}

/* Check what both ops begin and end with; LEAD gets the leading dimensions. */
static hob_status check(struct hob_call *call,
                        const struct flash_places *places,
                        struct hob_meta *lead)
{
    const struct hob_view *views[3] = {
        hob_arg_view(call, 0), hob_arg_view(call, 1), hob_arg_view(call, 2)};
    const struct hob_view *q = views[0], *k = views[1], *v = views[2];
    const struct hob_view *mask = hob_arg_view(call, places->mask);
    const hob_value *scale = &call->args[places->scale];

    for (int i = 0; i < 3; i++)
        if (views[i]->rank < 2)
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: %c is %s; it must have at least 2 dimensions, "
                "[.., sequence, size]: unsqueeze it",
                call->op_name, "qkv"[i], view_text(views[i]).text);
    if (q->shape[q->rank - 1] != k->shape[k->rank - 1])
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: q is %s, k is %s; their last dimensions must be equal",
            call->op_name, view_text(q).text, view_text(k).text);
    if (k->shape[k->rank - 2] != v->shape[v->rank - 2])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: k is %s, v is %s; their second last "
                                "dimensions, the keys, must be equal",
                                call->op_name, view_text(k).text,
                                view_text(v).text);
    lead->rank = 0;
    for (int i = 0; i < 3; i++)
        if (!broadcast(lead, views[i]->shape, views[i]->rank - 2u))
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: leading dimensions do not broadcast: q is %s, k is %s, "
                "v is %s",
                call->op_name, view_text(q).text, view_text(k).text,
                view_text(v).text);
    if (scale->tag != HOB_TAG_ABSENT && !isfinite(scale->u.f64))
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "%s: scale is %g; it must be finite",
                                call->op_name, scale->u.f64);
    return mask ? check_mask(call, mask, lead, q->shape[q->rank - 2],
                             k->shape[k->rank - 2])
                : HOB_OK;
}

/* OUT [lead.., rows, columns]. */
static void set_shape(struct hob_meta *out, const struct hob_meta *lead,
                      int64_t rows, int64_t columns)
{
    for (uint32_t i = 0; i < lead->rank; i++)
        out->shape[i] = lead->shape[i];
    out->shape[lead->rank] = rows;
    out->shape[lead->rank + 1] = columns;
    out->rank = (uint8_t)(lead->rank + 2);
}

hob_status flash_attention_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *q = hob_arg_view(call, 0);
    const struct hob_view *v = hob_arg_view(call, 2);
    struct hob_meta lead;
    hob_status st = check(call, &flash_attention_places, &lead);

    if (!st)
        set_shape(out, &lead, q->shape[q->rank - 2], v->shape[v->rank - 1]);
    return st;
}

hob_status flash_attention_grad_infer(struct hob_call *call,
                                      struct hob_meta *out)
{
    static const char *const names[2] = {"out", "grad"};
    const struct hob_view *views[2] = {hob_arg_view(call, 3),
                                       hob_arg_view(call, 4)};
    const struct hob_view *q = hob_arg_view(call, 0);
    const struct hob_view *k = hob_arg_view(call, 1);
    const struct hob_view *v = hob_arg_view(call, 2);
    const int64_t s_q = q->rank > 1 ? q->shape[q->rank - 2] : 0;
    struct hob_meta lead;
    hob_status st = check(call, &flash_attention_grad_places, &lead);

    if (st)
        return st;
    /* out[0] serves to tell the shape of the op's result. */
    set_shape(&out[0], &lead, s_q, v->shape[v->rank - 1]);
    for (int j = 0; j < 2; j++) {
        int equal = views[j]->rank == out[0].rank;

        for (uint32_t i = 0; i < out[0].rank && equal; i++)
            equal = views[j]->shape[i] == out[0].shape[i];
        if (!equal)
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: %s is %s; it must have the shape of flash.attention's "
                "result, %s",
                call->op_name, names[j], view_text(views[j]).text,
                shape_text(out[0].shape, out[0].rank).text);
    }
    set_shape(&out[0], &lead, s_q, q->shape[q->rank - 1]);
    set_shape(&out[1], &lead, k->shape[k->rank - 2], q->shape[q->rank - 1]);
    set_shape(&out[2], &lead, k->shape[k->rank - 2], v->shape[v->rank - 1]);
    return HOB_OK;
}

/* ---- bodies ---- */

/* Attention step by step: what both bodies have in common. */
struct plain {
    hob_tensor *q, *k, *v; /* all leading dimensions; f64 or f32 */
    hob_tensor *hidden;    /* as the scores; NULL: none */
    hob_tensor *dead;      /* [.., s_q, 1]: all keys are hidden */
    hob_tensor *weights;
    hob_dtype dtype; /* of the arguments */
    double scale;
    int32_t rank;
};

/* f16 and bf16 are computed in f32: a product of two elements can overflow. */
static hob_tensor *widen(hob_scope *scope, hob_tensor *x)
{
    const hob_dtype dtype = hob_tensor_dtype(x);

    return dtype == HOB_DTYPE_F16 || dtype == HOB_DTYPE_BF16
               ? hob_cast(scope, x, HOB_DTYPE_F32)
               : x;
}

static hob_tensor *transpose(hob_scope *scope, hob_tensor *x)
{
    return hob_swap_dims(scope, x, -2, -1);
}

/* X with the leading dimensions LEAD before its last two. */
static hob_tensor *expand(hob_scope *scope, hob_tensor *x,
                          const struct hob_meta *lead)
{
    const int32_t rank = hob_tensor_rank(x);
    const int64_t *sizes = hob_tensor_shape(x);
    struct hob_meta shape;

    set_shape(&shape, lead, sizes[rank - 2], sizes[rank - 1]);
    return hob_expand(scope, x, shape.shape, shape.rank);
}

/* True where key j > query i + s_k - s_q: [s_q, s_k]. */
static hob_tensor *later(hob_scope *scope, hob_tensor *like, int64_t s_q,
                         int64_t s_k)
{
    hob_device *device = hob_scope_host(scope)->tensor_device(like);
    hob_tensor *keys = hob_arange(scope, 0, s_k, 1, device, HOB_DTYPE_I64);
    hob_tensor *last =
        hob_arange(scope, s_k - s_q, s_k, 1, device, HOB_DTYPE_I64);

    return hob_greater(scope, keys,
                       hob_reshape(scope, last, (int64_t[]){s_q, 1}, 2));
}

static void plain_weights(hob_scope *scope, struct plain *plain, hob_tensor *q,
                          hob_tensor *k, hob_tensor *v, hob_tensor *mask,
                          hob_scalar scale, int causal)
{
    hob_tensor *const tensors[3] = {q, k, v};
    hob_tensor *wide[3], *scores;
    struct hob_meta lead = {.rank = 0};
    int64_t s_q, s_k;

    plain->dtype = hob_tensor_dtype(q);
    for (int i = 0; i < 3; i++)
        (void)broadcast(&lead, hob_tensor_shape(tensors[i]),
                        (uint32_t)hob_tensor_rank(tensors[i]) - 2);
    for (int i = 0; i < 3; i++)
        wide[i] = expand(scope, widen(scope, tensors[i]), &lead);
    plain->q = wide[0];
    plain->k = wide[1];
    plain->v = wide[2];
    plain->rank = lead.rank + 2;
    s_q = hob_tensor_shape(q)[hob_tensor_rank(q) - 2];
    s_k = hob_tensor_shape(k)[hob_tensor_rank(k) - 2];
    plain->scale =
        flash_scale(&scale, hob_tensor_shape(q)[hob_tensor_rank(q) - 1]);
    plain->hidden = mask;
    if (causal) {
        hob_tensor *after = later(scope, q, s_q, s_k);

        plain->hidden = mask ? hob_logical_or(scope, mask, after) : after;
    }
    scores = hob_matmul(scope,
                        hob_mul_scalar(scope, plain->q, hob_f64(plain->scale)),
                        transpose(scope, plain->k));
    if (!plain->hidden) {
        plain->weights = hob_softmax(scope, scores, -1);
        return;
    }
    if (hob_scope_host(scope)->tensor_is_error(scores) ||
        hob_scope_host(scope)->tensor_is_error(plain->hidden)) {
        plain->weights = scores;
        return;
    }
    plain->hidden = hob_expand(scope, plain->hidden, hob_tensor_shape(scores),
                               (uint32_t)plain->rank);
    plain->dead = hob_all_dim(scope, plain->hidden, -1);
    scores = hob_mask_fill(scope, scores, plain->hidden, hob_f64(-INFINITY));
    plain->weights = hob_mask_fill(scope, hob_softmax(scope, scores, -1),
                                   plain->dead, hob_f64(0));
}

hob_tensor *flash_attention_body(hob_scope *scope, hob_tensor *q, hob_tensor *k,
                                 hob_tensor *v, hob_tensor *mask,
                                 hob_scalar scale, int causal)
{
    struct plain plain = {.hidden = NULL};
    hob_tensor *out;

    plain_weights(scope, &plain, q, k, v, mask, scale, causal);
    out = hob_matmul(scope, plain.weights, plain.v);
    /* Values that are infinite or NaN do not reach a query without keys. */
    if (plain.dead)
        out = hob_mask_fill(scope, out, plain.dead, hob_f64(0));
    return hob_cast(scope, out, plain.dtype);
}

/* With p the weights and dp = grad v^T, the slopes of the scores are p (dp -
 * sum(p dp)), and that sum over keys is grad times out. */
hob_status flash_attention_grad_body(hob_scope *scope, hob_tensor *q,
                                     hob_tensor *k, hob_tensor *v,
                                     hob_tensor *out, hob_tensor *grad,
                                     hob_tensor *mask, hob_scalar scale,
                                     int causal, hob_tensor **out_0,
                                     hob_tensor **out_1, hob_tensor **out_2)
{
    struct plain plain = {.hidden = NULL};
    hob_tensor *g = widen(scope, grad), *delta, *slopes;

    plain_weights(scope, &plain, q, k, v, mask, scale, causal);
    if (plain.dead)
        g = hob_mask_fill(scope, g, plain.dead, hob_f64(0));
    delta = hob_sum_dim(scope, hob_mul(scope, g, widen(scope, out)), -1);
    slopes = hob_matmul(scope, g, transpose(scope, plain.v));
    slopes = hob_mul(scope, plain.weights, hob_sub(scope, slopes, delta));
    if (plain.hidden)
        slopes = hob_mask_fill(scope, slopes, plain.hidden, hob_f64(0));
    slopes = hob_mul_scalar(scope, slopes, hob_f64(plain.scale));
    *out_0 = hob_matmul(scope, slopes, plain.k);
    if (plain.dead)
        *out_0 = hob_mask_fill(scope, *out_0, plain.dead, hob_f64(0));
    *out_1 = hob_matmul(scope, transpose(scope, slopes), plain.q);
    *out_2 = hob_matmul(scope, transpose(scope, plain.weights), g);
    *out_0 = hob_cast(scope, *out_0, plain.dtype);
    *out_1 = hob_cast(scope, *out_1, plain.dtype);
    *out_2 = hob_cast(scope, *out_2, plain.dtype);
    return hob_scope_host(scope)->scope_status(scope);
}

/* ---- the gradient ---- */

hob_status flash_attention_backward(hob_scope *scope,
                                    const struct hob_grad_call *call)
{
    hob_tensor *const *inputs = call->inputs;
    hob_tensor *grads[3] = {NULL, NULL, NULL};
    hob_status st;

    if (!call->grads[0])
        return HOB_OK;
    st = flash_attention_grad(scope, inputs[0], inputs[1], inputs[2],
                              call->rets[0], call->grads[0], inputs[3],
                              call->args[4], call->args[5].u.i64 != 0,
                              &grads[0], &grads[1], &grads[2]);
    for (int i = 0; i < 3 && !st; i++)
        if (call->needs_grad[i])
            call->out_grads[i] = grads[i];
    return st;
}

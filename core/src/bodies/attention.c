/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - the bodies of attention and its gradient.
 */
#include "bodies.h"
#include "util.h"

#include <math.h>
#include <string.h>

/* True where a query must not see a key: the last query sees all keys. */
static hob_tensor *future(hob_scope *scope, hob_tensor *x, int64_t queries,
                          int64_t keys)
{
    hob_device *device = hob_scope_host(scope)->tensor_device(x);
    hob_tensor *row = hob_unsqueeze(
        scope, hob_arange(scope, 0, queries, 1, device, HOB_DTYPE_I64), 1);
    hob_tensor *column = hob_arange(scope, 0, keys, 1, device, HOB_DTYPE_I64);

    return hob_greater(scope, column,
                       hob_add_scalar(scope, row, hob_i64(keys - queries)));
}

/* The scores of attention, and what its gradient needs of them. */
struct scores {
    hob_tensor *scores;
    hob_tensor *query, *key; /* computed in; query times scale */
    hob_tensor *tanh;        /* NULL: no cap */
    hob_tensor *hidden;      /* true where hidden; NULL: nowhere */
    double scale;
};

/* cap(query key^T scale) + bias; nothing is hidden yet. */
static struct scores scores_of(hob_scope *scope, hob_tensor *query,
                               hob_tensor *key, hob_tensor *mask,
                               hob_tensor *bias, hob_scalar scale,
                               hob_scalar softcap, int causal)
{
    int32_t rank = hob_tensor_rank(query);
    int64_t width = hob_tensor_shape(query)[rank - 1];
    int64_t queries = hob_tensor_shape(query)[rank - 2];
    int64_t keys = hob_tensor_shape(key)[rank - 2];
    struct scores out = {.hidden = mask};

    out.scale = scale.tag == HOB_TAG_ABSENT
                    ? 1 / sqrt((double)(width ? width : 1))
                    : scale.u.f64;
    out.query =
        hob_mul_scalar(scope, hob__part_up(scope, query), hob_f64(out.scale));
    out.key = hob__part_up(scope, key);
    out.scores =
        hob_matmul(scope, out.query, hob_swap_dims(scope, out.key, -1, -2));
    if (softcap.tag != HOB_TAG_ABSENT) {
        out.tanh = hob_tanh(scope, hob_mul_scalar(scope, out.scores,
                                                  hob_f64(1 / softcap.u.f64)));
        out.scores = hob_mul_scalar(scope, out.tanh, softcap);
    }
    if (bias)
        out.scores = hob_add(scope, out.scores, hob__part_up(scope, bias));
    if (causal) {
        hob_tensor *later = future(scope, query, queries, keys);

        out.hidden = mask ? hob_logical_or(scope, mask, later) : later;
    }
    return out;
}

/* X with VALUE in the place of what is equal to WHAT. */
static hob_tensor *replace(hob_scope *scope, hob_tensor *x, double what,
                           double value)
{
    return hob_where(scope, hob_equal_scalar(scope, x, hob_f64(what)),
                     hob__part_constant(scope, x, hob_f64(value)), x);
}

/* X with VALUE where HIDDEN, if there is one, is true. */
static hob_tensor *hide(hob_scope *scope, hob_tensor *hidden, hob_tensor *x,
                        double value)
{
    return hidden ? hob_where(scope, hidden,
                              hob__part_constant(scope, x, hob_f64(value)), x)
                  : x;
}

/* A row that is hidden as a whole gives 0: its maximum is taken as 0, its sum
 * as 1. */
hob_status hob__body_attention(hob_scope *scope, hob_tensor *query,
                               hob_tensor *key, hob_tensor *value,
                               hob_tensor *mask, hob_tensor *bias,
                               hob_scalar scale, hob_scalar softcap, int causal,
                               hob_tensor **out_0, hob_tensor **out_lse)
{
    int32_t rank = hob_tensor_rank(query);
    hob_dtype dtype = hob_tensor_dtype(query);
    struct scores s =
        scores_of(scope, query, key, mask, bias, scale, softcap, causal);
    hob_tensor *scores, *peak, *part, *sum, *whole;

    value = hob__part_up(scope, value);
    if (!hob_tensor_shape(key)[rank - 2]) { /* nothing to see */
        int64_t shape[HOB_MAX_RANK];

        memcpy(shape, hob_tensor_shape(query), (size_t)rank * sizeof(shape[0]));
        shape[rank - 1] = 1;
        *out_lse = hob__part_full(scope, s.query, shape, (uint32_t)rank,
                                  hob_f64(-INFINITY));
        *out_0 =
            hob__part_down(scope, hob_matmul(scope, s.scores, value), dtype);
        return HOB_OK;
    }
    scores = hide(scope, s.hidden, s.scores, -INFINITY);
    peak = hob_max_dim(scope, scores, -1);
    if (s.hidden)
        peak = replace(scope, peak, -INFINITY, 0);
    part =
        hide(scope, s.hidden, hob_exp(scope, hob_sub(scope, scores, peak)), 0);
    sum = hob_sum_dim(scope, part, -1);
    whole = s.hidden ? replace(scope, sum, 0, 1) : sum;
    *out_lse = hob_add(scope, peak, hob_log(scope, whole));
    if (s.hidden)
        *out_lse = hob_where(scope, hob_equal_scalar(scope, sum, hob_f64(0)),
                             hob__part_constant(scope, sum, hob_f64(-INFINITY)),
                             *out_lse);
    *out_0 = hob__part_down(
        scope, hob_matmul(scope, hob_div(scope, part, whole), value), dtype);
    return HOB_OK;
}

hob_tensor *hob__body_attention_delta(hob_scope *scope, hob_tensor *output,
                                      hob_tensor *grad)
{
    return hob_sum_dim(
        scope,
        hob_mul(scope, hob__part_up(scope, output), hob__part_up(scope, grad)),
        -1);
}

hob_status hob__body_attention_backward(
    hob_scope *scope, hob_tensor *query, hob_tensor *key, hob_tensor *value,
    hob_tensor *mask, hob_tensor *bias, hob_tensor *lse, hob_tensor *delta,
    hob_tensor *grad, hob_scalar scale, hob_scalar softcap, int causal,
    int bias_grad, hob_tensor **out_d_query, hob_tensor **out_d_key,
    hob_tensor **out_d_value, hob_tensor **out_d_bias)
{
    hob_dtype dtype = hob_tensor_dtype(query);
    struct scores s =
        scores_of(scope, query, key, mask, bias, scale, softcap, causal);
    hob_tensor *weight, *slope;

    lse = hob__part_up(scope, lse);
    if (s.hidden)
        lse = replace(scope, lse, -INFINITY, 0);
    grad = hob__part_up(scope, grad);
    weight = hob_exp(
        scope, hob_sub(scope, hide(scope, s.hidden, s.scores, -INFINITY), lse));
    weight = hide(scope, s.hidden, weight, 0);
    slope = hob_matmul(
        scope, grad, hob_swap_dims(scope, hob__part_up(scope, value), -1, -2));
    slope = hob_mul(scope, weight,
                    hob_sub(scope, slope, hob__part_up(scope, delta)));
    slope = hide(scope, s.hidden, slope, 0);
    *out_d_bias = bias_grad ? hob__part_down(scope, slope, dtype) : NULL;
    if (s.tanh)
        slope = hob_mul(
            scope, slope,
            hob_rsub_scalar(scope, hob_square(scope, s.tanh), hob_f64(1)));
    *out_d_query =
        hob__part_down(scope,
                       hob_mul_scalar(scope, hob_matmul(scope, slope, s.key),
                                      hob_f64(s.scale)),
                       dtype);
    *out_d_key = hob__part_down(
        scope, hob_matmul(scope, hob_swap_dims(scope, slope, -1, -2), s.query),
        dtype);
    *out_d_value = hob__part_down(
        scope, hob_matmul(scope, hob_swap_dims(scope, weight, -1, -2), grad),
        dtype);
    return HOB_OK;
}

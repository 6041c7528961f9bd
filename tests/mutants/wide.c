/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.c - keeps every rule with signatures of all sorts: indices, lists,
 * optional tensors and attributes, enums, several results, no tensor at all,
 * sizes that depend on data, shapes that are hard to guess, a domain, and a
 * kernel for somebody else's op. Nothing may be found.
 */
#include "wide_glue.h"

#include <math.h>

hob_tensor *w_pick_body(hob_scope *scope, hob_tensor *x, hob_tensor *indices,
                        int64_t dim)
{
    return hob_gather(scope, x, indices, dim);
}

hob_tensor *w_join_body(hob_scope *scope, hob_tensor *const *xs,
                        uint32_t xs_count, int64_t dim, int64_t times)
{
    return hob_mul_scalar(scope, hob_cat(scope, xs, xs_count, dim),
                          hob_i64(times));
}

static hob_status copy_shape(const struct hob_view *view, uint32_t rank,
                             struct hob_meta *out)
{
    out->rank = (uint8_t)rank;
    for (uint32_t d = 0; d < rank; d++)
        out->shape[d] = view->shape[d];
    return HOB_OK;
}

hob_status w_norm_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 1);

    if (!x->rank || !x->shape[x->rank - 1])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "x needs a last dimension with elements");
    if (weight &&
        (weight->rank != 1 || weight->shape[0] != x->shape[x->rank - 1]))
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "weight must have the size of x's last "
                                "dimension");
    (void)copy_shape(x, x->rank, &out[0]);
    (void)copy_shape(x, x->rank, &out[1]);
    out[1].shape[x->rank - 1] = 1;
    return HOB_OK;
}

hob_status w_norm_body(hob_scope *scope, hob_tensor *x, hob_tensor *weight,
                       double eps, enum w_norm_mode mode, hob_tensor **out_0,
                       hob_tensor **out_1)
{
    hob_tensor *size = hob_mean_dim(scope, hob_mul(scope, x, x), -1);

    size = hob_add_scalar(scope, size, hob_f64(eps < 0 ? -eps : eps));
    if (mode == W_NORM_MODE_ROOT)
        size = hob_sqrt(scope, size);
    *out_0 = hob_div(scope, x, size);
    if (weight)
        *out_0 = hob_mul(scope, *out_0, weight);
    *out_1 = size;
    return hob_scope_host(scope)->scope_status(scope);
}

hob_status w_range_infer(struct hob_call *call, struct hob_meta *out)
{
    if (call->args[0].u.i64 < 0)
        return call->host->fail(call, HOB_ERR_RANGE, "n must not be negative");
    out->rank = 1;
    out->shape[0] = call->args[0].u.i64;
    return HOB_OK;
}

hob_tensor *w_range_body(hob_scope *scope, int64_t n, hob_device *device,
                         hob_dtype dtype)
{
    return hob_arange(scope, 0, n, 1, device, dtype);
}

hob_status w_positive_flex(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const float *values = x->data;
    struct hob_meta meta = {.dtype = HOB_DTYPE_F32, .rank = 1};
    int64_t count = hob_view_count(x);
    hob_status status;
    float *out;

    (void)device;
    for (int64_t i = 0; i < count; i++)
        meta.shape[0] += values[i] > 0;
    status = call->host->result(call, 0, &meta);
    if (status)
        return status;
    out = hob_ret_view(call, 0)->data;
    for (int64_t i = 0; i < count; i++)
        if (values[i] > 0)
            *out++ = values[i];
    return HOB_OK;
}

static int same_size(const struct hob_view *a, uint32_t i,
                     const struct hob_view *b, uint32_t k)
{
    return a->shape[a->rank - i] == b->shape[b->rank - k];
}

/* q [b, s, d], k [b, t, d], v [b, t, e], mask [s, t]. */
hob_status w_attend_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *q = hob_arg_view(call, 0);
    const struct hob_view *k = hob_arg_view(call, 1);
    const struct hob_view *v = hob_arg_view(call, 2);
    const struct hob_view *mask = hob_arg_view(call, 3);

    if (q->rank != 3 || k->rank != 3 || v->rank != 3 ||
        !same_size(q, 3, k, 3) || !same_size(q, 3, v, 3) ||
        !same_size(q, 1, k, 1) || !same_size(k, 2, v, 2) || !k->shape[1] ||
        !q->shape[2])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "q, k and v must be [b, s, d], [b, t, d] and "
                                "[b, t, e]");
    if (mask && (mask->rank != 2 || !same_size(mask, 2, q, 2) ||
                 !same_size(mask, 1, k, 2)))
        return call->host->fail(call, HOB_ERR_SHAPE, "mask must be [s, t]");
    (void)copy_shape(q, 2, out);
    out->rank = 3;
    out->shape[2] = v->shape[2];
    return HOB_OK;
}

/* 0 where S >= T, -1000 elsewhere. */
static hob_tensor *causal_bias(hob_scope *scope, hob_tensor *scores)
{
    const int64_t *shape = hob_tensor_shape(scores);
    hob_device *device = hob_scope_host(scope)->tensor_device(scores);
    hob_tensor *rows = hob_arange(scope, 0, shape[1], 1, device, HOB_DTYPE_F32);
    hob_tensor *columns =
        hob_arange(scope, 0, shape[2], 1, device, HOB_DTYPE_F32);
    hob_tensor *later =
        hob_greater(scope, columns, hob_unsqueeze(scope, rows, 1));

    return hob_mul_scalar(scope,
                          hob_cast(scope, later, hob_tensor_dtype(scores)),
                          hob_f64(-1000));
}

hob_tensor *w_attend_body(hob_scope *scope, hob_tensor *q, hob_tensor *k,
                          hob_tensor *v, hob_tensor *mask, hob_scalar scale,
                          int causal)
{
    double factor = scale.tag == HOB_TAG_F64
                        ? scale.u.f64
                        : 1 / sqrt((double)hob_tensor_shape(q)[2]);
    hob_tensor *scores = hob_mul_scalar(
        scope, hob_matmul(scope, q, hob_swap_dims(scope, k, 1, 2)),
        hob_f64(factor));

    if (causal)
        scores = hob_add(scope, scores, causal_bias(scope, scores));
    if (mask)
        scores =
            hob_add(scope, scores,
                    hob_mul_scalar(
                        scope, hob_cast(scope, mask, hob_tensor_dtype(scores)),
                        hob_f64(3)));
    return hob_matmul(scope, hob_softmax(scope, scores, -1), v);
}

/* Nobody guesses 77. */
hob_status w_fold_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *rows = hob_arg_view(call, 1);

    if (x->rank != 2 || x->shape[0] != 77 || rows->rank != 1)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "x must be [77, n] and rows a vector");
    out->rank = 2;
    out->shape[0] = rows->shape[0];
    out->shape[1] = x->shape[1];
    return HOB_OK;
}

hob_tensor *w_fold_body(hob_scope *scope, hob_tensor *x, hob_tensor *rows,
                        double by, enum w_fold_mode mode)
{
    (void)mode;
    return hob_mul_scalar(scope, hob_select(scope, x, rows, 0), hob_f64(by));
}

hob_tensor *w_logs_body(hob_scope *scope, hob_tensor *x)
{
    return hob_log(scope, x);
}

hob_status w_relu_flex(void *device, struct hob_call *call)
{
    const double *x = hob_arg_view(call, 0)->data;
    double *y = hob_ret_view(call, 0)->data;

    (void)device;
    for (int64_t i = 0; i < hob_view_count(hob_ret_view(call, 0)); i++)
        y[i] = x[i] < 0 ? 0 : x[i];
    return HOB_OK;
}

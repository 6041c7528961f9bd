/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linalg.c - matrix products and decompositions.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>

hob_status hob__infer_matmul(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *lhs = hob_arg_view(call, 0);
    const struct hob_view *rhs = hob_arg_view(call, 1);
    uint32_t axis;

    if (lhs->rank < 2 || rhs->rank < 2)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: lhs is %s, rhs is %s; both must have at least 2 dimensions: "
            "unsqueeze a vector",
            call->op_name, hob__view_text(lhs).text, hob__view_text(rhs).text);
    if (lhs->shape[lhs->rank - 1] != rhs->shape[rhs->rank - 2])
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: inner sizes differ: lhs is %s, rhs is %s; lhs's last must "
            "equal rhs's second last",
            call->op_name, hob__view_text(lhs).text, hob__view_text(rhs).text);
    hob__meta_copy_shape(out, lhs);
    out->rank = (uint8_t)(lhs->rank - 2);
    if (!hob__broadcast(out, rhs->shape, rhs->rank - 2u, &axis))
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: leading dimensions do not broadcast: lhs is %s, rhs is %s",
            call->op_name, hob__view_text(lhs).text, hob__view_text(rhs).text);
    out->shape[out->rank] = lhs->shape[lhs->rank - 2];
    out->shape[out->rank + 1] = rhs->shape[rhs->rank - 1];
    out->rank = (uint8_t)(out->rank + 2);
    return hob__infer_check(call, out);
}

hob_status hob__infer_linear(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *bias = hob_arg_view(call, 2);
    hob_status st = hob__infer_rank(call, 1, "weight", 2, "[in, out]");

    if (st)
        return st;
    if (x->rank < 1 || x->shape[x->rank - 1] != weight->shape[0])
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: inner sizes differ: x is %s, weight is %s; x's last must "
            "equal weight's first (weight is [in, out])",
            call->op_name, hob__view_text(x).text, hob__view_text(weight).text);
    if (bias && (bias->rank != 1 || bias->shape[0] != weight->shape[1]))
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: bias is %s; for weight %s it must be [%" PRId64 "]",
            call->op_name, hob__view_text(bias).text,
            hob__view_text(weight).text, weight->shape[1]);
    hob__meta_copy_shape(out, x);
    out->shape[x->rank - 1] = weight->shape[1];
    return hob__infer_check(call, out);
}

/* Fail unless x is a matrix, or many. */
static hob_status matrices(struct hob_call *call, const char *purpose)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    if (x->rank >= 2)
        return HOB_OK;
    return call->host->fail(
        call, HOB_ERR_SHAPE,
        "%s: x is %s; %s takes matrices, [.., rows, columns]", call->op_name,
        hob__view_text(x).text, purpose);
}

hob_status hob__infer_det(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st = matrices(call, "a determinant");

    if (st)
        return st;
    if (x->shape[x->rank - 2] != x->shape[x->rank - 1])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s; its last two sizes must be "
                                "equal: a determinant is that of a square "
                                "matrix",
                                call->op_name, hob__view_text(x).text);
    hob__meta_copy_shape(out, x);
    out->rank = (uint8_t)(x->rank - 2);
    return HOB_OK;
}

/* Result META is x's batch of matrices [ROWS, COLUMNS]. */
static hob_status sized(struct hob_call *call, struct hob_meta *meta,
                        int64_t rows, int64_t columns)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    hob__meta_copy_shape(meta, x);
    meta->shape[x->rank - 2] = rows;
    meta->shape[x->rank - 1] = columns;
    return hob__infer_check(call, meta);
}

hob_status hob__infer_lu(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t m, n, k;
    hob_status st = matrices(call, "a decomposition");

    if (st)
        return st;
    m = x->shape[x->rank - 2];
    n = x->shape[x->rank - 1];
    k = m < n ? m : n;
    st = sized(call, &out[0], m, m);
    if (!st)
        st = sized(call, &out[1], m, k);
    return st ? st : sized(call, &out[2], k, n);
}

hob_status hob__infer_qr(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t m, n, k;
    hob_status st = matrices(call, "a decomposition");

    if (st)
        return st;
    m = x->shape[x->rank - 2];
    n = x->shape[x->rank - 1];
    k = hob__attr_i64(call, 1) && n < m ? n : m; /* argument 1: reduced */
    st = sized(call, &out[0], m, k);
    return st ? st : sized(call, &out[1], k, n);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - reductions to rank 0, and along one dimension, which stays with
 * size 1.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>
#include <math.h>

/* Fail: nothing can be said of no elements. */
static hob_status fail_empty(struct hob_call *call, const struct hob_view *x)
{
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: x is %s: there is no result without elements",
                            call->op_name, hob__view_text(x).text);
}

static int is_float(const struct hob_view *x)
{
    return (HOB_DTYPE_BIT(x->dtype) & HOB_MASK_FLOAT) != 0;
}

hob_status hob__infer_reduce_all(struct hob_call *call, struct hob_meta *out)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        out[i].rank = 0;
    return HOB_OK;
}

hob_status hob__infer_reduce_all_nonempty(struct hob_call *call,
                                          struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    if (hob_view_count(x) == 0)
        return fail_empty(call, x);
    return hob__infer_reduce_all(call, out);
}

hob_status hob__infer_mean_all(struct hob_call *call, struct hob_meta *out)
{
    return is_float(hob_arg_view(call, 0))
               ? hob__infer_reduce_all(call, out)
               : hob__infer_reduce_all_nonempty(call, out);
}

hob_status hob__infer_reduce_dim(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 1), x, 0, &axis);

    if (st)
        return st;
    for (uint32_t i = 0; i < call->ret_count; i++) {
        hob__meta_copy_shape(&out[i], x);
        out[i].shape[axis] = 1;
    }
    return hob__infer_index_dtype(call, x->shape[axis]);
}

hob_status hob__infer_reduce_dim_nonempty(struct hob_call *call,
                                          struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st = hob__infer_reduce_dim(call, out);
    int64_t count = 1;

    if (st)
        return st;
    for (uint32_t i = 0; i < out->rank; i++)
        count *= out->shape[i] != 0;
    /* An empty axis is harmless where the result is empty too. */
    return count && hob_view_count(x) == 0 ? fail_empty(call, x) : HOB_OK;
}

/* Size 1 at each of the dims, which may be none; none is named twice. */
hob_status hob__infer_reduce_dims(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count, seen = 0;
    const int64_t *dims = hob__attr_list(call, 1, &count);

    hob__meta_copy_shape(out, x);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        hob_status st = hob__infer_axis(call, "dims", dims[i], x, 0, &axis);

        if (st)
            return st;
        if (seen >> axis & 1)
            return call->host->fail(
                call, HOB_ERR_ARGUMENT, "%s: dims %s names dimension %u twice",
                call->op_name, hob__list_text(dims, count).text,
                (unsigned)axis);
        seen |= 1u << axis;
        out->shape[axis] = 1;
    }
    return HOB_OK;
}

hob_status hob__infer_reduce_dims_nonempty(struct hob_call *call,
                                           struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st = hob__infer_reduce_dims(call, out);
    int64_t count = 1;

    if (st)
        return st;
    for (uint32_t i = 0; i < out->rank; i++)
        count *= out->shape[i] != 0;
    return count && hob_view_count(x) == 0 ? fail_empty(call, x) : HOB_OK;
}

hob_status hob__infer_mean_dim(struct hob_call *call, struct hob_meta *out)
{
    return is_float(hob_arg_view(call, 0))
               ? hob__infer_reduce_dim(call, out)
               : hob__infer_reduce_dim_nonempty(call, out);
}

hob_status hob__infer_topk(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t k = hob__attr_i64(call, 1);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 2), x, 0, &axis);

    if (st)
        return st;
    if (k < 0 || k > x->shape[axis])
        return call->host->fail(
            call, HOB_ERR_RANGE,
            "%s: k is %" PRId64 "; dimension %u of %s has %" PRId64
            " elements, so k must be in 0..%" PRId64,
            call->op_name, k, (unsigned)axis, hob__view_text(x).text,
            x->shape[axis], x->shape[axis]);
    for (uint32_t i = 0; i < call->ret_count; i++) {
        hob__meta_copy_shape(&out[i], x);
        out[i].shape[axis] = k;
    }
    return hob__infer_index_dtype(call, x->shape[axis]);
}

/* Of no elements there is no greatest or least one, and no power mean. */
static hob_status check_norm(struct hob_call *call, uint32_t p_index,
                             int is_empty)
{
    double p = call->args[p_index].u.f64;

    if (isnan(p))
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "%s: p is NaN; it must be a number, inf or "
                                "-inf",
                                call->op_name);
    return is_empty && (isinf(p) || p < 0)
               ? fail_empty(call, hob_arg_view(call, 0))
               : HOB_OK;
}

hob_status hob__infer_norm_all(struct hob_call *call, struct hob_meta *out)
{
    hob_status st = hob__infer_reduce_all(call, out);

    return st ? st
              : check_norm(call, 1, hob_view_count(hob_arg_view(call, 0)) == 0);
}

hob_status hob__infer_norm_dim(struct hob_call *call, struct hob_meta *out)
{
    hob_status st = hob__infer_reduce_dim(call, out);
    int64_t count = 1;

    if (st)
        return st;
    for (uint32_t i = 0; i < out->rank; i++)
        count *= out->shape[i] != 0;
    return check_norm(call, 2,
                      count && hob_view_count(hob_arg_view(call, 0)) == 0);
}

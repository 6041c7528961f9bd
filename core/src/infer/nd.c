/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd.c - positions in several dimensions: gather_nd, scatter_nd, argwhere,
 * nonzero.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>

/* The rows of INDICES [.., k], then X's dimensions from the k-th on. */
static hob_status slices(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);
    uint32_t rows, rest;
    int64_t k;

    if (indices->rank == 0)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: indices is %s; its last dimension must hold coordinates",
            call->op_name, hob__view_text(indices).text);
    rows = indices->rank - 1u;
    k = indices->shape[rows];
    if (k < 1 || k > x->rank)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: indices is %s, x is %s; the last size of indices counts "
            "coordinates and must be in 1..%u",
            call->op_name, hob__view_text(indices).text, hob__view_text(x).text,
            (unsigned)x->rank);
    rest = x->rank - (uint32_t)k;
    if (rows + rest > HOB_MAX_RANK)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: indices %s of x %s make slices of %u dimensions; at most %d "
            "are possible",
            call->op_name, hob__view_text(indices).text, hob__view_text(x).text,
            (unsigned)(rows + rest), HOB_MAX_RANK);
    out->rank = (uint8_t)(rows + rest);
    for (uint32_t i = 0; i < rows; i++)
        out->shape[i] = indices->shape[i];
    for (uint32_t i = 0; i < rest; i++)
        out->shape[rows + i] = x->shape[(uint32_t)k + i];
    return HOB_OK;
}

hob_status hob__infer_gather_nd(struct hob_call *call, struct hob_meta *out)
{
    hob_status st = slices(call, out);

    return st ? st : hob__infer_check(call, out);
}

hob_status hob__infer_scatter_nd(struct hob_call *call, struct hob_meta *out)
{
    struct hob_meta expected = *out;
    hob_status st = slices(call, &expected);

    if (st)
        return st;
    hob__meta_copy_shape(out, hob_arg_view(call, 0));
    return hob__infer_equal(call, "value", hob_arg_view(call, 2),
                            "the slices of x at the indices", &expected);
}

/* Coordinates of X must fit the dtype. */
static hob_status fits(struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t most = 0;

    for (uint32_t i = 0; i < x->rank; i++)
        if (x->shape[i] > most)
            most = x->shape[i];
    return hob__infer_index_dtype(call, most);
}

/* The number of rows depends on data: the meta holds the most. */
hob_status hob__infer_argwhere(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st = fits(call);

    if (st)
        return st;
    out->rank = 2;
    out->shape[0] = hob_view_count(x);
    out->shape[1] = x->rank;
    return hob__infer_check(call, out);
}

hob_status hob__infer_nonzero(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st = fits(call);

    if (st)
        return st;
    if (x->rank == 0)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: x is %s and has no coordinates: reshape it to [1]",
            call->op_name, hob__view_text(x).text);
    if (!out) {
        call->ret_count = x->rank;
        return HOB_OK;
    }
    for (uint32_t i = 0; i < call->ret_count && !st; i++) {
        out[i].rank = 1;
        out[i].shape[0] = hob_view_count(x);
        st = hob__infer_check(call, &out[i]);
    }
    return st;
}

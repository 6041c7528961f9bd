/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - elements picked and added at positions. The positions themselves
 * are elements: kernels check them.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>

/* Fail unless indices fit x: equal rank, no larger except along AXIS. */
static hob_status check_indices(struct hob_call *call,
                                const struct hob_view *indices, uint32_t axis)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int fits = indices->rank == x->rank;

    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = i == axis || indices->shape[i] <= x->shape[i];
    if (fits)
        return HOB_OK;
    return call->host->fail(
        call, HOB_ERR_SHAPE,
        "%s: x is %s, indices is %s; they must have the same rank, and "
        "indices must not be larger than x except in dimension %u",
        call->op_name, hob__view_text(x).text, hob__view_text(indices).text,
        (unsigned)axis);
}

hob_status hob__infer_gather(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *indices = hob_arg_view(call, 1);
    uint32_t axis;
    hob_status st = hob__infer_axis(call, "dim", hob__attr_i64(call, 2),
                                    hob_arg_view(call, 0), 0, &axis);

    if (st)
        return st;
    st = check_indices(call, indices, axis);
    if (st)
        return st;
    hob__meta_copy_shape(out, indices);
    return hob__infer_check(call, out);
}

hob_status hob__infer_scatter(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);
    struct hob_meta expected = *out;
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 3), x, 0, &axis);

    if (st)
        return st;
    st = check_indices(call, indices, axis);
    if (st)
        return st;
    hob__meta_copy_shape(&expected, indices);
    hob__meta_copy_shape(out, x);
    return hob__infer_equal(call, "value", hob_arg_view(call, 2), "indices",
                            &expected);
}

/* X with as many slices along DIM as there are indices. */
static hob_status select_shape(struct hob_call *call, int64_t dim,
                               struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t axis;
    hob_status st = hob__infer_axis(call, "dim", dim, x, 0, &axis);

    if (st)
        return st;
    st = hob__infer_rank(call, 1, "indices", 1, "[count]");
    if (st)
        return st;
    hob__meta_copy_shape(out, x);
    out->shape[axis] = hob_arg_view(call, 1)->shape[0];
    return HOB_OK;
}

hob_status hob__infer_select(struct hob_call *call, struct hob_meta *out)
{
    hob_status st = select_shape(call, hob__attr_i64(call, 2), out);

    return st ? st : hob__infer_check(call, out);
}

hob_status hob__infer_select_add(struct hob_call *call, struct hob_meta *out)
{
    struct hob_meta expected = *out;
    hob_status st = select_shape(call, hob__attr_i64(call, 3), &expected);

    if (st)
        return st;
    hob__meta_copy_shape(out, hob_arg_view(call, 0));
    return hob__infer_equal(call, "value", hob_arg_view(call, 2),
                            "the selected slices", &expected);
}

/* The size depends on data: the meta holds the most that it can be. */
hob_status hob__infer_mask_select(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *mask = hob_arg_view(call, 1);
    struct hob_meta shape = *out;
    uint32_t axis = 0;
    int fits;

    hob__meta_copy_shape(&shape, x);
    fits = hob__broadcast(&shape, mask->shape, mask->rank, &axis);
    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = shape.rank == x->rank && shape.shape[i] == x->shape[i];
    if (!fits || shape.rank != x->rank)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: mask is %s, which does not broadcast to x, %s", call->op_name,
            hob__view_text(mask).text, hob__view_text(x).text);
    out->rank = 1;
    out->shape[0] = hob_view_count(x);
    return HOB_OK;
}

hob_status hob__infer_embedding(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *weight = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);
    hob_status st = hob__infer_rank(call, 0, "weight", 2, "[count, width]");

    if (st)
        return st;
    hob__meta_copy_shape(out, indices);
    out->rank = (uint8_t)(indices->rank + 1);
    if (out->rank <= HOB_MAX_RANK)
        out->shape[indices->rank] = weight->shape[1];
    return hob__infer_check(call, out);
}

hob_status hob__infer_embedding_backward(struct hob_call *call,
                                         struct hob_meta *out)
{
    struct hob_meta expected = *out;
    hob_status st = hob__infer_embedding(call, &expected);

    if (st)
        return st;
    hob__meta_copy_shape(out, hob_arg_view(call, 0));
    return hob__infer_equal(call, "grad", hob_arg_view(call, 2),
                            "embedding's result", &expected);
}

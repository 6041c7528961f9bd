/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.c - tensors put together: cat, stack, repeat, writing into a slice.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>
#include <string.h>

static hob_status check_list(struct hob_call *call)
{
    if (call->args[0].count)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_ARGUMENT,
                            "%s: tensors is empty; give at least one",
                            call->op_name);
}

/* Fail unless item I agrees with item 0, except in dimension FREE. */
static hob_status check_item(struct hob_call *call, uint32_t i, uint32_t free)
{
    const struct hob_view *first = hob_arg_item(call, 0, 0);
    const struct hob_view *item = hob_arg_item(call, 0, i);
    int agrees = item->rank == first->rank;

    for (uint32_t k = 0; agrees && k < item->rank; k++)
        agrees = k == free || item->shape[k] == first->shape[k];
    if (agrees)
        return HOB_OK;
    if (free < HOB_MAX_RANK)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: tensors[%u] is %s, tensors[0] is %s; their sizes must be "
            "equal except in dimension %u",
            call->op_name, (unsigned)i, hob__view_text(item).text,
            hob__view_text(first).text, (unsigned)free);
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: tensors[%u] is %s, tensors[0] is %s; their "
                            "shapes must be equal",
                            call->op_name, (unsigned)i,
                            hob__view_text(item).text,
                            hob__view_text(first).text);
}

hob_status hob__infer_cat(struct hob_call *call, struct hob_meta *out)
{
    uint32_t axis;
    const struct hob_view *first;
    hob_status st = check_list(call);

    if (st)
        return st;
    first = hob_arg_item(call, 0, 0);
    st = hob__infer_axis(call, "dim", hob__attr_i64(call, 1), first, 0, &axis);
    if (st)
        return st;
    hob__meta_copy_shape(out, first);
    for (uint32_t i = 1; i < call->args[0].count; i++) {
        const struct hob_view *item = hob_arg_item(call, 0, i);
        st = check_item(call, i, axis);
        if (st)
            return st;
        if (!hob__dim_add(out->shape[axis], item->shape[axis],
                          &out->shape[axis]))
            out->shape[axis] = INT64_MAX; /* refused below */
    }
    return hob__infer_check(call, out);
}

hob_status hob__infer_stack(struct hob_call *call, struct hob_meta *out)
{
    uint32_t axis;
    const struct hob_view *first;
    hob_status st = check_list(call);

    if (st)
        return st;
    first = hob_arg_item(call, 0, 0);
    st = hob__infer_axis(call, "dim", hob__attr_i64(call, 1), first, 1, &axis);
    if (st)
        return st;
    for (uint32_t i = 1; i < call->args[0].count; i++) {
        st = check_item(call, i, HOB_MAX_RANK);
        if (st)
            return st;
    }
    out->rank = (uint8_t)(first->rank + 1);
    if (out->rank > HOB_MAX_RANK)
        return hob__infer_check(call, out);
    memcpy(out->shape, first->shape, axis * sizeof(first->shape[0]));
    out->shape[axis] = call->args[0].count;
    memcpy(out->shape + axis + 1, first->shape + axis,
           (first->rank - axis) * sizeof(first->shape[0]));
    return hob__infer_check(call, out);
}

hob_status hob__infer_repeat_dim(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t times = hob__attr_i64(call, 2);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 1), x, 0, &axis);

    if (st)
        return st;
    if (times < 0)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: times is %" PRId64
                                "; it must not be negative",
                                call->op_name, times);
    hob__meta_copy_shape(out, x);
    if (!hob__dim_mul(x->shape[axis], times, &out->shape[axis]))
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: dimension %u of %s repeated %" PRId64
                                " times has more than 2^63 elements",
                                call->op_name, (unsigned)axis,
                                hob__view_text(x).text, times);
    return hob__infer_check(call, out);
}

hob_status hob__infer_slice_assign(struct hob_call *call, struct hob_meta *out)
{
    struct hob_meta slice = *out;
    hob_status st = hob__infer_slice_at(call, 2, &slice);

    if (st)
        return st;
    hob__meta_copy_shape(out, hob_arg_view(call, 0));
    return hob__infer_equal(call, "value", hob_arg_view(call, 1), "the slice",
                            &slice);
}

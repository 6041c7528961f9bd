/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementwise.c - results with the shape of an argument, or of all of them
 * broadcast together.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>

hob_status hob__infer_same(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    for (uint32_t i = 0; i < call->ret_count; i++)
        hob__meta_copy_shape(&out[i], x);
    /* The core checked X itself; a cast may need more bytes. */
    return out[0].dtype == x->dtype ? HOB_OK : hob__infer_check(call, out);
}

hob_status hob__infer_same_dim(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 1), x, 0, &axis);

    if (st)
        return st;
    st = hob__infer_index_dtype(call, x->shape[axis]);
    if (st)
        return st;
    return hob__infer_same(call, out);
}

hob_status hob__infer_broadcast(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *first = NULL;
    int stretched = 0;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const struct hob_view *view = hob_arg_view(call, i);
        uint32_t axis = 0;
        if (!view)
            continue;
        if (!first) {
            first = view;
            hob__meta_copy_shape(out, view);
            continue;
        }
        if (hob__same_shape(first, view))
            continue;
        stretched = 1;
        if (!hob__broadcast(out, view->shape, view->rank, &axis))
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: shapes do not broadcast: %s and %s (argument %u) differ "
                "%u from the end: %" PRId64 " and %" PRId64
                "; sizes must be equal, or one of them 1",
                call->op_name, hob__view_text(first).text,
                hob__view_text(view).text, (unsigned)(i + 1),
                (unsigned)(out->rank - axis), out->shape[axis],
                view->shape[view->rank - (out->rank - axis)]);
    }
    return stretched ? hob__infer_check(call, out) : HOB_OK;
}

hob_status hob__infer_same_pair_dim(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *output = hob_arg_view(call, 0);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 2), output, 0, &axis);

    if (st)
        return st;
    hob__meta_copy_shape(out, output);
    return hob__infer_equal(call, "grad", hob_arg_view(call, 1), "output", out);
}

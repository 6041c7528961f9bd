/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c - the ops that are views: the same elements under other indices.
 */
#include "infer.h"
#include "slice.h"
#include "util.h"

#include <inttypes.h>
#include <string.h>

/* Fail where a list of sizes or axes has more than HOB_MAX_RANK entries. */
static hob_status check_length(struct hob_call *call, const char *name,
                               const int64_t *list, uint32_t count)
{
    if (count <= HOB_MAX_RANK)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: %s %s has %u entries; at most %d dimensions "
                            "are possible",
                            call->op_name, name,
                            hob__list_text(list, count).text, (unsigned)count,
                            HOB_MAX_RANK);
}

/* The bits of LIST's axes in *OUT_SET; each in range and named once. */
static hob_status axis_set(struct hob_call *call, const char *name,
                           const int64_t *list, uint32_t count,
                           const struct hob_view *x, uint32_t *out_set)
{
    *out_set = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        hob_status st = hob__infer_axis(call, name, list[i], x, 0, &axis);
        if (st)
            return st;
        if (*out_set & (1u << axis))
            return call->host->fail(
                call, HOB_ERR_ARGUMENT, "%s: %s %s names dimension %u twice",
                call->op_name, name, hob__list_text(list, count).text,
                (unsigned)axis);
        *out_set |= 1u << axis;
    }
    return HOB_OK;
}

static hob_status fail_reshape(struct hob_call *call, const struct hob_view *x,
                               const int64_t *shape, uint32_t count)
{
    return call->host->fail(
        call, HOB_ERR_SHAPE,
        "%s: x is %s, %" PRId64 " elements, which shape %s does not hold",
        call->op_name, hob__view_text(x).text, hob_view_count(x),
        hob__list_text(shape, count).text);
}

/*
 * A size of 0 means 0 for a tensor without elements; otherwise, where it
 * could not be meant, it keeps x's size at that place.
 */
hob_status hob__infer_reshape(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count, open = HOB_MAX_RANK;
    const int64_t *shape = hob__attr_list(call, 1, &count);
    int64_t elements = hob_view_count(x), product = 1;
    hob_status st = check_length(call, "shape", shape, count);

    if (st)
        return st;
    out->rank = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++) {
        int64_t size = shape[i];
        if (size == 0 && elements && i < x->rank)
            size = x->shape[i];
        if (size < -1 || (size == -1 && open < HOB_MAX_RANK))
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: shape %s: sizes are not negative, but for one -1",
                call->op_name, hob__list_text(shape, count).text);
        out->shape[i] = size;
        if (size == -1)
            open = i;
        else if (!hob__dim_mul(product, size, &product))
            return fail_reshape(call, x, shape, count);
    }
    if (open < HOB_MAX_RANK) {
        /* With another size of 0 any number would do: none is right. */
        if (product == 0 || elements % product)
            return fail_reshape(call, x, shape, count);
        out->shape[open] = elements / product;
        product = elements;
    }
    if (product != elements)
        return fail_reshape(call, x, shape, count);
    return hob__infer_check(call, out);
}

hob_status hob__infer_permute(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count, set, axis;
    const int64_t *axes = hob__attr_list(call, 1, &count);
    hob_status st;

    if (count != x->rank)
        return call->host->fail(
            call, HOB_ERR_ARGUMENT,
            "%s: axes %s has %u entries; x is %s, so it needs %u",
            call->op_name, hob__list_text(axes, count).text, (unsigned)count,
            hob__view_text(x).text, (unsigned)x->rank);
    st = axis_set(call, "axes", axes, count, x, &set);
    if (st)
        return st;
    out->rank = x->rank;
    for (uint32_t i = 0; i < count; i++)
        if (hob__axis(axes[i], x->rank, &axis))
            out->shape[i] = x->shape[axis];
    return HOB_OK;
}

hob_status hob__infer_swap_dims(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t a, b;
    hob_status st =
        hob__infer_axis(call, "dim1", hob__attr_i64(call, 1), x, 0, &a);

    if (st)
        return st;
    st = hob__infer_axis(call, "dim2", hob__attr_i64(call, 2), x, 0, &b);
    if (st)
        return st;
    hob__meta_copy_shape(out, x);
    out->shape[a] = x->shape[b];
    out->shape[b] = x->shape[a];
    return HOB_OK;
}

hob_status hob__infer_slice_at(struct hob_call *call, uint32_t first_list,
                               struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t start_count, end_count, step_count;
    const int64_t *starts = hob__attr_list(call, first_list, &start_count);
    const int64_t *ends = hob__attr_list(call, first_list + 1, &end_count);
    const int64_t *steps = hob__attr_list(call, first_list + 2, &step_count);

    if (start_count != end_count || (step_count && step_count != start_count))
        return call->host->fail(
            call, HOB_ERR_ARGUMENT,
            "%s: %u starts, %u ends and %u steps: there must be as many of "
            "each, or no steps",
            call->op_name, (unsigned)start_count, (unsigned)end_count,
            (unsigned)step_count);
    if (start_count > x->rank)
        return call->host->fail(
            call, HOB_ERR_ARGUMENT,
            "%s: %u ranges for x, which is %s: there may be at most %u",
            call->op_name, (unsigned)start_count, hob__view_text(x).text,
            (unsigned)x->rank);
    hob__meta_copy_shape(out, x);
    for (uint32_t i = 0; i < start_count; i++) {
        int64_t step = step_count ? steps[i] : 1;
        if (step == 0)
            return call->host->fail(
                call, HOB_ERR_RANGE, "%s: steps %s: a step must not be 0",
                call->op_name, hob__list_text(steps, step_count).text);
        out->shape[i] =
            hob__range_resolve(starts[i], ends[i], step, x->shape[i]).count;
    }
    return HOB_OK;
}

hob_status hob__infer_slice(struct hob_call *call, struct hob_meta *out)
{
    return hob__infer_slice_at(call, 1, out);
}

hob_status hob__infer_expand(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count, lead;
    const int64_t *shape = hob__attr_list(call, 1, &count);
    hob_status st = check_length(call, "shape", shape, count);

    if (st)
        return st;
    if (count < x->rank)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: shape %s has fewer dimensions than x, which is %s",
            call->op_name, hob__list_text(shape, count).text,
            hob__view_text(x).text);
    lead = count - x->rank;
    out->rank = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++) {
        int64_t old = i < lead ? 1 : x->shape[i - lead];
        int keeps = shape[i] == -1 && i >= lead;
        if (!keeps && (shape[i] < 0 || (old != 1 && old != shape[i])))
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: x is %s, which does not broadcast to %s: entry %u is "
                "%" PRId64 "; only sizes of 1 and new leading dimensions "
                "stretch, and -1 keeps a size",
                call->op_name, hob__view_text(x).text,
                hob__list_text(shape, count).text, (unsigned)i, shape[i]);
        out->shape[i] = keeps ? old : shape[i];
    }
    return hob__infer_check(call, out);
}

hob_status hob__infer_flip(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count, set;
    const int64_t *axes = hob__attr_list(call, 1, &count);

    hob__meta_copy_shape(out, x);
    return axis_set(call, "axes", axes, count, x, &set);
}

hob_status hob__infer_squeeze(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count, set;
    const int64_t *dims = hob__attr_list(call, 1, &count);
    hob_status st = axis_set(call, "dims", dims, count, x, &set);

    if (st)
        return st;
    out->rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        int named = (set >> i) & 1;
        if (named && x->shape[i] != 1)
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: dimension %u of x, which is %s, has size %" PRId64
                "; only sizes of 1 can go",
                call->op_name, (unsigned)i, hob__view_text(x).text,
                x->shape[i]);
        if (!named && (count || x->shape[i] != 1))
            out->shape[out->rank++] = x->shape[i];
    }
    return HOB_OK;
}

hob_status hob__infer_unsqueeze(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 1), x, 1, &axis);

    if (st)
        return st;
    out->rank = (uint8_t)(x->rank + 1);
    if (out->rank > HOB_MAX_RANK)
        return hob__infer_check(call, out);
    memcpy(out->shape, x->shape, axis * sizeof(x->shape[0]));
    out->shape[axis] = 1;
    memcpy(out->shape + axis + 1, x->shape + axis,
           (x->rank - axis) * sizeof(x->shape[0]));
    return HOB_OK;
}

hob_status hob__infer_unfold(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t size = hob__attr_i64(call, 2), step = hob__attr_i64(call, 3);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 1), x, 0, &axis);

    if (st)
        return st;
    if (size < 1 || step < 1)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: size is %" PRId64 ", step is %" PRId64
                                "; both must be at least 1",
                                call->op_name, size, step);
    hob__meta_copy_shape(out, x);
    out->rank = (uint8_t)(x->rank + 1);
    if (out->rank <= HOB_MAX_RANK) {
        out->shape[axis] =
            size > x->shape[axis] ? 0 : (x->shape[axis] - size) / step + 1;
        out->shape[x->rank] = size;
    }
    return hob__infer_check(call, out);
}

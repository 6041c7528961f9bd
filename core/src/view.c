/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

#include "infer.h"
#include "infer/slice.h"
#include "infer/util.h"

#include <string.h>

static uint64_t magnitude(int64_t number)
{
    return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

/* Whether no dimension has size 0. */
static int has_elements(const struct hob_view *view)
{
    for (uint32_t i = 0; i < view->rank; i++)
        if (view->shape[i] == 0)
            return 0;
    return 1;
}

static void row_major(struct hob_view *view)
{
    int64_t stride = 1;

    for (uint32_t i = view->rank; i-- > 0;) {
        view->strides[i] = stride;
        /* Unsigned: beside a size of 0 the others may be anything. */
        if (view->shape[i])
            stride = (int64_t)((uint64_t)stride * (uint64_t)view->shape[i]);
    }
}

static int is_contiguous(const struct hob_view *view)
{
    int64_t stride = 1;

    for (uint32_t i = view->rank; i-- > 0;) {
        if (view->shape[i] == 1)
            continue;
        if (view->strides[i] != stride)
            return 0;
        stride *= view->shape[i];
    }
    return 1;
}

/*
 * Take the dimensions by growing stride. If each steps further than all the
 * smaller ones together can reach, no two indices meet.
 */
static int is_injective(const struct hob_view *view)
{
    uint32_t done = 0;
    uint64_t reach = 0;

    for (uint32_t n = 0; n < view->rank; n++) {
        uint32_t least = HOB_MAX_RANK;
        uint64_t stride = UINT64_MAX;
        for (uint32_t i = 0; i < view->rank; i++) {
            if ((done >> i & 1) || magnitude(view->strides[i]) >= stride)
                continue;
            least = i;
            stride = magnitude(view->strides[i]);
        }
        done |= 1u << least;
        if (view->shape[least] == 1)
            continue;
        if (stride <= reach)
            return 0;
        reach += stride * ((uint64_t)view->shape[least] - 1);
    }
    return 1;
}

void hob__view_set_flags(struct hob_view *view)
{
    uint32_t flags =
        view->flags & ~(uint32_t)(HOB_VIEW_CONTIGUOUS | HOB_VIEW_INJECTIVE);

    if (!has_elements(view) || is_contiguous(view)) {
        row_major(view);
        flags |= HOB_VIEW_CONTIGUOUS | HOB_VIEW_INJECTIVE;
    } else if (is_injective(view)) {
        flags |= HOB_VIEW_INJECTIVE;
    }
    view->flags = (uint16_t)flags;
}

/* Set OUT's data to IN's, OFFSET elements on, and finish its flags. */
static hob_status finish(const struct hob_view *in, int64_t offset,
                         struct hob_view *out)
{
    out->data = in->data;
    /* Without elements the address may be NULL: leave it alone. */
    if (offset && has_elements(out))
        out->data = (char *)in->data + offset * hob_dtype_size(in->dtype);
    out->flags = (uint16_t)(in->flags & HOB_VIEW_READ_ONLY);
    hob__view_set_flags(out);
    return HOB_OK;
}

/* A run of dimensions that one stride walks, as if they were one. */
struct run {
    int64_t size;
    int64_t stride; /* of its last dimension */
};

/* Merge IN's dimensions into as few runs as there can be; returns how many. */
static uint32_t merge_runs(const struct hob_view *in, struct run *runs)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < in->rank; i++) {
        struct run *last = runs + count - 1;
        if (in->shape[i] == 1)
            continue;
        if (count && last->stride == in->shape[i] * in->strides[i]) {
            last->size *= in->shape[i];
            last->stride = in->strides[i];
        } else {
            runs[count].size = in->shape[i];
            runs[count++].stride = in->strides[i];
        }
    }
    return count;
}

/*
 * A new dimension must lie within one run: runs are as long as they can be,
 * so one that spanned two would need two strides.
 */
hob_status hob__view_reshape(struct hob_call *call, const struct hob_view *in,
                             struct hob_view *out)
{
    struct run runs[HOB_MAX_RANK];
    uint32_t next;
    int64_t left = 1, stride = 1; /* of the run that is being cut up */

    (void)call;
    if (!has_elements(out)) {
        row_major(out);
        return finish(in, 0, out);
    }
    next = merge_runs(in, runs);
    for (uint32_t i = out->rank; i-- > 0;) {
        int64_t size = out->shape[i];
        if (size != 1 && left == 1) {
            next--; /* the counts are equal, so there is one */
            left = runs[next].size;
            stride = runs[next].stride;
        }
        if (left % size)
            return HOB_ERR_UNSUPPORTED;
        out->strides[i] = stride;
        stride *= size;
        left /= size;
    }
    return finish(in, 0, out);
}

hob_status hob__view_permute(struct hob_call *call, const struct hob_view *in,
                             struct hob_view *out)
{
    uint32_t count, axis;
    const int64_t *axes = hob__attr_list(call, 1, &count);

    for (uint32_t i = 0; i < count; i++)
        if (hob__axis(axes[i], in->rank, &axis))
            out->strides[i] = in->strides[axis];
    return finish(in, 0, out);
}

hob_status hob__view_swap_dims(struct hob_call *call, const struct hob_view *in,
                               struct hob_view *out)
{
    uint32_t a = 0, b = 0;

    if (!hob__axis(hob__attr_i64(call, 1), in->rank, &a) ||
        !hob__axis(hob__attr_i64(call, 2), in->rank, &b))
        return HOB_ERR_INTERNAL; /* infer has let no such axis through */
    memcpy(out->strides, in->strides, sizeof(out->strides));
    out->strides[a] = in->strides[b];
    out->strides[b] = in->strides[a];
    return finish(in, 0, out);
}

hob_status hob__view_slice(struct hob_call *call, const struct hob_view *in,
                           struct hob_view *out)
{
    uint32_t count, step_count;
    const int64_t *starts = hob__attr_list(call, 1, &count);
    const int64_t *ends = hob__attr_list(call, 2, &count);
    const int64_t *steps = hob__attr_list(call, 3, &step_count);
    int64_t offset = 0;

    memcpy(out->strides, in->strides, sizeof(out->strides));
    for (uint32_t i = 0; i < count; i++) {
        struct hob__range range = hob__range_resolve(
            starts[i], ends[i], step_count ? steps[i] : 1, in->shape[i]);
        /* With one element a step may be too great to multiply. */
        if (range.count > 1)
            out->strides[i] = in->strides[i] * range.step;
        if (range.count > 0)
            offset += in->strides[i] * range.first;
    }
    return finish(in, offset, out);
}

hob_status hob__view_expand(struct hob_call *call, const struct hob_view *in,
                            struct hob_view *out)
{
    uint32_t lead = (uint32_t)out->rank - in->rank;

    (void)call;
    for (uint32_t i = 0; i < out->rank; i++) {
        int stretched = i < lead || in->shape[i - lead] != out->shape[i];
        out->strides[i] = stretched ? 0 : in->strides[i - lead];
    }
    return finish(in, 0, out);
}

hob_status hob__view_flip(struct hob_call *call, const struct hob_view *in,
                          struct hob_view *out)
{
    uint32_t count, axis;
    const int64_t *axes = hob__attr_list(call, 1, &count);
    int64_t offset = 0;

    memcpy(out->strides, in->strides, sizeof(out->strides));
    for (uint32_t i = 0; i < count; i++) {
        if (!hob__axis(axes[i], in->rank, &axis) || in->shape[axis] < 2)
            continue;
        out->strides[axis] = -in->strides[axis];
        offset += in->strides[axis] * (in->shape[axis] - 1);
    }
    return finish(in, offset, out);
}

hob_status hob__view_squeeze(struct hob_call *call, const struct hob_view *in,
                             struct hob_view *out)
{
    uint32_t count, axis, set = 0, kept = 0;
    const int64_t *dims = hob__attr_list(call, 1, &count);

    for (uint32_t i = 0; i < count; i++)
        if (hob__axis(dims[i], in->rank, &axis))
            set |= 1u << axis;
    for (uint32_t i = 0; i < in->rank; i++)
        if (count ? !(set >> i & 1) : in->shape[i] != 1)
            out->strides[kept++] = in->strides[i];
    return finish(in, 0, out);
}

hob_status hob__view_unsqueeze(struct hob_call *call, const struct hob_view *in,
                               struct hob_view *out)
{
    uint32_t axis = 0;

    if (!hob__axis(hob__attr_i64(call, 1), in->rank + 1u, &axis))
        return HOB_ERR_INTERNAL; /* infer has let no such axis through */
    for (uint32_t i = 0; i < out->rank; i++)
        out->strides[i] = i < axis   ? in->strides[i]
                          : i > axis ? in->strides[i - 1]
                                     : 0;
    return finish(in, 0, out);
}

hob_status hob__view_unfold(struct hob_call *call, const struct hob_view *in,
                            struct hob_view *out)
{
    uint32_t axis = 0;

    if (!hob__axis(hob__attr_i64(call, 1), in->rank, &axis))
        return HOB_ERR_INTERNAL; /* infer has let no such axis through */
    memcpy(out->strides, in->strides, sizeof(out->strides));
    if (out->shape[axis] > 1)
        out->strides[axis] = in->strides[axis] * hob__attr_i64(call, 3);
    out->strides[in->rank] = in->strides[axis];
    return finish(in, 0, out);
}

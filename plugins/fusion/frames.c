/* SPDX-License-Identifier: Apache-2.0 */
#include "views.h"

#include <hob/ops.h>

#include <string.h>

/* ---- one view: it comes before those that VIEWS has ---- */

static uint32_t dim_at(int64_t dim, uint32_t rank)
{
    return (uint32_t)(dim < 0 ? dim + (int64_t)rank : dim);
}

/* Dimension I of the view is dimension TO[I] of what it is of. */
static void apply_order(struct fu_views *views, const uint8_t *to,
                        uint32_t rank)
{
    struct fu_frame *frame = &views->frame;
    int64_t start[HOB_MAX_RANK] = {0};

    for (uint32_t i = 0; i < views->rank; i++)
        if (frame->from[i] != FU_NOWHERE)
            frame->from[i] = to[frame->from[i]];
    for (uint32_t i = 0; i < rank; i++)
        start[to[i]] = frame->start[i];
    memcpy(frame->start, start, sizeof(start));
}

/* Dimension DIM of the view begins at FIRST and goes on by STEP. */
static void apply_range(struct fu_views *views, uint32_t dim, int64_t first,
                        int64_t step)
{
    struct fu_frame *frame = &views->frame;

    frame->start[dim] = first + frame->start[dim] * step;
    for (uint32_t i = 0; i < views->rank; i++)
        if (frame->from[i] == dim)
            frame->times[i] *= step;
}

static int64_t clamp_position(int64_t position, int64_t size)
{
    if (position < 0)
        position += size;
    return position < 0 ? 0 : position > size ? size : position;
}

static void apply_slice(struct fu_views *views, const struct fu_node *node,
                        struct fu_seen x)
{
    const hob_value *starts = &node->args[1], *ends = &node->args[2];
    const hob_value *steps = &node->args[3];

    for (uint32_t i = 0; i < starts->count; i++) {
        const int64_t step = i < steps->count ? steps->u.i64s[i] : 1;
        int64_t first = clamp_position(starts->u.i64s[i], x.shape[i]);

        if (step < 0)
            first = clamp_position(ends->u.i64s[i], x.shape[i]) - 1;
        apply_range(views, i, first, step);
    }
}

/* The dimensions of a shape that are not 1. */
struct dims {
    uint8_t at[HOB_MAX_RANK];
    uint32_t count;
};

static void find_dims(struct dims *dims, struct fu_seen x)
{
    dims->count = 0;
    for (uint32_t i = 0; i < x.rank; i++)
        if (x.shape[i] != 1)
            dims->at[dims->count++] = (uint8_t)i;
}

/* How many of DIMS from FIRST on are SIZE elements together; 0: they are not.
 */
static uint32_t run_of(const struct dims *dims, const int64_t *shape,
                       uint32_t first, int64_t size)
{
    int64_t count = 1;
    uint32_t i = first;

    while (i < dims->count && count < size)
        count *= shape[dims->at[i++]];
    return count == size ? i - first : 0;
}

/* COUNT dimensions of the view, DIMS, are dimension TO of what it is of. */
static void apply_split(struct fu_views *views, struct fu_frame *out,
                        const int64_t *shape, const uint8_t *dims,
                        uint32_t count, uint32_t to)
{
    const struct fu_frame *frame = &views->frame;
    int64_t after = 1;

    for (uint32_t i = count; i-- > 0; after *= shape[dims[i]]) {
        for (uint32_t p = 0; p < views->rank; p++)
            if (frame->from[p] == dims[i]) {
                out->from[p] = (uint8_t)to;
                out->times[p] = frame->times[p] * after;
            }
        out->start[to] += frame->start[dims[i]] * after;
    }
}

/* Dimension DIM of the view is COUNT dimensions, TO, of what it is of: so is
 * the part that is all of DIM. 0: there is none, or no room. */
static int apply_join(struct fu_views *views, struct fu_frame *out,
                      uint32_t dim, const int64_t *shape, const uint8_t *to,
                      uint32_t count)
{
    struct fu_frame *frame = &views->frame;
    const uint32_t more = count - 1;
    int64_t size = 1;
    uint32_t part = 0;

    for (uint32_t i = 0; i < count; i++)
        size *= shape[to[i]];
    while (part < views->rank && frame->from[part] != dim)
        part++;
    if (part == views->rank || views->shape[part] != size ||
        frame->times[part] != 1 || frame->start[dim] ||
        views->rank + more > HOB_MAX_RANK)
        return 0;
    for (uint32_t p = views->rank; p-- > part + 1;) {
        views->shape[p + more] = views->shape[p];
        views->of[p + more] = views->of[p];
        frame->from[p + more] = frame->from[p];
        frame->times[p + more] = frame->times[p];
        out->from[p + more] = out->from[p];
        out->times[p + more] = out->times[p];
    }
    for (uint32_t i = 0; i < count; i++) {
        views->shape[part + i] = shape[to[i]];
        views->of[part + i] = views->of[part];
        frame->from[part + i] = FU_NOWHERE;
        out->from[part + i] = to[i];
        out->times[part + i] = 1;
    }
    views->rank += more;
    return 1;
}

/* VIEW has the elements of X in the same order: some dimensions of one are one
 * of the other's. 0: there is more to it. */
static int apply_reshape(struct fu_views *views, struct fu_seen x,
                         struct fu_seen view)
{
    struct fu_frame out = {.rank = 0};
    struct dims from, to;
    uint32_t i = 0, k = 0, run;

    find_dims(&from, view);
    find_dims(&to, x);
    memset(out.from, FU_NOWHERE, sizeof(out.from));
    while (i < from.count && k < to.count) {
        const int64_t size = view.shape[from.at[i]];
        const int64_t wanted = x.shape[to.at[k]];

        if (size <= wanted) {
            run = run_of(&from, view.shape, i, wanted);
            if (!run)
                return 0;
            apply_split(views, &out, view.shape, from.at + i, run, to.at[k++]);
            i += run;
        } else {
            run = run_of(&to, x.shape, k, size);
            if (!run ||
                !apply_join(views, &out, from.at[i++], x.shape, to.at + k, run))
                return 0;
            k += run;
        }
    }
    memcpy(views->frame.from, out.from, sizeof(out.from));
    memcpy(views->frame.times, out.times, sizeof(out.times));
    memcpy(views->frame.start, out.start, sizeof(out.start));
    return i == from.count && k == to.count;
}

void fu_views_begin(struct fu_views *views, struct fu_item *last)
{
    const struct fu_seen view = fu_see_value(&last->node->values[0]);

    memset(views, 0, sizeof(*views));
    views->last = last;
    views->rank = view.rank;
    memset(views->frame.from, FU_NOWHERE, sizeof(views->frame.from));
    for (uint32_t i = 0; i < view.rank; i++) {
        views->shape[i] = view.shape[i];
        views->of[i] = (uint8_t)i;
        views->frame.times[i] = 1;
        if (view.shape[i] != 1)
            views->frame.from[i] = (uint8_t)i;
    }
}

int fu_views_apply(struct fu_views *views, const struct fu_node *node)
{
    const struct fu_seen x = fu_see(&node->inputs[0]);
    uint8_t to[HOB_MAX_RANK];

    switch (node->op) {
    case HOB_OP_SWAP_DIMS: {
        const uint32_t a = dim_at(node->args[1].u.i64, x.rank);
        const uint32_t b = dim_at(node->args[2].u.i64, x.rank);

        for (uint32_t i = 0; i < x.rank; i++)
            to[i] = (uint8_t)(i == a ? b : i == b ? a : i);
        apply_order(views, to, x.rank);
        return 1;
    }
    case HOB_OP_PERMUTE:
        if (node->args[1].count != x.rank)
            return 0;
        for (uint32_t i = 0; i < x.rank; i++)
            to[i] = (uint8_t)dim_at(node->args[1].u.i64s[i], x.rank);
        apply_order(views, to, x.rank);
        return 1;
    case HOB_OP_SLICE:
        apply_slice(views, node, x);
        return 1;
    case HOB_OP_FLIP:
        for (uint32_t i = 0; i < node->args[1].count; i++) {
            const uint32_t dim = dim_at(node->args[1].u.i64s[i], x.rank);

            apply_range(views, dim, x.shape[dim] - 1, -1);
        }
        return 1;
    case HOB_OP_RESHAPE:
    case HOB_OP_SQUEEZE:
    case HOB_OP_UNSQUEEZE:
        return apply_reshape(views, x, fu_see_value(&node->values[0]));
    default:
        return 0;
    }
}

void fu_frame_through(struct fu_frame *frame, const struct fu_frame *inner)
{
    struct fu_frame out = *inner;

    for (uint32_t i = 0; i < HOB_MAX_RANK; i++) {
        const uint32_t at = frame->from[i];

        out.from[i] = at == FU_NOWHERE ? FU_NOWHERE : inner->from[at];
        out.times[i] =
            at == FU_NOWHERE ? 0 : frame->times[i] * inner->times[at];
    }
    for (uint32_t k = 0; k < frame->rank; k++)
        if (inner->from[k] != FU_NOWHERE)
            out.start[inner->from[k]] += frame->start[k] * inner->times[k];
    *frame = out;
}

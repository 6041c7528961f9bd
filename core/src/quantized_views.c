/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantized_views.c - where the scales go when codes are moved.
 *
 * An op that only moves elements can run on the codes if the elements of the
 * result lie in blocks, too, each of which had one scale. Then its scales are
 * those of x, moved in the same way or cut, and no element changes.
 */
#include "boundary.h"

#include "infer/slice.h"
#include "infer/util.h"

#include <hob/ext/quant.h>
#include <hob/ops.h>

#include <string.h>

struct move {
    hob_scope *scope;
    const struct hob_call *call;
    const struct hob_view *x;
    hob_tensor *scales;
    int64_t block[HOB_MAX_RANK]; /* of x: 1 .. size */
    int64_t count[HOB_MAX_RANK]; /* of blocks along each dimension */
    const struct hob_view *out;
    int64_t *first; /* of split and so on: where the next result begins */
    int64_t out_block[HOB_MAX_RANK];
};

/* The op itself, on the scales. */
static hob_tensor *moved_alike(const struct move *move)
{
    hob_value args[HOB_MAX_PARAMS];
    hob_tensor *out = NULL;
    uint32_t count;

    memcpy(args, move->call->args, move->call->arg_count * sizeof(args[0]));
    args[0] = hob_value_tensor(move->scales);
    if (hob__call(move->scope, move->call->op, args, move->call->arg_count,
                  &out, 1, &count, NULL, 0))
        return NULL;
    return out;
}

/* The scales as many as there are blocks in the result. */
static hob_tensor *reshaped(const struct move *move)
{
    int64_t shape[HOB_MAX_RANK];

    for (uint32_t i = 0; i < move->out->rank; i++)
        shape[i] =
            hob_quant_block_count(move->out->shape[i], move->out_block[i]);
    return hob_reshape(move->scope, move->scales, shape, move->out->rank);
}

/* Blocks can be told from each other along AXIS only by whole elements, or
 * not at all: then any order of elements has them. */
static int is_free(const struct move *move, uint32_t axis)
{
    return move->block[axis] == 1 || move->count[axis] == 1;
}

static hob_tensor *by_order(struct move *move)
{
    const struct hob_call *call = move->call;
    const uint32_t rank = move->x->rank;
    const int64_t *from, *to;
    int64_t order[HOB_MAX_RANK];
    uint32_t a, b, from_count, to_count;

    for (uint32_t i = 0; i < rank; i++)
        order[i] = i;
    if (call->op == HOB_OP_SWAP_DIMS) {
        if (!hob__axis(hob__attr_i64(call, 1), rank, &a) ||
            !hob__axis(hob__attr_i64(call, 2), rank, &b))
            return NULL;
        order[a] = b;
        order[b] = a;
    } else if (call->op == HOB_OP_PERMUTE) {
        from = hob__attr_list(call, 1, &from_count);
        for (uint32_t i = 0; i < rank && i < from_count; i++) {
            if (!hob__axis(from[i], rank, &a))
                return NULL;
            order[i] = a;
        }
    } else {
        from = hob__attr_list(call, 1, &from_count);
        to = hob__attr_list(call, 2, &to_count);
        if (!hob__move_order(rank, from, to, from_count, order))
            return NULL;
    }
    for (uint32_t i = 0; i < rank; i++)
        move->out_block[i] = move->block[order[i]];
    return moved_alike(move);
}

/*
 * Reshaped blocks: each dimension of the layout is the product of some of the
 * result's, of which the inner ones must fill blocks or be filled by them.
 */
static hob_tensor *by_shape(struct move *move, uint32_t scheme)
{
    const struct hob_view *out = move->out;
    struct hob_quant_layout layout;
    uint32_t i = out->rank;

    hob_quant_layout_of(scheme, move->x->rank, move->x->shape, &layout);
    for (uint32_t j = layout.rank; j-- > 0;) {
        int64_t left = layout.sizes[j], block = layout.block[j];

        while (left > 1) {
            int64_t size = i ? out->shape[--i] : 0;

            if (!size || left % size)
                return NULL;
            left /= size;
            if (block % size == 0) {
                move->out_block[i] = size;
                block /= size;
            } else if (size % block == 0 || left == 1) {
                move->out_block[i] = block;
                block = 1;
            } else {
                return NULL;
            }
        }
    }
    while (i-- > 0)
        move->out_block[i] = 1;
    return reshaped(move);
}

static hob_tensor *by_expanding(struct move *move)
{
    const uint32_t added = move->out->rank - move->x->rank;

    for (uint32_t i = 0; i < move->out->rank; i++)
        move->out_block[i] =
            i >= added && move->out->shape[i] == move->x->shape[i - added]
                ? move->block[i - added]
                : move->out->shape[i];
    return reshaped(move);
}

/* flip, roll: along the dimensions in attribute INDEX. */
static hob_tensor *by_turning(struct move *move, uint32_t index)
{
    uint32_t count, axis;
    const int64_t *axes = hob__attr_list(move->call, index, &count);

    for (uint32_t i = 0; i < count; i++) {
        if (!hob__axis(axes[i], move->x->rank, &axis))
            return NULL;
        if (!is_free(move, axis) && (move->call->op != HOB_OP_FLIP ||
                                     move->x->shape[axis] % move->block[axis]))
            return NULL;
    }
    memcpy(move->out_block, move->block, sizeof(move->block));
    return moved_alike(move);
}

static hob_tensor *by_repeating(struct move *move)
{
    int64_t times[HOB_MAX_RANK];
    uint32_t count = 1, axis;
    const int64_t *list = NULL;

    for (uint32_t i = 0; i < move->x->rank; i++)
        times[i] = 1;
    if (move->call->op == HOB_OP_REPEAT) {
        list = hob__attr_list(move->call, 1, &count);
        if (count != move->x->rank)
            return NULL;
        memcpy(times, list, count * sizeof(times[0]));
    } else {
        if (!hob__axis(hob__attr_i64(move->call, 1), move->x->rank, &axis))
            return NULL;
        times[axis] = hob__attr_i64(move->call, 2);
    }
    for (uint32_t i = 0; i < move->x->rank; i++) {
        move->out_block[i] = move->block[i];
        if (times[i] == 1)
            continue;
        if (move->count[i] == 1) {
            move->out_block[i] = move->out->shape[i];
            times[i] = 1;
        } else if (move->x->shape[i] % move->block[i]) {
            return NULL;
        }
    }
    return hob_repeat(move->scope, move->scales, times, move->x->rank);
}

/* Indices along a dimension. */
static hob_tensor *by_selecting(struct move *move)
{
    uint32_t axis;

    if (!hob__axis(hob__attr_i64(move->call, 2), move->x->rank, &axis) ||
        !is_free(move, axis))
        return NULL;
    memcpy(move->out_block, move->block, sizeof(move->block));
    if (move->count[axis] != 1)
        return moved_alike(move);
    move->out_block[axis] = move->out->shape[axis];
    return move->scales;
}

/* Cut the blocks along AXIS as RANGE cuts the elements. */
static int cut(struct move *move, uint32_t axis, const struct hob__range *range,
               struct hob__range *out)
{
    const int64_t block = move->block[axis];
    const int64_t last = range->first + range->count - 1;

    move->out_block[axis] = block;
    *out = *range;
    if (move->count[axis] == 1 ||
        (range->step == 1 && range->first / block == last / block)) {
        out->first = range->first / block;
        out->count = out->step = 1;
        move->out_block[axis] = range->count;
    } else if (block > 1) {
        if (range->step != 1 || range->first % block)
            return 0;
        out->first = range->first / block;
        out->count = last / block + 1 - out->first;
    }
    return 1;
}

/* RANGES of the scales; with a step of -1 from the end, as slices are. */
static hob_tensor *sliced(const struct move *move,
                          const struct hob__range *ranges)
{
    int64_t starts[HOB_MAX_RANK], ends[HOB_MAX_RANK], steps[HOB_MAX_RANK];
    const uint32_t rank = move->x->rank;

    for (uint32_t i = 0; i < rank; i++) {
        const struct hob__range *range = &ranges[i];
        const int64_t last = range->first + (range->count - 1) * range->step;

        steps[i] = range->step;
        starts[i] = range->step > 0 ? range->first : last;
        ends[i] = (range->step > 0 ? last : range->first) + 1;
    }
    return hob_slice(move->scope, move->scales, starts, rank, ends, rank, steps,
                     rank);
}

static hob_tensor *by_slicing(struct move *move)
{
    struct hob__range ranges[HOB_MAX_RANK];
    uint32_t count, ignored, step_count;
    const int64_t *starts = hob__attr_list(move->call, 1, &count);
    const int64_t *ends = hob__attr_list(move->call, 2, &ignored);
    const int64_t *steps = hob__attr_list(move->call, 3, &step_count);

    for (uint32_t i = 0; i < move->x->rank; i++) {
        const int64_t size = move->x->shape[i];
        struct hob__range range = {0, size, 1};

        if (i < count)
            range = hob__range_resolve(starts[i], ends[i],
                                       i < step_count ? steps[i] : 1, size);
        if (!cut(move, i, &range, &ranges[i]))
            return NULL;
    }
    return sliced(move, ranges);
}

/* The next result of split, split_sizes or chunk. */
static hob_tensor *by_splitting(struct move *move)
{
    struct hob__range ranges[HOB_MAX_RANK];
    uint32_t axis;

    if (!hob__axis(hob__attr_i64(move->call, 2), move->x->rank, &axis))
        return NULL;
    for (uint32_t i = 0; i < move->x->rank; i++) {
        struct hob__range range = {0, move->out->shape[i], 1};

        range.first = i == axis ? *move->first : 0;
        if (!cut(move, i, &range, &ranges[i]))
            return NULL;
    }
    *move->first += move->out->shape[axis];
    return sliced(move, ranges);
}

static hob_tensor *follow(struct move *move, uint32_t scheme)
{
    switch (move->call->op) {
    case HOB_OP_CONTIGUOUS:
        memcpy(move->out_block, move->block, sizeof(move->block));
        return move->scales;
    case HOB_OP_PERMUTE:
    case HOB_OP_SWAP_DIMS:
    case HOB_OP_MOVE_DIMS:
        return by_order(move);
    case HOB_OP_RESHAPE:
    case HOB_OP_SQUEEZE:
    case HOB_OP_UNSQUEEZE:
        return by_shape(move, scheme);
    case HOB_OP_EXPAND:
        return by_expanding(move);
    case HOB_OP_FLIP:
        return by_turning(move, 1);
    case HOB_OP_ROLL:
        return by_turning(move, 2);
    case HOB_OP_REPEAT:
    case HOB_OP_REPEAT_DIM:
        return by_repeating(move);
    case HOB_OP_SELECT:
        return by_selecting(move);
    case HOB_OP_SLICE:
        return by_slicing(move);
    case HOB_OP_SPLIT:
    case HOB_OP_SPLIT_SIZES:
    case HOB_OP_CHUNK:
        return by_splitting(move);
    default: /* elements of several blocks may meet */
        return NULL;
    }
}

/* Blocks as part of a scheme, that of X if it says the same of the result. */
static int describe(const struct move *move, uint32_t scheme, uint32_t *out)
{
    const struct hob_view *view = move->out;
    int64_t block[HOB_MAX_RANK];
    int same = 1;

    for (uint32_t i = 0; i < view->rank; i++) {
        block[i] = view->shape[i] == 1 ? 1 : move->out_block[i];
        same &= hob_quant_block_in(scheme, view->rank, i, view->shape[i]) ==
                move->out_block[i];
    }
    *out = scheme & ~(uint32_t)(HOB_QUANT_SEVERAL - 1);
    return same || hob_quant_blocks(block, view->shape, view->rank, out);
}

int hob__quantized_move(hob_scope *scope, const struct hob_call *call,
                        hob_tensor *scales, const struct hob_view *out,
                        int64_t *first, hob_tensor **out_scales,
                        uint32_t *out_blocks)
{
    const struct hob_view *x = &call->args[0].u.tensor->view;
    struct move move = {.scope = scope,
                        .call = call,
                        .x = x,
                        .scales = scales,
                        .out = out,
                        .first = first};

    /* Without elements nothing is lost by quantizing anew. */
    if (!hob_view_count(x) || !hob_view_count(out))
        return 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        move.block[i] = hob_quant_block_in(x->scheme, x->rank, i, x->shape[i]);
        move.count[i] = hob_quant_block_count(x->shape[i], move.block[i]);
    }
    *out_scales = follow(&move, x->scheme);
    return *out_scales && describe(&move, x->scheme, out_blocks);
}

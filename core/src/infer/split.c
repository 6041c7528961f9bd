/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - one tensor into several: split, split_sizes, chunk, meshgrid.
 *
 * A list is inferred in two steps: OUT is NULL first, and the length is
 * asked for; then the items.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>
#include <string.h>

/* As many results as an hob_call can count. */
static hob_status set_count(struct hob_call *call, int64_t count)
{
    if (count > UINT16_MAX)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: it would make %" PRId64
                                " tensors; at most %d are possible",
                                call->op_name, count, UINT16_MAX);
    call->ret_count = (uint16_t)count;
    return HOB_OK;
}

/* Pieces of SIZE along AXIS, the last one of what is left. An axis without
 * elements is one piece. */
static hob_status pieces(struct hob_call *call, const struct hob_view *x,
                         uint32_t axis, int64_t size, struct hob_meta *out)
{
    int64_t whole = x->shape[axis];

    if (!out)
        return set_count(call, whole ? (whole - 1) / size + 1 : 1);
    for (uint32_t i = 0; i < call->ret_count; i++) {
        int64_t left = whole - i * size;

        hob__meta_copy_shape(&out[i], x);
        out[i].shape[axis] = left < size ? left : size;
    }
    return HOB_OK;
}

static hob_status positive(struct hob_call *call, const char *name,
                           int64_t number)
{
    if (number > 0)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_RANGE,
                            "%s: %s is %" PRId64 "; it must be at least 1",
                            call->op_name, name, number);
}

hob_status hob__infer_split(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t size = hob__attr_i64(call, 1);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 2), x, 0, &axis);

    if (!st)
        st = positive(call, "size", size);
    return st ? st : pieces(call, x, axis, size, out);
}

/* CHUNKS pieces of equal size but the last; fewer where there are not enough
 * elements for so many. */
hob_status hob__infer_chunk(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t chunks = hob__attr_i64(call, 1), size;
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 2), x, 0, &axis);

    if (!st)
        st = positive(call, "chunks", chunks);
    if (st)
        return st;
    size = x->shape[axis] ? (x->shape[axis] - 1) / chunks + 1 : 1;
    return pieces(call, x, axis, size, out);
}

hob_status hob__infer_split_sizes(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count, axis;
    const int64_t *sizes = hob__attr_list(call, 1, &count);
    int64_t sum = 0;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 2), x, 0, &axis);

    for (uint32_t i = 0; i < count && !st; i++) {
        if (sizes[i] < 0 || !hob__dim_add(sum, sizes[i], &sum))
            st = call->host->fail(call, HOB_ERR_RANGE,
                                  "%s: sizes[%u] is %" PRId64
                                  "; sizes must not be negative, and must sum "
                                  "up to the dimension's",
                                  call->op_name, (unsigned)i, sizes[i]);
    }
    if (!st && sum != x->shape[axis])
        st = call->host->fail(call, HOB_ERR_SHAPE,
                              "%s: sizes %s sum up to %" PRId64
                              ", dimension %u of %s is another size",
                              call->op_name, hob__list_text(sizes, count).text,
                              sum, (unsigned)axis, hob__view_text(x).text);
    if (st || !out)
        return st ? st : set_count(call, count);
    for (uint32_t i = 0; i < count; i++) {
        hob__meta_copy_shape(&out[i], x);
        out[i].shape[axis] = sizes[i];
    }
    return HOB_OK;
}

/* "xy" exchanges the first two dimensions; a sparse grid keeps size 1 where
 * a tensor does not vary. */
hob_status hob__infer_meshgrid(struct hob_call *call, struct hob_meta *out)
{
    uint32_t count = call->args[0].count;
    int is_xy = call->args[1].u.i64 == 1 && count > 1;
    int is_sparse = call->args[2].u.i64 != 0;
    hob_status st = HOB_OK;

    if (count > HOB_MAX_RANK)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: %u tensors span as many dimensions; at most %d are possible",
            call->op_name, (unsigned)count, HOB_MAX_RANK);
    for (uint32_t i = 0; i < count; i++)
        if (hob_arg_item(call, 0, i)->rank > 1)
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: tensors[%u] is %s; each has rank 0 or 1", call->op_name,
                (unsigned)i, hob__view_text(hob_arg_item(call, 0, i)).text);
    if (!out)
        return set_count(call, count);
    for (uint32_t i = 0; i < count && !st; i++) {
        out[i].rank = (uint8_t)count;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t at = is_xy && k < 2 ? 1 - k : k;

            out[i].shape[at] = is_sparse && k != i
                                   ? 1
                                   : hob_view_count(hob_arg_item(call, 0, k));
        }
        st = hob__infer_check(call, &out[i]);
    }
    return st;
}

/* As dense meshgrid, the grids side by side along a new dimension. */
hob_status hob__infer_meshgrid_stack(struct hob_call *call,
                                     struct hob_meta *out)
{
    uint32_t count = call->args[0].count;
    uint32_t first = call->args[1].u.i64 == 0;

    if (count + 1 > HOB_MAX_RANK)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: %u tensors span as many dimensions and one more; at most %d "
            "are possible",
            call->op_name, (unsigned)count, HOB_MAX_RANK);
    out->rank = (uint8_t)(count + 1);
    out->shape[first ? 0 : count] = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct hob_view *item = hob_arg_item(call, 0, i);

        if (item->rank > 1)
            return call->host->fail(call, HOB_ERR_SHAPE,
                                    "%s: tensors[%u] is %s; each has rank 0 "
                                    "or 1",
                                    call->op_name, (unsigned)i,
                                    hob__view_text(item).text);
        out->shape[i + first] = hob_view_count(item);
    }
    return hob__infer_check(call, out);
}

/* The indices of every place of a shape, [.., rank]. */
hob_status hob__infer_cartesian_grid(struct hob_call *call,
                                     struct hob_meta *out)
{
    uint32_t count;
    const int64_t *shape = hob__attr_list(call, 0, &count);

    if (!count || count + 1 > HOB_MAX_RANK)
        return call->host->fail(
            call, HOB_ERR_SHAPE, "%s: shape %s has %u sizes; give 1 to %d",
            call->op_name, hob__list_text(shape, count).text, (unsigned)count,
            HOB_MAX_RANK - 1);
    if (!(HOB_DTYPE_BIT(out->dtype) & HOB_MASK_INT))
        return call->host->fail(call, HOB_ERR_DTYPE,
                                "%s: dtype is %s; it must be an integer's",
                                call->op_name, hob_dtype_name(out->dtype));
    out->rank = (uint8_t)(count + 1);
    memcpy(out->shape, shape, count * sizeof(shape[0]));
    out->shape[count] = count;
    return hob__infer_check(call, out);
}

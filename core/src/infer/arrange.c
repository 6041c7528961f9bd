/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrange.c - elements in other places: repeat, roll, move_dims, pad,
 * diagonals.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>
#include <string.h>

/* Sizes and times are aligned at the end; what is not there counts as 1. */
hob_status hob__infer_repeat(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count;
    const int64_t *times = hob__attr_list(call, 1, &count);
    uint32_t rank = count > x->rank ? count : x->rank;

    if (rank > HOB_MAX_RANK)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: times %s has %u entries; at most %d "
                                "dimensions are possible",
                                call->op_name,
                                hob__list_text(times, count).text,
                                (unsigned)count, HOB_MAX_RANK);
    out->rank = (uint8_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t size = i < rank - x->rank ? 1 : x->shape[i - (rank - x->rank)];
        int64_t factor = i < rank - count ? 1 : times[i - (rank - count)];

        if (factor < 0)
            return call->host->fail(
                call, HOB_ERR_RANGE, "%s: times %s must not be negative",
                call->op_name, hob__list_text(times, count).text);
        if (!hob__dim_mul(size, factor, &out->shape[i]))
            out->shape[i] = INT64_MAX; /* refused below */
    }
    return hob__infer_check(call, out);
}

hob_status hob__infer_roll(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t shift_count, dim_count, axis;
    const int64_t *shifts = hob__attr_list(call, 1, &shift_count);
    const int64_t *dims = hob__attr_list(call, 2, &dim_count);
    hob_status st = HOB_OK;

    if (shift_count != dim_count)
        return call->host->fail(
            call, HOB_ERR_ARGUMENT,
            "%s: there are %u shifts %s and %u dims %s: one shift a dimension",
            call->op_name, (unsigned)shift_count,
            hob__list_text(shifts, shift_count).text, (unsigned)dim_count,
            hob__list_text(dims, dim_count).text);
    for (uint32_t i = 0; i < dim_count && !st; i++)
        st = hob__infer_axis(call, "dims", dims[i], x, 0, &axis);
    hob__meta_copy_shape(out, x);
    return st;
}

int hob__move_order(uint32_t rank, const int64_t *from, const int64_t *to,
                    uint32_t count, int64_t *out_order)
{
    uint32_t used = 0, next = 0, a, b;

    for (uint32_t i = 0; i < rank; i++)
        out_order[i] = -1;
    for (uint32_t i = 0; i < count; i++) {
        if (!hob__axis(from[i], rank, &a) || !hob__axis(to[i], rank, &b) ||
            used >> a & 1 || out_order[b] >= 0)
            return 0;
        used |= 1u << a;
        out_order[b] = a;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (out_order[i] >= 0)
            continue;
        while (used >> next & 1)
            next++;
        out_order[i] = next++;
    }
    return 1;
}

hob_status hob__infer_move_dims(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t from_count, to_count;
    const int64_t *from = hob__attr_list(call, 1, &from_count);
    const int64_t *to = hob__attr_list(call, 2, &to_count);
    int64_t order[HOB_MAX_RANK];

    if (from_count != to_count ||
        !hob__move_order(x->rank, from, to, from_count, order))
        return call->host->fail(
            call, HOB_ERR_ARGUMENT,
            "%s: from %s and to %s must be lists of one length that name "
            "dimensions of %s, each once",
            call->op_name, hob__list_text(from, from_count).text,
            hob__list_text(to, to_count).text, hob__view_text(x).text);
    out->rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        out->shape[i] = x->shape[order[i]];
    return HOB_OK;
}

static hob_status bad_padding(struct hob_call *call, const char *what,
                              uint32_t axis, int64_t before, int64_t after,
                              const struct hob_view *x)
{
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: padding (%" PRId64 ", %" PRId64
                            ") of dimension %u of %s %s",
                            call->op_name, before, after, (unsigned)axis,
                            hob__view_text(x).text, what);
}

/* One pair a dimension, from the last one backwards; negative ones crop. */
hob_status hob__infer_pad(struct hob_call *call, struct hob_meta *out)
{
    enum { CONSTANT, REFLECT, EDGE };
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t mode = call->args[2].u.i64;
    uint32_t count;
    const int64_t *padding = hob__attr_list(call, 1, &count);

    if (count % 2 || count / 2 > x->rank)
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "%s: padding %s has %u entries; give two, "
                                "before and after, for each of up to %u "
                                "dimensions, the last one first",
                                call->op_name,
                                hob__list_text(padding, count).text,
                                (unsigned)count, (unsigned)x->rank);
    hob__meta_copy_shape(out, x);
    for (uint32_t i = 0; i < count / 2; i++) {
        uint32_t axis = x->rank - 1 - i;
        int64_t before = padding[2 * i], after = padding[2 * i + 1];
        int64_t size = x->shape[axis];

        if (mode != CONSTANT && (before < 0 || after < 0))
            return bad_padding(call,
                               "is negative, which only constant padding "
                               "takes",
                               axis, before, after, x);
        if (mode == REFLECT && (before || after) &&
            (before >= size || after >= size))
            return bad_padding(call,
                               "must be smaller than the size to reflect "
                               "it",
                               axis, before, after, x);
        if (mode == EDGE && (before || after) && !size)
            return bad_padding(call, "has no edge to repeat", axis, before,
                               after, x);
        if (!hob__dim_add(size, before, &size) ||
            !hob__dim_add(size, after, &size))
            size = INT64_MAX; /* refused below */
        if (size < 0)
            return bad_padding(call, "crops more than there is", axis, before,
                               after, x);
        out->shape[axis] = size;
    }
    return hob__infer_check(call, out);
}

/* [.., m, n] becomes [.., length of the diagonal]. */
hob_status hob__infer_diagonal(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t offset = hob__attr_i64(call, 1), rows, columns, length;

    if (x->rank < 2)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s; it needs two dimensions or more",
                                call->op_name, hob__view_text(x).text);
    rows = x->shape[x->rank - 2];
    columns = x->shape[x->rank - 1];
    if (offset > 0)
        columns = offset < columns ? columns - offset : 0;
    else
        rows = offset > -rows ? rows + offset : 0;
    length = rows < columns ? rows : columns;
    out->rank = (uint8_t)(x->rank - 1);
    memcpy(out->shape, x->shape, out->rank * sizeof(out->shape[0]));
    out->shape[out->rank - 1] = length;
    return HOB_OK;
}

hob_status hob__infer_trace(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    if (x->rank < 2)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s; it needs two dimensions or more",
                                call->op_name, hob__view_text(x).text);
    out->rank = (uint8_t)(x->rank - 2);
    memcpy(out->shape, x->shape, out->rank * sizeof(out->shape[0]));
    return HOB_OK;
}

hob_status hob__infer_triangle(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    if (x->rank < 2)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s; it needs two dimensions or more",
                                call->op_name, hob__view_text(x).text);
    hob__meta_copy_shape(out, x);
    return HOB_OK;
}

hob_status hob__infer_eye(struct hob_call *call, struct hob_meta *out)
{
    int64_t size = hob__attr_i64(call, 0);

    if (size < 0)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: size is %" PRId64
                                "; it must not be negative",
                                call->op_name, size);
    out->rank = 2;
    out->shape[0] = out->shape[1] = size;
    return hob__infer_check(call, out);
}

hob_status hob__infer_one_hot(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t classes = hob__attr_i64(call, 1);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 2), x, 1, &axis);

    if (st)
        return st;
    if (classes < 1)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: classes is %" PRId64
                                "; it must be at least 1",
                                call->op_name, classes);
    if (HOB_DTYPE_BIT(out->dtype) & HOB_MASK_BOOL)
        return call->host->fail(call, HOB_ERR_DTYPE,
                                "%s: dtype is bool; it must be a number's: "
                                "compare the result with 0 instead",
                                call->op_name);
    out->rank = (uint8_t)(x->rank + 1);
    if (out->rank > HOB_MAX_RANK)
        return hob__infer_check(call, out);
    memcpy(out->shape, x->shape, axis * sizeof(out->shape[0]));
    out->shape[axis] = classes;
    memcpy(out->shape + axis + 1, x->shape + axis,
           (x->rank - axis) * sizeof(out->shape[0]));
    return hob__infer_check(call, out);
}

/* Two lists of 3-vectors along dim, otherwise broadcast. */
hob_status hob__infer_cross(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *a = hob_arg_view(call, 0);
    const struct hob_view *b = hob_arg_view(call, 1);
    const struct hob_view *longer = a->rank >= b->rank ? a : b;
    uint32_t axis, where, back;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 2), longer, 0, &axis);

    if (st)
        return st;
    back = longer->rank - axis; /* from the end, as in both */
    if (back > a->rank || back > b->rank || a->shape[a->rank - back] != 3 ||
        b->shape[b->rank - back] != 3)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: lhs is %s and rhs is %s; both need size 3 "
                                "in dimension %" PRId64,
                                call->op_name, hob__view_text(a).text,
                                hob__view_text(b).text, hob__attr_i64(call, 2));
    out->rank = 0;
    (void)hob__broadcast(out, a->shape, a->rank, &where);
    if (!hob__broadcast(out, b->shape, b->rank, &where))
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: lhs is %s and rhs is %s; dimension %u of "
                                "the result does not broadcast",
                                call->op_name, hob__view_text(a).text,
                                hob__view_text(b).text, (unsigned)where);
    return hob__infer_check(call, out);
}

/* [variables, observations], observations along dim. */
hob_status hob__infer_cov(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t axis;
    hob_status st =
        hob__infer_rank(call, 0, "x", 2, "[variables, observations]");

    if (!st)
        st = hob__infer_axis(call, "dim", hob__attr_i64(call, 1), x, 0, &axis);
    if (st)
        return st;
    out->rank = 2;
    out->shape[0] = out->shape[1] = x->shape[1 - axis];
    return hob__infer_check(call, out);
}

hob_status hob__infer_window_function(struct hob_call *call,
                                      struct hob_meta *out)
{
    int64_t size = hob__attr_i64(call, 0);

    if (size < 0)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: size is %" PRId64
                                "; it must not be negative",
                                call->op_name, size);
    if (!(HOB_DTYPE_BIT(out->dtype) & HOB_MASK_FLOAT))
        return call->host->fail(call, HOB_ERR_DTYPE,
                                "%s: dtype is %s; it must be a float's",
                                call->op_name, hob_dtype_name(out->dtype));
    out->rank = 1;
    out->shape[0] = size;
    return hob__infer_check(call, out);
}

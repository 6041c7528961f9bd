/* SPDX-License-Identifier: Apache-2.0 */
#include "util.h"

#include <hob/ext/quant.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct hob__text_shape shape_text(const char *dtype,
                                         const int64_t *numbers, uint32_t count)
{
    struct hob__text_shape shape;
    size_t room = sizeof(shape.text);
    size_t at = (size_t)snprintf(shape.text, room, "%s[", dtype);

    for (uint32_t i = 0; i < count && i < HOB_MAX_RANK; i++)
        at += (size_t)snprintf(shape.text + at, room - at, "%s%" PRId64,
                               i ? "," : "", numbers[i]);
    snprintf(shape.text + at, room - at, "%s]",
             count > HOB_MAX_RANK ? ",..." : "");
    return shape;
}

/* A quantized tensor is called by its format, and the sizes of its blocks:
 * "q4s/2x16", where "*" is all of a dimension. */
static struct hob__text_shape typed_text(uint32_t dtype, uint32_t scheme,
                                         const int64_t *shape, uint32_t rank)
{
    char name[16 + HOB_QUANT_BLOCK_DIMS * 21];
    size_t at = 0;
    int64_t block[HOB_QUANT_BLOCK_DIMS];
    uint32_t count;

    if (dtype != HOB_DTYPE_QUANT)
        return shape_text(hob_dtype_name(dtype), shape, rank);
    count = hob_quant_block_list(scheme, block);
    at +=
        (size_t)snprintf(name, sizeof(name), "%s",
                         hob_quant_format_of(hob_quant_value_of(scheme))->name);
    for (uint32_t i = 0; i < count; i++)
        at += block[i] ? (size_t)snprintf(name + at, sizeof(name) - at,
                                          "%c%" PRId64, i ? 'x' : '/', block[i])
                       : (size_t)snprintf(name + at, sizeof(name) - at, "%c*",
                                          i ? 'x' : '/');
    return shape_text(name, shape, rank);
}

struct hob__text_shape hob__view_text(const struct hob_view *view)
{
    return typed_text(view->dtype, view->scheme, view->shape, view->rank);
}

struct hob__text_shape hob__infer_meta_text(const struct hob_meta *meta)
{
    return typed_text(meta->dtype, meta->scheme, meta->shape, meta->rank);
}

struct hob__text_shape hob__list_text(const int64_t *numbers, uint32_t count)
{
    return shape_text("", numbers, count);
}

int hob__dim_mul(int64_t a, int64_t b, int64_t *out)
{
    /* Most sizes are small: no division for them. */
    if ((a | b) >> 31 && b && a > INT64_MAX / b)
        return 0;
    *out = a * b;
    return 1;
}

int hob__dim_add(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return 0;
    *out = a + b;
    return 1;
}

int64_t hob__attr_i64(const struct hob_call *call, uint32_t index)
{
    return call->args[index].u.i64;
}

const int64_t *hob__attr_list(const struct hob_call *call, uint32_t index,
                              uint32_t *out_count)
{
    /* An omitted list without a default is an empty one. */
    *out_count =
        call->args[index].tag == HOB_TAG_ABSENT ? 0 : call->args[index].count;
    return call->args[index].u.i64s;
}

void hob__meta_copy_shape(struct hob_meta *meta, const struct hob_view *view)
{
    meta->rank = view->rank;
    /* All of it, a few moves: memcpy of a length that it has to look at takes
     * longer. */
    memcpy(meta->shape, view->shape, sizeof(meta->shape));
}

int hob__same_shape(const struct hob_view *a, const struct hob_view *b)
{
    /* A loop: for the few sizes that there are, memcmp takes longer. */
    if (a->rank != b->rank)
        return 0;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return 0;
    return 1;
}

hob_status hob__infer_check(struct hob_call *call, const struct hob_meta *meta)
{
    int64_t bytes = hob_dtype_size(meta->dtype);

    if (bytes == 0)
        return call->host->fail(
            call, HOB_ERR_DTYPE, "%s: dtype %s has no elements to compute on%s",
            call->op_name, hob_dtype_name(meta->dtype),
            meta->dtype == HOB_DTYPE_QUANT ? ": use hob_quantize_dynamic()"
                                           : "");
    if (meta->rank > HOB_MAX_RANK)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: the result would have %u dimensions; at most %d are possible",
            call->op_name, (unsigned)meta->rank, HOB_MAX_RANK);
    for (uint32_t i = 0; i < meta->rank; i++) {
        int64_t size = meta->shape[i];
        if (size < 0)
            return call->host->fail(
                call, HOB_ERR_SHAPE, "%s: shape %s has a negative size",
                call->op_name, hob__infer_meta_text(meta).text);
        if (!hob__dim_mul(bytes, size ? size : 1, &bytes))
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: %s has more than 2^63 bytes: choose smaller sizes",
                call->op_name, hob__infer_meta_text(meta).text);
    }
    return HOB_OK;
}

int hob__axis(int64_t dim, uint32_t rank, uint32_t *out_axis)
{
    if (dim < -(int64_t)rank || dim >= (int64_t)rank)
        return 0;
    *out_axis = (uint32_t)(dim < 0 ? dim + (int64_t)rank : dim);
    return 1;
}

hob_status hob__infer_axis(struct hob_call *call, const char *name, int64_t dim,
                           const struct hob_view *view, uint32_t extra,
                           uint32_t *out_axis)
{
    uint32_t rank = view->rank + extra;

    if (hob__axis(dim, rank, out_axis))
        return HOB_OK;
    if (rank == 0)
        return call->host->fail(
            call, HOB_ERR_RANGE,
            "%s: %s is %" PRId64 ", but %s has no dimensions: reshape it first",
            call->op_name, name, dim, hob__view_text(view).text);
    return call->host->fail(call, HOB_ERR_RANGE,
                            "%s: %s %" PRId64
                            " is out of range for %s: it must be in %d..%d",
                            call->op_name, name, dim, hob__view_text(view).text,
                            -(int)rank, (int)rank - 1);
}

hob_status hob__infer_rank(struct hob_call *call, uint32_t index,
                           const char *name, uint32_t rank, const char *layout)
{
    const struct hob_view *view = hob_arg_view(call, index);

    if (view->rank == rank)
        return HOB_OK;
    return call->host->fail(
        call, HOB_ERR_SHAPE, "%s: %s is %s; it must have %u dimensions, %s",
        call->op_name, name, hob__view_text(view).text, (unsigned)rank, layout);
}

hob_status hob__infer_equal(struct hob_call *call, const char *name,
                            const struct hob_view *view, const char *what,
                            const struct hob_meta *meta)
{
    if (view->rank == meta->rank &&
        memcmp(view->shape, meta->shape, view->rank * sizeof(view->shape[0])) ==
            0)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: %s is %s; it must have the shape of %s, %s",
                            call->op_name, name, hob__view_text(view).text,
                            what, hob__list_text(meta->shape, meta->rank).text);
}

hob_status hob__infer_index_dtype(struct hob_call *call, int64_t limit)
{
    int64_t dtype = HOB_DTYPE_NONE;

    for (uint32_t i = 0; i < call->arg_count; i++)
        if (call->args[i].tag == HOB_TAG_DTYPE)
            dtype = call->args[i].u.i64;
    if (dtype == HOB_DTYPE_NONE || dtype == HOB_DTYPE_I64)
        return HOB_OK;
    if (dtype != HOB_DTYPE_I32)
        return call->host->fail(call, HOB_ERR_DTYPE,
                                "%s: index_dtype is %s; indices are i32 or i64",
                                call->op_name, hob_dtype_name((uint32_t)dtype));
    if (limit > INT32_MAX)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: indices below %" PRId64
                                " do not fit i32: pass index_dtype i64",
                                call->op_name, limit);
    return HOB_OK;
}

int hob__broadcast(struct hob_meta *meta, const int64_t *sizes, uint32_t rank,
                   uint32_t *out_axis)
{
    if (rank > meta->rank) {
        uint32_t more = rank - meta->rank;
        memmove(meta->shape + more, meta->shape,
                meta->rank * sizeof(meta->shape[0]));
        for (uint32_t i = 0; i < more; i++)
            meta->shape[i] = 1;
        meta->rank = (uint8_t)rank;
    }
    for (uint32_t i = 0; i < rank; i++) {
        int64_t *size = &meta->shape[meta->rank - rank + i];
        if (*size == sizes[i] || sizes[i] == 1)
            continue;
        if (*size != 1) {
            *out_axis = meta->rank - rank + i;
            return 0;
        }
        *size = sizes[i];
    }
    return 1;
}

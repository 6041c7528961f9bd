/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - elements picked at positions: gather, select, embedding, gather_nd
 * and mask_select; argwhere. What adds or writes at positions is in scatter.c.
 * Offsets are 64 bits throughout.
 */
#include "index.h"

#include <inttypes.h>
#include <string.h>

/* ---- select and embedding ---- */

struct select {
    struct flex_loop outer; /* the dimensions before dim, first slice */
    struct flex_loop inner; /* those behind */
    int64_t stride_bytes;   /* between slices of x */
    const int64_t *indices;
    int64_t count; /* of indices */
    char *out;
};

/* Slices FIRST .. LAST - 1 of the result, numbered outer * count + i. */
static void select_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct select *select = context;
    const uint32_t size = select->inner.size;
    const int64_t slice_bytes = select->inner.count * (int64_t)size;
    const int is_dense = flex_loop_dense(&select->inner);
    struct flex_loop inner = select->inner;

    (void)worker;
    while (first < last) {
        const int64_t outer = first / select->count;
        const char *base =
            select->outer.data +
            flex_loop_offset(&select->outer, outer) * (int64_t)size;
        int64_t end = (outer + 1) * select->count;

        if (end > last)
            end = last;
        for (; first < end; first++) {
            const int64_t index =
                select->indices[first - outer * select->count];
            const char *in = base + index * select->stride_bytes;
            char *out = select->out + first * slice_bytes;

            if (is_dense && slice_bytes == 4) {
                memcpy(out, in, 4);
            } else if (is_dense && slice_bytes == 8) {
                memcpy(out, in, 8);
            } else if (is_dense) {
                memcpy(out, in, (size_t)slice_bytes);
            } else {
                inner.data = (char *)(uintptr_t)in;
                flex_loop_gather(&inner, 0, inner.count, out);
            }
        }
    }
}

/* x's slices at INDICES (all of its elements) along DIM into OUT. */
static hob_status run_select(struct hob_call *call, struct flex_device *device,
                             const struct hob_view *x,
                             const struct hob_view *indices, uint32_t dim,
                             char *out)
{
    struct hob_view part = *x;
    struct select select = {.stride_bytes = x->strides[dim] *
                                            (int64_t)hob_dtype_size(x->dtype),
                            .count = hob_view_count(indices),
                            .out = out};
    int64_t *list;
    uint64_t bytes;
    hob_status st =
        flex_index_take(call, device, indices, x->shape[dim], &list, &bytes);

    if (st)
        return st;
    select.indices = list;
    part.rank = (uint8_t)dim;
    flex_loop_init(&select.outer, &part);
    part.rank = (uint8_t)(x->rank - dim - 1);
    memcpy(part.shape, x->shape + dim + 1, part.rank * sizeof(part.shape[0]));
    memcpy(part.strides, x->strides + dim + 1,
           part.rank * sizeof(part.strides[0]));
    flex_loop_init(&select.inner, &part);
    if (select.inner.count > 0)
        flex_parallel(device, select.outer.count * select.count,
                      1 + FLEX_GRAIN_CHEAP / 4 / select.inner.count,
                      select_range, &select);
    flex_scratch_give(device, list, bytes);
    return HOB_OK;
}

static hob_status select_op(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    return run_select(call, device, x, hob_arg_view(call, 1),
                      flex_dim(flex_arg_i64(call, 2), x->rank),
                      hob_ret_view(call, 0)->data);
}

static hob_status embedding(void *device, struct hob_call *call)
{
    return run_select(call, device, hob_arg_view(call, 0),
                      hob_arg_view(call, 1), 0, hob_ret_view(call, 0)->data);
}

/* Slices of x's dimensions behind the k-th, at offsets of elements. */
static hob_status gather_nd(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);
    const uint32_t k = (uint32_t)indices->shape[indices->rank - 1];
    struct hob_view part = *x;
    struct select select = {.stride_bytes = hob_dtype_size(x->dtype),
                            .out = hob_ret_view(call, 0)->data};
    int64_t *offsets;
    uint64_t bytes;
    hob_status st = flex_index_take_rows(call, device, indices, x, x->strides,
                                         &offsets, &bytes);

    if (st)
        return st;
    select.indices = offsets;
    select.count = (int64_t)(bytes / 8);
    part.rank = 0;
    flex_loop_init(&select.outer, &part);
    part.rank = (uint8_t)(x->rank - k);
    memcpy(part.shape, x->shape + k, part.rank * sizeof(part.shape[0]));
    memcpy(part.strides, x->strides + k, part.rank * sizeof(part.strides[0]));
    flex_loop_init(&select.inner, &part);
    if (select.inner.count > 0)
        flex_parallel(device, select.count,
                      1 + FLEX_GRAIN_CHEAP / 4 / select.inner.count,
                      select_range, &select);
    flex_scratch_give(device, offsets, bytes);
    return HOB_OK;
}

/* ---- gather ---- */

struct gather {
    struct flex_loop base; /* x over the rows of indices, dim at 0 */
    const int64_t *indices;
    int64_t n;                     /* elements in a row: the last dimension */
    int64_t last_bytes, dim_bytes; /* steps in x: along a row, an index */
    uint32_t size;
    char *out;
};

static void gather_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct gather *gather = context;

    (void)worker;
    for (int64_t row = first; row < last; row++) {
        const int64_t *indices = gather->indices + row * gather->n;
        const char *in =
            gather->base.data +
            flex_loop_offset(&gather->base, row) * (int64_t)gather->size;
        char *out = gather->out + row * gather->n * (int64_t)gather->size;

        for (int64_t i = 0; i < gather->n; i++) {
            const char *from =
                in + i * gather->last_bytes + indices[i] * gather->dim_bytes;
            switch (gather->size) {
            case 1:
                out[i] = *from;
                break;
            case 2:
                memcpy(out + 2 * i, from, 2);
                break;
            case 4:
                memcpy(out + 4 * i, from, 4);
                break;
            default:
                memcpy(out + 8 * i, from, 8);
                break;
            }
        }
    }
}

static hob_status gather(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);
    const uint32_t dim = flex_dim(flex_arg_i64(call, 2), x->rank);
    const uint32_t last = x->rank - 1u;
    struct hob_view rows = *indices;
    struct gather job = {.n = indices->shape[last],
                         .size = hob_dtype_size(x->dtype),
                         .out = hob_ret_view(call, 0)->data};
    int64_t *list;
    uint64_t bytes;
    hob_status st =
        flex_index_take(call, device, indices, x->shape[dim], &list, &bytes);

    if (st)
        return st;
    job.indices = list;
    job.dim_bytes = x->strides[dim] * (int64_t)job.size;
    job.last_bytes = dim == last ? 0 : x->strides[last] * (int64_t)job.size;
    rows.data = x->data;
    rows.dtype = x->dtype;
    rows.rank = (uint8_t)last;
    for (uint32_t i = 0; i < last; i++)
        rows.strides[i] = i == dim ? 0 : x->strides[i];
    flex_loop_init(&job.base, &rows);
    if (job.n > 0)
        flex_parallel(device, job.base.count, 1 + FLEX_GRAIN_CHEAP / 4 / job.n,
                      gather_range, &job);
    flex_scratch_give(device, list, bytes);
    return HOB_OK;
}

/* ---- mask_select ---- */

/* Copy the elements of IN where MASK is set; returns how many. */
static int64_t pick(char *out, const char *in, const uint8_t *mask, int64_t n,
                    uint32_t size)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++) {
        if (!mask[i])
            continue;
        memcpy(out + count * (int64_t)size, in + i * (int64_t)size, size);
        count++;
    }
    return count;
}

static hob_status mask_select(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *mask = hob_arg_view(call, 1);
    struct flex_loop x_loop, mask_loop;
    struct hob_meta meta = {.dtype = x->dtype, .rank = 1};
    uint8_t mask_block[FLEX_BLOCK];
    char x_block[FLEX_BLOCK * 8];
    char *out;
    hob_status st;

    (void)device;
    flex_loop_init(&x_loop, x);
    flex_loop_broadcast(&mask_loop, mask, x->rank, x->shape);
    for (int64_t i = 0; i < x_loop.count; i += FLEX_BLOCK) {
        int64_t n =
            x_loop.count - i < FLEX_BLOCK ? x_loop.count - i : FLEX_BLOCK;
        const uint8_t *m = flex_loop_fetch(&mask_loop, i, n, mask_block);
        for (int64_t j = 0; j < n; j++)
            meta.shape[0] += m[j] != 0;
    }
    st = call->host->result(call, 0, &meta);
    if (st)
        return st;
    out = hob_ret_view(call, 0)->data;
    for (int64_t i = 0; i < x_loop.count; i += FLEX_BLOCK) {
        int64_t n =
            x_loop.count - i < FLEX_BLOCK ? x_loop.count - i : FLEX_BLOCK;
        const uint8_t *m = flex_loop_fetch(&mask_loop, i, n, mask_block);
        const void *in = flex_loop_fetch(&x_loop, i, n, x_block);
        out += pick(out, in, m, n, x_loop.size) * (int64_t)x_loop.size;
    }
    return HOB_OK;
}

/* ---- argwhere ---- */

/* Whether N elements of LOOP from FIRST on are not zero; NaN is not. */
static const uint8_t *truth_of(const struct flex_device *device,
                               const struct flex_loop *loop, uint32_t dtype,
                               int64_t first, int64_t n, uint8_t *buffer)
{
    char block[FLEX_BLOCK * 8];
    const void *in;

    if (dtype == HOB_DTYPE_BOOL)
        return flex_loop_fetch(loop, first, n, buffer);
    in = flex_loop_fetch(loop, first, n, block);
    device->kernels->cast[HOB_DTYPE_BOOL][dtype](buffer, in, n);
    return buffer;
}

/* Row-major place INDEX of X as coordinates at OUT, i32 or i64. */
static void put_place(const struct hob_view *x, int64_t index, char *out,
                      uint32_t size)
{
    for (uint32_t i = x->rank; i-- > 0;) {
        int64_t at = index % x->shape[i];
        int32_t narrow = (int32_t)at;

        index /= x->shape[i];
        memcpy(out + i * size, size == 4 ? (void *)&narrow : (void *)&at, size);
    }
}

static hob_status argwhere(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const uint32_t dtype = (uint32_t)flex_arg_i64(call, 1);
    const uint32_t size = hob_dtype_size(dtype);
    struct hob_meta meta = {.dtype = dtype, .rank = 2};
    struct flex_loop loop;
    uint8_t buffer[FLEX_BLOCK];
    char *out;
    hob_status st;

    flex_loop_init(&loop, x);
    meta.shape[1] = x->rank;
    for (int64_t i = 0; i < loop.count; i += FLEX_BLOCK) {
        int64_t n = loop.count - i < FLEX_BLOCK ? loop.count - i : FLEX_BLOCK;
        const uint8_t *truth = truth_of(device, &loop, x->dtype, i, n, buffer);

        for (int64_t j = 0; j < n; j++)
            meta.shape[0] += truth[j] != 0;
    }
    st = call->host->result(call, 0, &meta);
    if (st)
        return st;
    out = hob_ret_view(call, 0)->data;
    for (int64_t i = 0; i < loop.count; i += FLEX_BLOCK) {
        int64_t n = loop.count - i < FLEX_BLOCK ? loop.count - i : FLEX_BLOCK;
        const uint8_t *truth = truth_of(device, &loop, x->dtype, i, n, buffer);

        for (int64_t j = 0; j < n; j++) {
            if (!truth[j])
                continue;
            put_place(x, i + j, out, size);
            out += (size_t)x->rank * size;
        }
    }
    return HOB_OK;
}

/* ---- the table ---- */

static const uint32_t any_masks[] = {HOB_MASK_ANY, HOB_MASK_INT};
static const uint32_t mask_masks[] = {HOB_MASK_ANY, HOB_MASK_BOOL};
static const uint32_t embedding_masks[] = {HOB_MASK_FLOAT, HOB_MASK_INT};

static const struct hob_entry entries[] = {
    {
        .op = "gather",
        .signature = "(x: Any, indices: Int, dim: i64) -> x",
        .dtypes = any_masks,
        .dtype_count = 2,
        .execute = gather,
    },
    {
        .op = "select",
        .signature = "(x: Any, indices: Int, dim: i64) -> x",
        .dtypes = any_masks,
        .dtype_count = 2,
        .execute = select_op,
    },
    {
        .op = "mask_select",
        .signature = "(x: Any, mask: Bool) -> x",
        .dtypes = mask_masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_DYNAMIC,
        .execute = mask_select,
    },
    {
        .op = "gather_nd",
        .signature = "(x: Any, indices: Int) -> x",
        .dtypes = any_masks,
        .dtype_count = 2,
        .execute = gather_nd,
    },
    {
        .op = "argwhere",
        .signature = "(x: Any, index_dtype: dtype = i32) -> index_dtype",
        .dtypes = any_masks,
        .dtype_count = 1,
        .flags = HOB_ENTRY_DYNAMIC,
        .execute = argwhere,
    },
    {
        .op = "embedding",
        .signature = "(weight: Float, indices: Int) -> weight",
        .dtypes = embedding_masks,
        .dtype_count = 2,
        .execute = embedding,
    },
};

const struct flex_entries flex_index_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - elements picked at positions: gather, select, embedding, gather_nd
 * and mask_select; argwhere. What adds or writes at positions is in scatter.c.
 * Offsets are 64 bits throughout.
 */
#include "at.h"
#include "index.h"
#include "move.h"

#include <inttypes.h>
#include <string.h>

/* ---- select and embedding ---- */

struct select {
    struct flex_device *device;
    struct flex_loop outer; /* the dimensions before dim, first slice */
    struct flex_loop inner; /* those behind */
    const struct flex_move_kernels *kernels;
    int past;             /* the result goes past the caches */
    int64_t stride_bytes; /* between slices of x */
    const int64_t *indices;
    int64_t count; /* of indices */
    char *out;
};

/* BYTES to OUT. The first lines of NEXT are asked for meanwhile: the processor
 * follows a slice, but does not foresee where another begins. */
static void copy_slice(const struct select *select, char *out, const char *in,
                       int64_t bytes, const char *next)
{
    enum { LINE = 64, LINES = 16 };
    const int64_t ahead = bytes < LINE * LINES ? bytes : LINE * LINES;

    for (int64_t i = 0; i < ahead; i += LINE)
        __builtin_prefetch(next + i);
    if (select->past && bytes >= LINE * LINES)
        select->kernels->stream(out, in, bytes);
    else
        memcpy(out, in, (size_t)bytes);
}

/* Slices of one outer item at indices FIRST .. FIRST + N - 1, to OUT. */
static void select_slices(const struct select *select, const char *base,
                          int64_t first, int64_t n, char *out)
{
    const int64_t *indices = select->indices + first;
    const uint32_t size = select->inner.size;
    const int64_t slice_bytes = select->inner.count * (int64_t)size;
    struct flex_loop inner = select->inner;
    const struct flex_at at = {.data = (char *)(uintptr_t)base,
                               .dim_bytes = select->stride_bytes};

    if (inner.count == 1) {
        flex_at_take(&at, indices, n, size, out);
        return;
    }
    for (int64_t i = 0; i < n; i++, out += slice_bytes) {
        inner.data = at.data + indices[i] * at.dim_bytes;
        if (flex_loop_dense(&inner))
            copy_slice(select, out, inner.data, slice_bytes,
                       i + 1 < n ? at.data + indices[i + 1] * at.dim_bytes
                                 : inner.data);
        else
            flex_move_range(select->device, &inner, 0, inner.count, out);
    }
}

/* Slices FIRST .. LAST - 1 of the result, numbered outer * count + i. */
static void select_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct select *select = context;
    const uint32_t size = select->inner.size;
    const int64_t slice_bytes = select->inner.count * (int64_t)size;

    (void)worker;
    while (first < last) {
        const int64_t outer = first / select->count;
        const char *base =
            select->outer.data +
            flex_loop_offset(&select->outer, outer) * (int64_t)size;
        int64_t end = (outer + 1) * select->count;

        if (end > last)
            end = last;
        select_slices(select, base, first - outer * select->count, end - first,
                      select->out + first * slice_bytes);
        first = end;
    }
    if (select->past)
        select->kernels->fence();
}

static void run_slices(struct flex_device *device, struct select *select)
{
    const int64_t slices = select->outer.count * select->count;
    const int64_t count = slices * select->inner.count;

    if (count <= 0)
        return;
    select->kernels = flex_move_kernels(device);
    /* What is read takes as much room as what is written. */
    select->past =
        flex_goes_past(device, 2 * (uint64_t)count * select->inner.size);
    flex_parallel(device, slices,
                  1 + FLEX_GRAIN_CHEAP / 4 / select->inner.count, select_range,
                  select);
}

/* x's slices at INDICES (all of its elements) along DIM into OUT. */
static hob_status run_select(struct hob_call *call, struct flex_device *device,
                             const struct hob_view *x,
                             const struct hob_view *indices, uint32_t dim,
                             char *out)
{
    struct hob_view part = *x;
    struct select select = {.device = device,
                            .stride_bytes = x->strides[dim] *
                                            (int64_t)hob_dtype_size(x->dtype),
                            .count = hob_view_count(indices),
                            .out = out};
    const int64_t *list;
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
    run_slices(device, &select);
    flex_index_give(device, list, bytes);
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
    struct select select = {.device = device,
                            .stride_bytes = hob_dtype_size(x->dtype),
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
    run_slices(device, &select);
    flex_scratch_give(device, offsets, bytes);
    return HOB_OK;
}

/* ---- gather ---- */

struct gather {
    struct flex_loop base;       /* x over the rows of indices, dim at 0 */
    struct flex_indices indices; /* read as they are needed, or LIST */
    const int64_t *list;
    int64_t n;                     /* elements in a row: the last dimension */
    int64_t strip;                 /* of them gone through at a time */
    int64_t last_bytes, dim_bytes; /* steps in x: along a row, an index */
    uint32_t size;
    char *out;
};

/* N elements of the result from FIRST on, one row or more, at INDICES. */
static void gather_elements(const struct gather *gather, int64_t first,
                            int64_t n, const int64_t *indices)
{
    const int64_t size = gather->size, end = first + n;

    while (first < end) {
        const int64_t row = first / gather->n, i = first % gather->n;
        const int64_t left = gather->n - i;
        const int64_t count = left < end - first ? left : end - first;
        const struct flex_at at = {
            .data = gather->base.data +
                    flex_loop_offset(&gather->base, row) * size +
                    i * gather->last_bytes,
            .step_bytes = gather->last_bytes,
            .dim_bytes = gather->dim_bytes};

        flex_at_take(&at, indices, count, gather->size,
                     gather->out + first * size);
        first += count;
        indices += count;
    }
}

static void gather_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct gather *gather = context;
    int64_t block[FLEX_BLOCK];

    (void)worker;
    if (!gather->list) {
        const int64_t end = last * gather->n;

        for (int64_t i = first * gather->n; i < end; i += FLEX_BLOCK) {
            const int64_t n = end - i < FLEX_BLOCK ? end - i : FLEX_BLOCK;
            const int64_t *indices =
                flex_indices_read(&gather->indices, i, n, block);

            if (indices)
                gather_elements(gather, i, n, indices);
        }
        return;
    }
    /* Strip by strip, so that the slices that rows share stay in the cache. */
    for (int64_t i = 0; i < gather->n; i += gather->strip) {
        const int64_t left = gather->n - i;

        for (int64_t row = first; row < last; row++)
            gather_elements(gather, row * gather->n + i,
                            left < gather->strip ? left : gather->strip,
                            gather->list + row * gather->n + i);
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
    uint64_t bytes = 0;
    hob_status st = HOB_OK;

    job.dim_bytes = x->strides[dim] * (int64_t)job.size;
    job.last_bytes = dim == last ? 0 : x->strides[last] * (int64_t)job.size;
    rows.data = x->data;
    rows.dtype = x->dtype;
    rows.rank = (uint8_t)last;
    for (uint32_t i = 0; i < last; i++)
        rows.strides[i] = i == dim ? 0 : x->strides[i];
    flex_loop_init(&job.base, &rows);
    flex_indices_open(&job.indices, device, indices, x->shape[dim]);
    job.strip =
        dim == last
            ? job.n
            : flex_at_strip(job.n, x->shape[dim], job.size,
                            ((struct flex_device *)device)->l2_bytes / 2);
    if (job.strip < job.n)
        st = flex_index_take(call, device, indices, x->shape[dim], &job.list,
                             &bytes);
    if (st)
        return st;
    if (job.n > 0)
        flex_parallel(device, job.base.count, 1 + FLEX_GRAIN_CHEAP / 4 / job.n,
                      gather_range, &job);
    flex_index_give(device, job.list, bytes);
    return flex_indices_close(call, &job.indices);
}

/* ---- mask_select ---- */

/* Places below N where TRUTH is set, in order; returns how many. Every place is
 * written down and the next one over those that do not count: no branch has
 * to be foreseen. */
static int64_t places_of(const uint8_t *truth, int64_t n, int32_t *out)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++) {
        out[count] = (int32_t)i;
        count += truth[i] != 0;
    }
    return count;
}

/* Copy the elements of IN at PLACES. */
static void pick(char *out, const char *in, const int32_t *places,
                 int64_t count, uint32_t size)
{
    for (int64_t i = 0; i < count; i++) {
        const char *from = in + places[i] * (int64_t)size;

        if (size == 4)
            memcpy(out + i * 4, from, 4);
        else if (size == 8)
            memcpy(out + i * 8, from, 8);
        else if (size == 2)
            memcpy(out + i * 2, from, 2);
        else
            out[i] = *from;
    }
}

static hob_status mask_select(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *mask = hob_arg_view(call, 1);
    struct flex_loop x_loop, mask_loop;
    struct hob_meta meta = {.dtype = x->dtype, .rank = 1};
    uint8_t mask_block[FLEX_BLOCK];
    char x_block[FLEX_BLOCK * 8];
    int32_t places[FLEX_BLOCK];
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
        const int64_t count = places_of(m, n, places);

        pick(out, in, places, count, x_loop.size);
        out += count * (int64_t)x_loop.size;
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

/* COUNT row-major places of X, FIRST + places[i], as coordinates at OUT. */
static void put_places(const struct hob_view *x, int64_t first,
                       const int32_t *places, int64_t count, char *out,
                       uint32_t size)
{
    const uint32_t last = x->rank - 1u;
    int64_t at[HOB_MAX_RANK] = {0};
    int64_t row = 0, end = 0; /* the places of the row that AT is in */

    for (int64_t i = 0; i < count; i++) {
        const int64_t place = first + places[i];

        if (place >= end) {
            int64_t index = place / x->shape[last];

            row = index * x->shape[last];
            end = row + x->shape[last];
            for (uint32_t d = last; d-- > 0;) {
                at[d] = index % x->shape[d];
                index /= x->shape[d];
            }
        }
        at[last] = place - row;
        for (uint32_t d = 0; d <= last; d++, out += size) {
            const int32_t narrow = (int32_t)at[d];

            if (size == 4)
                memcpy(out, &narrow, 4);
            else
                memcpy(out, &at[d], 8);
        }
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
    int32_t places[FLEX_BLOCK];
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

        const int64_t count = places_of(truth, n, places);

        if (x->rank)
            put_places(x, i, places, count, out, size);
        out += count * x->rank * (int64_t)size;
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

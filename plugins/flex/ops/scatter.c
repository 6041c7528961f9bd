/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scatter.c - elements added or written at positions: scatter, scatter_add,
 * select_assign, select_add, scatter_nd, embedding_backward, slice_assign.
 *
 * Updates of one element run in the order of the indices, on one thread, so
 * the result does not depend on the number of threads. f16 and bf16 are
 * computed in f32 and rounded once.
 */
#include "at.h"
#include "index.h"
#include "move.h"

#include <inttypes.h>
#include <string.h>

/* ---- the result as a place to add to ---- */

struct target {
    struct flex_device *device;
    const struct hob_view *out;
    char *data;     /* contiguous; out's own memory unless it is a half */
    uint64_t bytes; /* of data, if it is scratch */
    uint32_t dtype; /* of data */
    uint32_t size;
};

static flex_cast_fn loader(const struct target *target)
{
    return target->device->kernels->load_f32[target->out->dtype];
}

/* Begin with X's elements, zeros if X is NULL; *OUT_LATER (or NULL) is set
 * where whoever comes to a row of the result first is to copy it. */
static hob_status target_open(struct hob_call *call, struct target *target,
                              struct flex_device *device,
                              const struct hob_view *x, int *out_later)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t count = hob_view_count(out);

    *target = (struct target){.device = device,
                              .out = out,
                              .data = out->data,
                              .dtype = out->dtype,
                              .size = hob_dtype_size(out->dtype)};
    if (out_later)
        *out_later = x->data != out->data && !loader(target);
    if (x && x->data != out->data && !(out_later && *out_later))
        flex_move_dense(device, out->data, x);
    else if (!x)
        memset(out->data, 0, (size_t)count * target->size);
    if (!loader(target))
        return HOB_OK;
    target->bytes = (uint64_t)count * 4;
    target->dtype = HOB_DTYPE_F32;
    target->size = 4;
    target->data = flex_scratch_take(device, target->bytes);
    if (!target->data)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory to add up %" PRId64
                                " elements in f32",
                                call->op_name, count);
    loader(target)(target->data, out->data, count);
    return HOB_OK;
}

static void target_close(struct target *target)
{
    if (target->bytes == 0 || !target->data)
        return;
    target->device->kernels->store_f32[target->out->dtype](
        target->out->data, target->data, hob_view_count(target->out));
    flex_scratch_give(target->device, target->data, target->bytes);
}

/* VALUE, or a copy of it where the result was placed over it: X would be
 * copied onto it before it is read. The caller gives *OUT_COPY back. */
static hob_status value_apart(struct hob_call *call, struct flex_device *device,
                              struct hob_view *value, char **out_copy,
                              uint64_t *out_bytes)
{
    const int64_t count = hob_view_count(value);
    char *copy;

    *out_copy = NULL;
    *out_bytes = 0;
    if (value->data != hob_ret_view(call, 0)->data || count == 0)
        return HOB_OK;
    *out_bytes = (uint64_t)count * hob_dtype_size(value->dtype);
    copy = flex_scratch_take(device, *out_bytes);
    if (!copy)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for a copy of value",
                                call->op_name);
    flex_move_dense(device, copy, value);
    value->data = *out_copy = copy;
    flex_row_major(value);
    return HOB_OK;
}

/* ---- updates ---- */

/* The kernel that updates elements of DTYPE; NULL to copy. */
static flex_map_fn update_fn(const struct flex_device *device,
                             enum flex_at_update update, uint32_t dtype)
{
    static const uint8_t numbers[] = {0, FLEX_MAP_ADD, FLEX_MAP_MUL,
                                      FLEX_MAP_MINIMUM, FLEX_MAP_MAXIMUM};
    static const uint8_t truths[] = {0, FLEX_MAP_OR, FLEX_MAP_AND, FLEX_MAP_AND,
                                     FLEX_MAP_OR};

    if (update == FLEX_AT_ASSIGN)
        return NULL;
    return device->kernels
        ->map[(dtype == HOB_DTYPE_BOOL ? truths : numbers)[update]][dtype];
}

/* ---- select_assign, select_add, scatter_nd, embedding_backward ---- */

struct select_update {
    const struct target *target;
    flex_map_fn update;     /* NULL: assign */
    struct flex_loop value; /* [outer, count, inner], its own dtype */
    const int64_t *indices;
    int64_t count;  /* of indices */
    int64_t outer;  /* slices before dim */
    int64_t slices; /* of the target along dim */
    int64_t inner;  /* elements behind dim */
    int64_t piece;  /* elements of inner that one task updates */
    int64_t pieces; /* tasks in one outer item */
    uint32_t value_dtype;
};

/* Task: one piece of the inner dimension of one outer item, every index. */
static void select_update_task(const struct select_update *job, int64_t task)
{
    const struct target *target = job->target;
    const flex_cast_fn load =
        target->device->kernels->load_f32[job->value_dtype];
    const int64_t outer = task / job->pieces;
    const int64_t begin = task % job->pieces * job->piece;
    const int64_t end =
        begin + job->piece < job->inner ? begin + job->piece : job->inner;
    char block[FLEX_BLOCK * 8];
    float wide[FLEX_BLOCK];

    for (int64_t i = 0; i < job->count; i++) {
        const int64_t row = outer * job->count + i;
        const int64_t to = outer * job->slices + job->indices[i];

        for (int64_t j = begin; j < end; j += FLEX_BLOCK) {
            int64_t n = end - j < FLEX_BLOCK ? end - j : FLEX_BLOCK;
            const void *in =
                flex_loop_fetch(&job->value, row * job->inner + j, n, block);
            char *out =
                target->data + (to * job->inner + j) * (int64_t)target->size;
            if (load) {
                load(wide, in, n);
                in = wide;
            }
            if (job->update)
                job->update(out, out, in, in, n);
            else
                memcpy(out, in, (size_t)n * target->size);
        }
    }
}

static void select_update_range(void *context, int64_t first, int64_t last,
                                uint32_t worker)
{
    (void)worker;
    for (int64_t i = first; i < last; i++)
        select_update_task(context, i);
}

/* X (NULL: zeros) updated with the slices of GIVEN; JOB says where. */
static hob_status run_slices(struct hob_call *call, struct flex_device *device,
                             const struct hob_view *x,
                             const struct hob_view *given,
                             enum flex_at_update update,
                             struct select_update *job)
{
    struct hob_view value = *given;
    struct target target = {0};
    uint64_t copy_bytes;
    char *copy;
    hob_status st = value_apart(call, device, &value, &copy, &copy_bytes);

    if (st)
        return st;
    st = target_open(call, &target, device, x, NULL);
    if (st)
        goto out;
    job->target = &target;
    job->update = update_fn(device, update, target.dtype);
    job->value_dtype = value.dtype;
    flex_loop_init(&job->value, &value);
    if (job->inner > 0) {
        job->piece = job->inner < 256 ? job->inner : 256;
        job->pieces = (job->inner + job->piece - 1) / job->piece;
        flex_parallel(device, job->outer * job->pieces,
                      1 + FLEX_GRAIN_CHEAP / 4 / (job->count * job->piece + 1),
                      select_update_range, job);
    }
    target_close(&target);
out:
    flex_scratch_give(device, copy, copy_bytes);
    return st;
}

/* At INDICES along DIM. */
static hob_status run_select(struct hob_call *call, struct flex_device *device,
                             const struct hob_view *x,
                             const struct hob_view *indices,
                             const struct hob_view *value, uint32_t dim,
                             enum flex_at_update update)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct select_update job = {.count = hob_view_count(indices),
                                .outer = 1,
                                .slices = out->shape[dim],
                                .inner = 1};
    const int64_t *list;
    uint64_t bytes;
    hob_status st =
        flex_index_take(call, device, indices, out->shape[dim], &list, &bytes);

    if (st)
        return st;
    job.indices = list;
    for (uint32_t i = 0; i < dim; i++)
        job.outer *= out->shape[i];
    for (uint32_t i = dim + 1; i < out->rank; i++)
        job.inner *= out->shape[i];
    st = run_slices(call, device, x, value, update, &job);
    flex_index_give(device, list, bytes);
    return st;
}

static hob_status select_with(struct flex_device *device, struct hob_call *call,
                              enum flex_at_update update)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    return run_select(call, device, x, hob_arg_view(call, 1),
                      hob_arg_view(call, 2),
                      flex_dim(flex_arg_i64(call, 3), x->rank), update);
}

static hob_status select_add(void *device, struct hob_call *call)
{
    return select_with(device, call, FLEX_AT_ADD);
}

static hob_status select_assign(void *device, struct hob_call *call)
{
    return select_with(device, call,
                       (enum flex_at_update)flex_arg_i64(call, 4));
}

static hob_status embedding_backward(void *device, struct hob_call *call)
{
    return run_select(call, device, NULL, hob_arg_view(call, 1),
                      hob_arg_view(call, 2), 0, FLEX_AT_ADD);
}

/* As select_assign at dimension 0, the first k dimensions taken as one. */
static hob_status scatter_nd(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);
    const uint32_t k = (uint32_t)indices->shape[indices->rank - 1];
    struct select_update job = {.outer = 1, .inner = 1};
    int64_t strides[HOB_MAX_RANK], rows = 1, *list;
    uint64_t bytes;
    hob_status st;

    for (uint32_t i = k; i-- > 0;) {
        strides[i] = rows;
        rows *= x->shape[i];
    }
    for (uint32_t i = k; i < x->rank; i++)
        job.inner *= x->shape[i];
    st = flex_index_take_rows(call, device, indices, x, strides, &list, &bytes);
    if (st)
        return st;
    job.indices = list;
    job.count = (int64_t)(bytes / 8);
    job.slices = rows;
    st = run_slices(call, device, x, hob_arg_view(call, 2),
                    (enum flex_at_update)flex_arg_i64(call, 3), &job);
    flex_scratch_give(device, list, bytes);
    return st;
}

/* ---- scatter, scatter_add ---- */

struct scatter {
    const struct target *target;
    enum flex_at_update update;
    const struct hob_view *value;
    const struct hob_view *x;    /* to copy before a row is updated, or NULL */
    struct flex_indices indices; /* read as they are needed, or LIST */
    const int64_t *list;         /* row-major, in value's shape */
    uint32_t rank;               /* at least 1 */
    uint32_t split;              /* dimension that goes to threads */
    int64_t strip;               /* elements of a run gone through at a time */
    int64_t shape[HOB_MAX_RANK];
    /* In elements; the last dimension makes runs. */
    int64_t index_strides[HOB_MAX_RANK];
    int64_t out_strides[HOB_MAX_RANK]; /* 0 for dim */
    int64_t dim_stride;
};

/* N <= FLEX_BLOCK elements at AT; VALUE has those to put there, STEP of its own
 * elements apart. f16 and bf16 are widened. */
static void update_block(const struct scatter *job, const struct flex_at *at,
                         const int64_t *indices, int64_t n, const char *value,
                         int64_t step)
{
    const struct target *target = job->target;
    const uint32_t value_size = hob_dtype_size(job->value->dtype);
    const flex_cast_fn load =
        target->device->kernels->load_f32[job->value->dtype];
    uint16_t halves[FLEX_BLOCK];
    float wide[FLEX_BLOCK];

    step *= (int64_t)value_size;
    if (load) {
        flex_copy_strided(halves, 1, value, step / (int64_t)value_size, n,
                          value_size);
        load(wide, halves, n);
        value = (const char *)wide;
        step = sizeof(wide[0]);
    }
    if (job->update == FLEX_AT_ASSIGN)
        flex_at_put(at, indices, n, target->size, value, step);
    else
        flex_at_update(at, indices, n, target->dtype, job->update, value, step);
}

/* N elements along the last dimension from these places on, in elements. */
static void scatter_run(struct scatter *job, int64_t value_at, int64_t index_at,
                        int64_t out_at, int64_t n)
{
    const struct target *target = job->target;
    const uint32_t last = job->rank - 1;
    const int64_t value_size = hob_dtype_size(job->value->dtype);
    const int64_t step = job->value->strides[last];
    const char *in = (const char *)job->value->data + value_at * value_size;
    struct flex_at at = {.data = target->data + out_at * (int64_t)target->size,
                         .step_bytes =
                             job->out_strides[last] * (int64_t)target->size,
                         .dim_bytes = job->dim_stride * (int64_t)target->size};
    int64_t block[FLEX_BLOCK];

    for (int64_t i = 0; i < n; i += FLEX_BLOCK) {
        const int64_t count = n - i < FLEX_BLOCK ? n - i : FLEX_BLOCK;
        const int64_t *indices =
            job->list
                ? job->list + index_at + i
                : flex_indices_read(&job->indices, index_at + i, count, block);

        if (indices)
            update_block(job, &at, indices, count, in + i * step * value_size,
                         step);
        at.data += count * at.step_bytes;
    }
}

/* Columns FIRST .. FIRST + N - 1 of all runs, one after the other; the split
 * dimension from BEGIN to END only. */
static void scatter_strip(struct scatter *job, int64_t first, int64_t n,
                          int64_t begin, int64_t end)
{
    const uint32_t last = job->rank - 1;
    int64_t index[HOB_MAX_RANK] = {0};

    index[job->split] = begin;
    for (;;) {
        int64_t value_at = 0, index_at = 0, out_at = 0;
        uint32_t i = last;

        index[last] = first;
        for (uint32_t d = 0; d < job->rank; d++) {
            value_at += index[d] * job->value->strides[d];
            index_at += index[d] * job->index_strides[d];
            out_at += index[d] * job->out_strides[d];
        }
        scatter_run(job, value_at, index_at, out_at, n);
        while (i-- > 0) {
            const int is_split = i == job->split;

            if (++index[i] < (is_split ? end : job->shape[i]))
                break;
            index[i] = is_split ? begin : 0;
        }
        if (i == UINT32_MAX)
            return;
    }
}

/* Rows FIRST .. LAST - 1 of x's first dimension to the result. */
static void copy_rows(const struct scatter *job, int64_t first, int64_t last)
{
    const struct target *target = job->target;
    struct hob_view from = *job->x, to = *target->out;

    from.shape[0] = to.shape[0] = last - first;
    from.data =
        (char *)from.data + first * from.strides[0] * (int64_t)target->size;
    to.data = (char *)to.data + first * to.strides[0] * (int64_t)target->size;
    flex_move_here(target->device, &to, &from, 0);
}

static void scatter_range(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    struct scatter *job = context;
    const uint32_t inner = job->rank - 1;
    const int columns = job->split == inner;
    const int64_t end = columns ? last : job->shape[inner];

    (void)worker;
    /* Row by row where they are copied, so that each is in the cache then. */
    for (int64_t row = first; job->x && row < last; row++) {
        copy_rows(job, row, row + 1);
        scatter_strip(job, 0, end, row, row + 1);
    }
    if (job->x)
        return;
    /* Strip by strip, so that the slices that runs share stay in the cache. */
    for (int64_t i = columns ? first : 0; i < end; i += job->strip)
        scatter_strip(job, i, end - i < job->strip ? end - i : job->strip,
                      first, last);
}

/* Describe the walk. The largest dimension other than DIM goes to threads, if
 * there is one: no two of its positions add to the same element. */
static void scatter_plan(struct scatter *job, const struct hob_view *indices,
                         const struct hob_view *out, uint32_t dim)
{
    const uint32_t last = out->rank - 1u;
    int64_t index_stride = 1, out_stride = 1;

    job->rank = out->rank;
    job->split = dim;
    for (uint32_t i = out->rank; i-- > 0;) {
        job->shape[i] = indices->shape[i];
        job->index_strides[i] = index_stride;
        job->out_strides[i] = i == dim ? 0 : out_stride;
        if (i == dim)
            job->dim_stride = out_stride;
        index_stride *= indices->shape[i];
        out_stride *= out->shape[i];
        if (i != dim && (job->split == dim ||
                         indices->shape[i] > indices->shape[job->split]))
            job->split = i;
    }
    job->strip = dim == last ? job->shape[last]
                             : flex_at_strip(job->shape[last], out->shape[dim],
                                             job->target->size,
                                             job->target->device->l2_bytes / 2);
}

/* Rows that several threads may copy and update, or all at once: of rank 1 all
 * updates may meet. */
static void scatter_all(struct flex_device *device, struct scatter *job,
                        int64_t count)
{
    const int64_t rows = job->shape[job->split];

    flex_parallel(device, rows,
                  job->rank == 1 ? count : 1 + FLEX_GRAIN_DEAR * rows / count,
                  scatter_range, job);
    if (job->x && rows < job->x->shape[0])
        copy_rows(job, rows, job->x->shape[0]);
}

static hob_status run_scatter(struct flex_device *device, struct hob_call *call,
                              enum flex_at_update update)
{
    enum { LONG = 64 }; /* runs whose indices are read on the way */
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t dim = flex_dim(flex_arg_i64(call, 3), x->rank);
    const int64_t count = hob_view_count(indices);
    struct hob_view value = *hob_arg_view(call, 2);
    struct target target = {0};
    struct scatter job = {.target = &target, .update = update, .value = &value};
    uint64_t bytes = 0, copy_bytes;
    int later = 0, is_by_rows;
    char *copy;
    hob_status st = value_apart(call, device, &value, &copy, &copy_bytes);

    if (st)
        return st;
    target.device = device;
    target.size = hob_dtype_size(out->dtype);
    scatter_plan(&job, indices, out, dim);
    flex_indices_open(&job.indices, device, indices, x->shape[dim]);
    if (job.strip < job.shape[x->rank - 1] || job.strip < LONG)
        st = flex_index_take(call, device, indices, x->shape[dim], &job.list,
                             &bytes);
    if (st)
        goto out;
    is_by_rows = count > 0 && x->rank > 1 && job.split == 0 &&
                 job.strip == job.shape[x->rank - 1];
    st = target_open(call, &target, device, x, is_by_rows ? &later : NULL);
    if (st)
        goto out;
    job.x = later ? x : NULL;
    if (count > 0)
        scatter_all(device, &job, count);
    st = flex_indices_close(call, &job.indices);
    target_close(&target);
out:
    flex_scratch_give(device, copy, copy_bytes);
    flex_index_give(device, job.list, bytes);
    return st;
}

static hob_status scatter_add(void *device, struct hob_call *call)
{
    return run_scatter(device, call, FLEX_AT_ADD);
}

static hob_status scatter(void *device, struct hob_call *call)
{
    return run_scatter(device, call,
                       (enum flex_at_update)flex_arg_i64(call, 4));
}

/* ---- slice_assign ---- */

static int64_t clamp_position(int64_t position, int64_t size)
{
    if (position < 0)
        position += size;
    if (position < 0)
        return 0;
    return position > size ? size : position;
}

/* Narrow REGION, a view of the result, to the ranges of the call. A negative
 * step takes the range, then walks it from its end. */
static void narrow(const struct hob_call *call, struct hob_view *region)
{
    const hob_value *starts = &call->args[2];
    const hob_value *ends = &call->args[3];
    const hob_value *steps = &call->args[4];
    const int64_t size = hob_dtype_size(region->dtype);

    for (uint32_t i = 0; i < starts->count; i++) {
        const int64_t low = clamp_position(starts->u.i64s[i], region->shape[i]);
        const int64_t high = clamp_position(ends->u.i64s[i], region->shape[i]);
        const int64_t step = i < steps->count ? steps->u.i64s[i] : 1;
        const int64_t first = step < 0 ? high - 1 : low;

        region->shape[i] =
            hob_arg_view(call, 1)->shape[i]; /* as infer has checked */
        if (region->shape[i] > 0)
            region->data =
                (char *)region->data + first * region->strides[i] * size;
        /* A step that is never taken may be too large to multiply. */
        region->strides[i] =
            region->shape[i] > 1 ? region->strides[i] * step : 0;
    }
}

static hob_status slice_assign(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct hob_view region = *out;
    struct hob_view value = *hob_arg_view(call, 1);
    const struct hob_view *x = hob_arg_view(call, 0);
    uint64_t copy_bytes;
    char *copy;
    hob_status st = value_apart(call, device, &value, &copy, &copy_bytes);

    if (st)
        return st;
    if (x->data != out->data)
        flex_move_dense(device, out->data, x);
    narrow(call, &region);
    flex_move(device, &region, &value);
    flex_scratch_give(device, copy, copy_bytes);
    return HOB_OK;
}

/* ---- the table ---- */

static const uint32_t add_masks[] = {HOB_MASK_NUM, HOB_MASK_INT, HOB_MASK_NUM};
static const uint32_t any_masks[] = {HOB_MASK_ANY, HOB_MASK_INT, HOB_MASK_ANY};
static const uint32_t embedding_masks[] = {HOB_MASK_FLOAT, HOB_MASK_INT,
                                           HOB_MASK_FLOAT};
static const uint32_t assign_masks[] = {HOB_MASK_ANY, HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "scatter",
        .signature = "(x: Any, indices: Int, value: Any, dim: i64, "
                     "update: enum(assign, add, mul, min, max) = assign) -> x",
        .dtypes = any_masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = scatter,
    },
    {
        .op = "select_assign",
        .signature = "(x: Any, indices: Int, value: Any, dim: i64, "
                     "update: enum(assign, add, mul, min, max) = assign) -> x",
        .dtypes = any_masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = select_assign,
    },
    {
        .op = "scatter_nd",
        .signature = "(x: Any, indices: Int, value: Any, "
                     "update: enum(assign, add, mul, min, max) = assign) -> x",
        .dtypes = any_masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = scatter_nd,
    },
    {
        .op = "scatter_add",
        .signature = "(x: Num, indices: Int, value: Num, dim: i64) -> x",
        .dtypes = add_masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = scatter_add,
    },
    {
        .op = "select_add",
        .signature = "(x: Num, indices: Int, value: Num, dim: i64) -> x",
        .dtypes = add_masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = select_add,
    },
    {
        .op = "embedding_backward",
        .signature = "(weight: Float, indices: Int, grad: Float) -> weight",
        .dtypes = embedding_masks,
        .dtype_count = 3,
        .execute = embedding_backward,
    },
    {
        .op = "slice_assign",
        .signature = "(x: Any, value: Any, starts: [i64], ends: [i64], "
                     "steps: [i64]) -> x",
        .dtypes = assign_masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = slice_assign,
    },
};

const struct flex_entries flex_scatter_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

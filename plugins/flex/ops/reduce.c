/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - sum, mean, prod, max, min, any, all: whole and along a dimension.
 *
 * Floats are added and multiplied in f64, in blocks that are combined in
 * pairs, so the error does not grow with the count. Pieces depend on sizes
 * alone.
 */
#include "reduce.h"

#include "fold.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    CHUNK = FLEX_FOLD_BLOCK / 2,  /* whose f64 are half a first-level cache */
    COPIED = FLEX_FOLD_BLOCK / 4, /* the same where slices are copied */
    WHOLE_PIECE = 1 << 16,
    RESTART_ROWS = 128,
    BATCH = 256, /* results finished together */
    TOGETHER = 8 /* rows gone through at once */
};

struct fold_run {
    struct flex_reduction is;
    struct flex_loop whole;
    struct flex_axis axis;
    char *out;
    union flex_cell *partials;
};

/* ---- set-up ---- */

static void fold_init(struct fold_run *run, const struct flex_device *device,
                      enum flex_fold kind, int mean, const struct hob_view *x,
                      const struct hob_view *out)
{
    memset(run, 0, sizeof(*run));
    flex_reduction_init(&run->is, device->kernels, kind, mean, x->dtype,
                        out->dtype);
    run->out = out->data;
}

/* ---- one result from a loop ---- */

/* Elements FIRST .. LAST - 1, at least one. Blocks combine in pairs, pairs in
 * pairs and so on: bit i of the number of blocks done says whether stack[i]
 * holds the fold of 2^i blocks. */
static void fold_range(const struct fold_run *run, const struct flex_loop *loop,
                       int64_t first, int64_t last, union flex_cell *out,
                       struct flex_fold_buffer *buffer)
{
    union flex_cell stack[64];
    union flex_cell cell;
    uint64_t done = 0;
    int any = 0;

    while (first < last) {
        int64_t n =
            last - first < FLEX_FOLD_BLOCK ? last - first : FLEX_FOLD_BLOCK;
        uint32_t level = 0;

        run->is.fold(&cell, flex_fold_fetch(loop, run->is.load, first, n, buffer), n);
        for (; done >> level & 1; level++) {
            run->is.combine(&stack[level], &cell, 0, 1, 1);
            cell = stack[level];
        }
        stack[level] = cell;
        done++;
        first += n;
    }
    for (uint32_t level = 0; done >> level; level++) {
        if (!(done >> level & 1))
            continue;
        if (any)
            run->is.combine(&stack[level], &cell, 0, 1, 1);
        cell = stack[level];
        any = 1;
    }
    *out = cell;
}

/* Write COUNT accumulators, each of N elements, as results FIRST .... */
static void finish(const struct fold_run *run, void *cells, int64_t first,
                   int64_t count, int64_t n)
{
    const int64_t size = hob_dtype_size(run->is.out_dtype);

    flex_reduction_finish(&run->is, run->out + first * size, cells, count, n);
}

/* ---- whole ---- */

static void whole_piece(void *context, int64_t first, int64_t last,
                        uint32_t worker)
{
    struct fold_run *run = context;
    struct flex_fold_buffer buffer;

    (void)worker;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t from = piece * WHOLE_PIECE;
        int64_t left = run->whole.count - from;

        fold_range(run, &run->whole, from,
                   from + (left < WHOLE_PIECE ? left : WHOLE_PIECE),
                   &run->partials[piece], &buffer);
    }
}

static void combine_partials(const struct fold_run *run, int64_t count)
{
    union flex_cell *partials = run->partials;

    while (count > 1) {
        for (int64_t i = 0; i < count / 2; i++) {
            union flex_cell cell = partials[2 * i];

            run->is.combine(&cell, &partials[2 * i + 1], 0, 1, 1);
            partials[i] = cell;
        }
        if (count & 1)
            partials[count / 2] = partials[count - 1];
        count = (count + 1) / 2;
    }
}

static hob_status fold_empty(struct hob_call *call, struct fold_run *run)
{
    union flex_cell cell;
    int is_float = (HOB_DTYPE_BIT(run->is.dtype) & HOB_MASK_FLOAT) != 0;

    if (run->is.kind == FLEX_FOLD_MAX || run->is.kind == FLEX_FOLD_MIN ||
        (run->is.mean && !is_float))
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: the tensor is empty; there is no result "
                                "of no %s elements",
                                call->op_name, hob_dtype_name(run->is.dtype));
    flex_reduction_identity(&run->is, &cell);
    if (run->is.mean)
        cell.f64 = NAN;
    finish(run, &cell, 0, 1, 0);
    return HOB_OK;
}

static hob_status run_whole(struct flex_device *device, struct hob_call *call,
                            enum flex_fold kind, int mean)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct fold_run run;
    union flex_cell few[64];
    int64_t pieces;
    uint64_t bytes;

    fold_init(&run, device, kind, mean, x, hob_ret_view(call, 0));
    flex_loop_unordered(&run.whole, x);
    if (run.whole.count == 0)
        return fold_empty(call, &run);
    pieces = (run.whole.count + WHOLE_PIECE - 1) / WHOLE_PIECE;
    bytes = (uint64_t)pieces * sizeof(few[0]);
    run.partials = few;
    if (bytes > sizeof(few))
        run.partials = flex_scratch_take(device, bytes);
    if (!run.partials)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for %" PRIu64
                                " bytes of partial results",
                                call->op_name, bytes);
    flex_parallel(device, pieces, 2, whole_piece, &run);
    combine_partials(&run, pieces);
    finish(&run, run.partials, 0, 1, run.whole.count);
    if (run.partials != few)
        flex_scratch_give(device, run.partials, bytes);
    return HOB_OK;
}

/* ---- along a dimension ---- */

void flex_axis_init(struct flex_axis *axis, const struct hob_view *view,
                    int64_t dim)
{
    /* Below SHORT elements a result costs more than its elements. */
    enum { FEW = 8, SHORT = 32 };
    uint32_t at = flex_dim(dim, view->rank);
    const struct flex_loop *outer = &axis->outer;
    int64_t inner_stride, inner_size;

    flex_loop_without(&axis->outer, view, at);
    axis->n = view->shape[at];
    axis->stride = view->strides[at];
    inner_stride = outer->rank ? outer->strides[outer->rank - 1] : 0;
    inner_size = outer->rank ? outer->shape[outer->rank - 1] : 1;
    axis->columns =
        (flex_magnitude(inner_stride) < flex_magnitude(axis->stride) &&
         inner_size >= FEW) ||
        (axis->n < SHORT && inner_size > axis->n);
}

void flex_axis_row(const struct flex_axis *axis, int64_t index,
                   struct flex_loop *out)
{
    out->data = axis->outer.data +
                flex_loop_offset(&axis->outer, index) * axis->outer.size;
    out->size = axis->outer.size;
    out->rank = 1;
    out->count = axis->n;
    out->shape[0] = axis->n;
    out->strides[0] = axis->stride;
}

int64_t flex_axis_chunk(const struct flex_axis *axis, int64_t first,
                        int64_t last, int64_t limit)
{
    const struct flex_loop *outer = &axis->outer;
    int64_t n = last - first < limit ? last - first : limit;
    int64_t row;

    if (outer->rank < 2)
        return n;
    row = outer->shape[outer->rank - 1];
    /* Rows that are short and few are gathered. */
    if ((row >= 256 || (row >= 16 && row * axis->n >= 1024)) &&
        n > row - first % row)
        n = row - first % row;
    return n;
}

int64_t flex_axis_grain(const struct flex_axis *axis)
{
    int64_t grain = FLEX_GRAIN_CHEAP / (axis->n > 0 ? axis->n : 1);

    /* Long runs of each slice, which the processor then fetches ahead. */
    if (axis->columns)
        return grain < 2048 ? 2048 : grain;
    return grain < 1 ? 1 : grain;
}

static void rows_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct fold_run *run = context;
    const struct flex_axis *axis = &run->axis;
    const struct flex_loop *outer = &axis->outer;
    const int in_place =
        !run->is.load && axis->stride == 1 && axis->n <= FLEX_FOLD_BLOCK;
    struct flex_fold_buffer buffer;
    struct flex_loop row;
    union flex_cell cells[BATCH];

    (void)worker;
    while (first < last) {
        const int64_t n = last - first < BATCH ? last - first : BATCH;

        for (int64_t i = 0; i < n; i++) {
            char *out = (char *)cells + i * run->is.acc_size;
            union flex_cell cell;

            if (in_place) {
                run->is.fold(out,
                          outer->data + flex_loop_offset(outer, first + i) *
                                            (int64_t)outer->size,
                          axis->n);
                continue;
            }
            flex_axis_row(axis, first + i, &row);
            fold_range(run, &row, 0, row.count, &cell, &buffer);
            memcpy(out, &cell, run->is.acc_size);
        }
        finish(run, cells, first, n, axis->n);
        first += n;
    }
}

/* *ROWS slices from K on, COUNT elements of each, as rows *OUT_STRIDE elements
 * apart: where they lie, or as many of them as BUFFER has room for. */
static const void *fetch_slices(const struct fold_run *run, int64_t k,
                                int64_t *rows, int64_t first, int64_t count,
                                struct flex_fold_buffer *buffer,
                                int64_t *out_stride)
{
    const uint32_t size = run->axis.outer.size;
    struct flex_loop slice;
    const void *data;

    flex_axis_slice(&run->axis, k, &slice);
    data = flex_loop_fetch(&slice, first, count, buffer->stored);
    if (!run->is.load && data != buffer->stored) {
        *out_stride = run->axis.stride;
        return data;
    }
    *out_stride = count;
    if (*rows > FLEX_FOLD_BLOCK / count)
        *rows = FLEX_FOLD_BLOCK / count;
    if (run->is.load)
        run->is.load(buffer->single, data, count);
    for (int64_t r = 1; r < *rows; r++) {
        flex_axis_slice(&run->axis, k + r, &slice);
        data = flex_loop_fetch(&slice, first, count,
                               buffer->stored + r * count * size);
        if (run->is.load)
            run->is.load(buffer->single + r * count, data, count);
    }
    return run->is.load ? (const void *)buffer->single : buffer->stored;
}

/* Start COUNT accumulators at the identity, or, for max and min, at the
 * elements of slice K; returns the slices used up. */
static int64_t start_columns(const struct fold_run *run, int64_t k,
                             int64_t first, int64_t count, void *acc,
                             struct flex_fold_buffer *buffer)
{
    struct flex_loop slice;
    union flex_cell identity;

    if (run->is.kind == FLEX_FOLD_MAX || run->is.kind == FLEX_FOLD_MIN) {
        flex_axis_slice(&run->axis, k, &slice);
        memcpy(acc, flex_fold_fetch(&slice, run->is.load, first, count, buffer),
               (size_t)count * run->is.acc_size);
        return 1;
    }
    flex_reduction_identity(&run->is, &identity);
    flex_copy_strided(acc, 1, &identity, 0, count, run->is.acc_size);
    return 0;
}

/* Fold slices K .. STOP - 1 into accumulators. */
static void fold_slices(const struct fold_run *run, int64_t k, int64_t stop,
                        int64_t first, int64_t count, void *acc,
                        struct flex_fold_buffer *buffer)
{
    /* Short rows make up for it by their number. */
    const int64_t most =
        count < FLEX_FOLD_BLOCK / RESTART_ROWS ? RESTART_ROWS : TOGETHER;

    while (k < stop) {
        int64_t rows = stop - k < most ? stop - k : most;
        int64_t stride;
        const void *in =
            fetch_slices(run, k, &rows, first, count, buffer, &stride);

        run->is.rows(acc, in, stride, rows, count);
        k += rows;
    }
}

static void columns_piece(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    struct fold_run *run = context;
    const struct flex_loop *outer = &run->axis.outer;
    const int in_place =
        !run->is.load && outer->rank && outer->strides[outer->rank - 1] == 1;
    struct flex_fold_buffer buffer;
    union flex_cell acc[CHUNK], total[CHUNK];

    (void)worker;
    while (first < last) {
        int64_t count =
            flex_axis_chunk(&run->axis, first, last, in_place ? CHUNK : COPIED);
        int64_t k = 0;

        /* Sums restart now and then, so errors do not pile up. */
        while (k < run->axis.n) {
            int64_t start = k;
            int64_t stop =
                run->axis.n - k < RESTART_ROWS ? run->axis.n : k + RESTART_ROWS;

            k += start_columns(run, k, first, count, acc, &buffer);
            fold_slices(run, k, stop, first, count, acc, &buffer);
            k = stop;
            if (start == 0)
                memcpy(total, acc, (size_t)count * run->is.acc_size);
            else
                run->is.combine(total, acc, 0, 1, count);
        }
        finish(run, total, first, count, run->axis.n);
        first += count;
    }
}

/* All results of empty sums and so on. */
static hob_status fold_empty_dim(struct hob_call *call, struct fold_run *run,
                                 int64_t dim)
{
    union flex_cell cell;
    int is_float = (HOB_DTYPE_BIT(run->is.dtype) & HOB_MASK_FLOAT) != 0;

    if (run->is.kind == FLEX_FOLD_MAX || run->is.kind == FLEX_FOLD_MIN ||
        (run->is.mean && !is_float))
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: dimension %" PRId64
                                " is empty; there is no result of no %s "
                                "elements",
                                call->op_name, dim, hob_dtype_name(run->is.dtype));
    for (int64_t i = 0; i < run->axis.outer.count; i++) {
        flex_reduction_identity(&run->is, &cell);
        if (run->is.mean)
            cell.f64 = NAN;
        finish(run, &cell, i, 1, 0);
    }
    return HOB_OK;
}

static hob_status run_dim(struct flex_device *device, struct hob_call *call,
                          enum flex_fold kind, int mean)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t dim = flex_arg_i64(call, 1);
    struct fold_run run;

    fold_init(&run, device, kind, mean, x, hob_ret_view(call, 0));
    flex_axis_init(&run.axis, x, dim);
    if (run.axis.outer.count == 0)
        return HOB_OK;
    if (run.axis.n == 0)
        return fold_empty_dim(call, &run, dim);
    flex_parallel(device, run.axis.outer.count, flex_axis_grain(&run.axis),
                  run.axis.columns ? columns_piece : rows_piece, &run);
    return HOB_OK;
}

/* ---- entries ---- */

static const uint32_t num_mask[] = {HOB_MASK_NUM};
static const uint32_t any_mask[] = {HOB_MASK_ANY};

#define REDUCTIONS                                                             \
    X(sum, run_whole, SUM, 0, "(x: Num) -> x", num_mask)                       \
    X(sum_dim, run_dim, SUM, 0, "(x: Num, dim: i64) -> x", num_mask)           \
    X(mean, run_whole, SUM, 1, "(x: Num) -> x", num_mask)                      \
    X(mean_dim, run_dim, SUM, 1, "(x: Num, dim: i64) -> x", num_mask)          \
    X(prod, run_whole, PROD, 0, "(x: Num) -> x", num_mask)                     \
    X(prod_dim, run_dim, PROD, 0, "(x: Num, dim: i64) -> x", num_mask)         \
    X(max, run_whole, MAX, 0, "(x: Num) -> x", num_mask)                       \
    X(max_dim, run_dim, MAX, 0, "(x: Num, dim: i64) -> x", num_mask)           \
    X(min, run_whole, MIN, 0, "(x: Num) -> x", num_mask)                       \
    X(min_dim, run_dim, MIN, 0, "(x: Num, dim: i64) -> x", num_mask)           \
    X(any, run_whole, ANY, 0, "(x: Any) -> Bool", any_mask)                    \
    X(any_dim, run_dim, ANY, 0, "(x: Any, dim: i64) -> Bool", any_mask)        \
    X(all, run_whole, ALL, 0, "(x: Any) -> Bool", any_mask)                    \
    X(all_dim, run_dim, ALL, 0, "(x: Any, dim: i64) -> Bool", any_mask)

/* Trampolines, as in elementwise.c. */
#define X(op, driver, kind, mean, signature, mask)                             \
    static hob_status execute_##op(void *device, struct hob_call *call)        \
    {                                                                          \
        return driver(device, call, FLEX_FOLD_##kind, mean);                   \
    }
REDUCTIONS
#undef X

#define X(name, driver, kind, mean, text, mask)                                \
    {                                                                          \
        .op = #name,                                                           \
        .signature = text,                                                     \
        .dtypes = mask,                                                        \
        .dtype_count = 1,                                                      \
        .execute = execute_##name,                                             \
    },
static const struct hob_entry entries[] = {REDUCTIONS};
#undef X

const struct flex_entries flex_reduce_entries = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
};

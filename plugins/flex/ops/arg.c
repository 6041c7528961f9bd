/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arg.c - argmax, argmin and the forms that give the value too. The first NaN
 * wins, then the lowest index.
 */
#include "reduce.h"

#include <inttypes.h>
#include <string.h>

/* Best, indices and a row of these fit the first-level cache. */
enum {
    CHUNK = FLEX_FOLD_BLOCK / 2,
    TOGETHER = 4 /* slices gone through at once */
};

struct arg_run {
    const struct flex_kernels *kernels;
    flex_fold_fn fold;
    flex_fold_rows_fn combine;
    flex_find_fn find;
    flex_arg_rows_fn rows;
    flex_cast_fn load;  /* f16, bf16 to f32, or NULL */
    flex_cast_fn store; /* back */
    uint32_t computed;  /* dtype */
    uint32_t size;      /* of it */
    uint32_t index_dtype;
    uint32_t value_dtype;
    char *indices;
    char *values; /* NULL: not asked for */
    struct flex_axis axis;
};

static void finish(const struct arg_run *run, const void *best,
                   const void *index, uint32_t from, int64_t first,
                   int64_t count)
{
    char *values = run->values;

    run->kernels->cast[run->index_dtype][from](
        run->indices + first * hob_dtype_size(run->index_dtype), index, count);
    if (!values)
        return;
    values += first * hob_dtype_size(run->value_dtype);
    if (run->store)
        run->store(values, best, count);
    else
        memcpy(values, best, (size_t)count * run->size);
}

/* The best of each block first, which vectors do fast; only in a block that
 * beats all before it is the place looked for. */
static int64_t arg_row(const struct arg_run *run, const struct flex_loop *row,
                       void *best, struct flex_fold_buffer *buffer)
{
    int64_t index = -1;

    for (int64_t first = 0; first < row->count; first += FLEX_FOLD_BLOCK) {
        int64_t left = row->count - first;
        int64_t n = left < FLEX_FOLD_BLOCK ? left : FLEX_FOLD_BLOCK;
        const void *data = flex_fold_fetch(row, run->load, first, n, buffer);
        uint64_t block = 0, merged;

        run->fold(&block, data, n);
        merged = block;
        if (index >= 0) {
            memcpy(&merged, best, run->size);
            run->combine(&merged, &block, 0, 1, 1);
            /* Equal: an earlier block has it. Signs of zero, payloads of NaN
             * and ties leave the earlier one in place. */
            if (run->find(best, &merged, 1) == 0)
                continue;
        }
        memcpy(best, &merged, run->size);
        index = first + run->find(data, &merged, n);
    }
    return index;
}

static void rows_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct arg_run *run = context;
    struct flex_fold_buffer buffer;
    struct flex_loop row;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        uint64_t best = 0;
        int64_t index;

        flex_axis_row(&run->axis, i, &row);
        index = arg_row(run, &row, &best, &buffer);
        finish(run, &best, &index, HOB_DTYPE_I64, i, 1);
    }
}

static void columns_piece(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    struct arg_run *run = context;
    struct flex_fold_buffer buffer;
    struct flex_loop slice;
    uint64_t best[CHUNK];
    int32_t index[CHUNK];

    (void)worker;
    while (first < last) {
        int64_t count = flex_axis_chunk(&run->axis, first, last, CHUNK);
        int64_t most;

        flex_axis_slice(&run->axis, 0, &slice);
        /* Where slices are not copied, some of them go together. */
        most = !run->load && flex_loop_fetch(&slice, first, count,
                                             buffer.stored) != buffer.stored
                   ? TOGETHER
                   : 1;
        memcpy(best, flex_fold_fetch(&slice, run->load, first, count, &buffer),
               (size_t)count * run->size);
        memset(index, 0, (size_t)count * sizeof(index[0]));
        for (int64_t k = 1; k < run->axis.n; k += most) {
            const int64_t left = run->axis.n - k;

            flex_axis_slice(&run->axis, k, &slice);
            run->rows(best, index,
                      flex_fold_fetch(&slice, run->load, first, count, &buffer),
                      run->axis.stride, left < most ? left : most, (int32_t)k,
                      count);
        }
        finish(run, best, index, HOB_DTYPE_I32, first, count);
        first += count;
    }
}

static hob_status run_arg(struct flex_device *device, struct hob_call *call,
                          int least, int with_values)
{
    const struct flex_kernels *kernels = device->kernels;
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_ret_view(call, with_values ? 1 : 0);
    int64_t dim = flex_arg_i64(call, 1);
    uint32_t fold = least ? FLEX_FOLD_MIN : FLEX_FOLD_MAX;
    struct arg_run run;

    memset(&run, 0, sizeof(run));
    run.kernels = kernels;
    run.load = kernels->load_f32[x->dtype];
    run.store = kernels->store_f32[x->dtype];
    run.computed = run.load ? HOB_DTYPE_F32 : x->dtype;
    run.size = hob_dtype_size(run.computed);
    run.fold = kernels->fold[fold][run.computed];
    run.combine = kernels->fold_rows[fold][run.computed];
    run.find = kernels->find[run.computed];
    run.rows = kernels->arg_rows[least][run.computed];
    run.index_dtype = indices->dtype;
    run.indices = indices->data;
    run.value_dtype = x->dtype;
    if (with_values)
        run.values = hob_ret_view(call, 0)->data;
    flex_axis_init(&run.axis, x, dim);
    if (run.axis.outer.count == 0)
        return HOB_OK;
    if (run.axis.n == 0)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: dimension %" PRId64
                                " is empty; it has no extreme element",
                                call->op_name, dim);
    if (run.axis.n > INT32_MAX) {
        if (indices->dtype == HOB_DTYPE_I32)
            return call->host->fail(
                call, HOB_ERR_RANGE,
                "%s: dimension %" PRId64 " has %" PRId64
                " elements, more than an i32 index counts; ask for "
                "index_dtype i64",
                call->op_name, dim, run.axis.n);
        run.axis.columns = 0; /* whose indices are i32 */
    }
    flex_parallel(device, run.axis.outer.count, flex_axis_grain(&run.axis),
                  run.axis.columns ? columns_piece : rows_piece, &run);
    return HOB_OK;
}

static hob_status execute_argmax(void *device, struct hob_call *call)
{
    return run_arg(device, call, 0, 0);
}

static hob_status execute_argmin(void *device, struct hob_call *call)
{
    return run_arg(device, call, 1, 0);
}

static hob_status execute_max_with_indices(void *device, struct hob_call *call)
{
    return run_arg(device, call, 0, 1);
}

static hob_status execute_min_with_indices(void *device, struct hob_call *call)
{
    return run_arg(device, call, 1, 1);
}

#define ONE "(x: Num, dim: i64, index_dtype: dtype = i32) -> index_dtype"
#define TWO "(x: Num, dim: i64, index_dtype: dtype = i32) -> (x, index_dtype)"

static const uint32_t num_mask[] = {HOB_MASK_NUM};

static const struct hob_entry entries[] = {
    {
        .op = "argmax",
        .signature = ONE,
        .dtypes = num_mask,
        .dtype_count = 1,
        .execute = execute_argmax,
    },
    {
        .op = "argmin",
        .signature = ONE,
        .dtypes = num_mask,
        .dtype_count = 1,
        .execute = execute_argmin,
    },
    {
        .op = "max_dim_with_indices",
        .signature = TWO,
        .dtypes = num_mask,
        .dtype_count = 1,
        .execute = execute_max_with_indices,
    },
    {
        .op = "min_dim_with_indices",
        .signature = TWO,
        .dtypes = num_mask,
        .dtype_count = 1,
        .execute = execute_min_with_indices,
    },
};

const struct flex_entries flex_arg_entries = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - max and average pooling in 2 dimensions, and their gradients. A
 * task is one plane.
 */
#include "index.h"
#include "rows.h"
#include "wide.h"
#include "window.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct pool {
    struct flex_device *device;
    const struct flex_row_kernels *kernels;
    struct flex_window window;
    int count_include_pad;
    int is_f64;
    int64_t size;
    int64_t planes;
    const char *in; /* x or grad */
    char *out;
    int64_t in_bytes, out_bytes; /* of one plane */
    int64_t *indices;            /* one a window; NULL without */
    uint64_t row_bytes;
    int32_t failed;
};

#define TYPE float
#define NAME(x) f32_##x
#include "pool_tmpl.h"
#define TYPE double
#define NAME(x) f64_##x
#include "pool_tmpl.h"

static const char *in_at(const struct pool *pool, int64_t plane)
{
    return pool->in + plane * pool->in_bytes;
}

static char *out_at(const struct pool *pool, int64_t plane)
{
    return pool->out + plane * pool->out_bytes;
}

static void max_range(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    struct pool *pool = context;
    _Alignas(FLEX_ALIGN) char stack[4096];
    char *row = stack;

    (void)worker;
    if (pool->row_bytes > sizeof(stack))
        row = flex_scratch_take(pool->device, pool->row_bytes);
    if (!row) {
        __atomic_store_n(&pool->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = first; i < last; i++) {
        if (pool->is_f64)
            f64_max_plane(pool, (const double *)(const void *)in_at(pool, i),
                          (double *)(void *)out_at(pool, i),
                          (double *)(void *)row);
        else
            f32_max_plane(pool, (const float *)(const void *)in_at(pool, i),
                          (float *)(void *)out_at(pool, i),
                          (float *)(void *)row);
    }
    if (row != stack)
        flex_scratch_give(pool->device, row, pool->row_bytes);
}

static void max_index_range(void *context, int64_t first, int64_t last,
                            uint32_t worker)
{
    const struct pool *pool = context;
    const int64_t windows = pool->window.out[0] * pool->window.out[1];

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        if (pool->is_f64)
            f64_max_index_plane(
                pool, (const double *)(const void *)in_at(pool, i),
                (double *)(void *)out_at(pool, i), pool->indices + i * windows);
        else
            f32_max_index_plane(
                pool, (const float *)(const void *)in_at(pool, i),
                (float *)(void *)out_at(pool, i), pool->indices + i * windows);
    }
}

static void max_back_range(void *context, int64_t first, int64_t last,
                           uint32_t worker)
{
    const struct pool *pool = context;
    const int64_t windows = pool->window.out[0] * pool->window.out[1];

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        if (pool->is_f64)
            f64_max_back_plane(
                pool, (const double *)(const void *)in_at(pool, i),
                pool->indices + i * windows, (double *)(void *)out_at(pool, i));
        else
            f32_max_back_plane(
                pool, (const float *)(const void *)in_at(pool, i),
                pool->indices + i * windows, (float *)(void *)out_at(pool, i));
    }
}

static void average_range(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    const struct pool *pool = context;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        if (pool->is_f64)
            f64_average_plane(pool,
                              (const double *)(const void *)in_at(pool, i),
                              (double *)(void *)out_at(pool, i));
        else
            f32_average_plane(pool, (const float *)(const void *)in_at(pool, i),
                              (float *)(void *)out_at(pool, i));
    }
}

static void average_back_range(void *context, int64_t first, int64_t last,
                               uint32_t worker)
{
    const struct pool *pool = context;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        if (pool->is_f64)
            f64_average_back_plane(pool,
                                   (const double *)(const void *)in_at(pool, i),
                                   (double *)(void *)out_at(pool, i));
        else
            f32_average_back_plane(pool,
                                   (const float *)(const void *)in_at(pool, i),
                                   (float *)(void *)out_at(pool, i));
    }
}

/* Sizes: X's shape lies under the windows, WINDOWS' shape has their counts. */
static void pool_init(struct pool *pool, struct flex_device *device,
                      uint32_t dtype, const int64_t *x, const int64_t *windows)
{
    *pool = (struct pool){.device = device,
                          .kernels = flex_row_kernels(device, dtype),
                          .is_f64 = dtype == HOB_DTYPE_F64,
                          .size = flex_row_size(dtype),
                          .planes = x[0] * x[1]};
    for (int i = 0; i < 2; i++) {
        pool->window.in[i] = x[2 + i];
        pool->window.out[i] = windows[2 + i];
    }
    pool->row_bytes = (uint64_t)(x[3] * pool->size);
}

/* kernel_size, stride, padding from argument FIRST on; dilation 1. */
static void pool_attributes(struct pool *pool, const struct hob_call *call,
                            uint32_t first)
{
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
    struct flex_window *w = &pool->window;

    flex_window_pair(call, first, ones, w->size);
    flex_window_pair(call, first + 1, w->size, w->stride);
    flex_window_pair(call, first + 2, zeros, w->padding);
    w->dilation[0] = w->dilation[1] = 1;
}

/* Run FN over all planes, IN to result 0, with dtypes widened as needed. */
static hob_status run(struct hob_call *call, struct pool *pool,
                      const struct hob_view *in, hob_range_fn fn)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t work = pool->window.out[0] * pool->window.out[1] *
                             (1 + pool->window.size[0] * pool->window.size[1]) +
                         pool->window.in[0] * pool->window.in[1];
    struct flex_wide source = {0}, result = {0};
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    st = flex_wide_read(pool->device, in, &source);
    if (!st)
        st = flex_wide_begin(pool->device, out, &result);
    if (!st) {
        pool->in = source.data;
        pool->out = result.data;
        pool->in_bytes = in->shape[2] * in->shape[3] * pool->size;
        pool->out_bytes = out->shape[2] * out->shape[3] * pool->size;
        flex_parallel(pool->device, pool->planes,
                      1 + 4 * FLEX_GRAIN_DEAR / (work + 1), fn, pool);
        flex_wide_finish(pool->device, out, &result);
    }
    flex_wide_release(pool->device, &source);
    flex_wide_release(pool->device, &result);
    if (st || pool->failed)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for %" PRId64 " planes",
                                call->op_name, pool->planes);
    return HOB_OK;
}

static hob_status max_pool2d(void *device, struct hob_call *call)
{
    static const int64_t ones[2] = {1, 1};
    const struct hob_view *x = hob_arg_view(call, 0);
    struct pool pool;

    pool_init(&pool, device, x->dtype, x->shape, hob_ret_view(call, 0)->shape);
    pool_attributes(&pool, call, 1);
    flex_window_pair(call, 4, ones, pool.window.dilation);
    return run(call, &pool, x, max_range);
}

static hob_status max_pool2d_with_indices(void *instance, struct hob_call *call)
{
    static const int64_t ones[2] = {1, 1};
    struct flex_device *device = instance;
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_ret_view(call, 1);
    const int64_t count = hob_view_count(indices);
    const uint64_t bytes = (uint64_t)count * 8;
    const int is_wide = hob_dtype_size(indices->dtype) == 8;
    struct pool pool;
    hob_status st;

    pool_init(&pool, device, x->dtype, x->shape, hob_ret_view(call, 0)->shape);
    pool_attributes(&pool, call, 1);
    flex_window_pair(call, 4, ones, pool.window.dilation);
    pool.indices = is_wide ? indices->data : flex_scratch_take(device, bytes);
    if (!pool.indices)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for %" PRId64 " indices",
                                call->op_name, count);
    st = run(call, &pool, x, max_index_range);
    if (!is_wide) {
        if (!st)
            device->kernels->cast[indices->dtype][HOB_DTYPE_I64](
                indices->data, pool.indices, count);
        flex_scratch_give(device, pool.indices, bytes);
    }
    return st;
}

static hob_status max_pool2d_backward(void *device, struct hob_call *call)
{
    const struct hob_view *grad = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct pool pool;
    const int64_t *list;
    uint64_t bytes;
    hob_status st;

    pool_init(&pool, device, grad->dtype, out->shape, grad->shape);
    st = flex_index_take(call, device, hob_arg_view(call, 2),
                         out->shape[2] * out->shape[3], &list, &bytes);
    if (st)
        return st;
    pool.indices = (int64_t *)(uintptr_t)list; /* read only, from here on */
    st = run(call, &pool, grad, max_back_range);
    flex_index_give(device, list, bytes);
    return st;
}

static hob_status avg_pool2d(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct pool pool;

    pool_init(&pool, device, x->dtype, x->shape, hob_ret_view(call, 0)->shape);
    pool_attributes(&pool, call, 1);
    pool.count_include_pad = flex_arg_i64(call, 4) != 0;
    return run(call, &pool, x, average_range);
}

static hob_status avg_pool2d_backward(void *device, struct hob_call *call)
{
    const struct hob_view *grad = hob_arg_view(call, 1);
    struct pool pool;

    pool_init(&pool, device, grad->dtype, hob_ret_view(call, 0)->shape,
              grad->shape);
    pool_attributes(&pool, call, 2);
    pool.count_include_pad = flex_arg_i64(call, 5) != 0;
    return run(call, &pool, grad, average_back_range);
}

static const uint32_t x_masks[] = {HOB_MASK_FLOAT};
static const uint32_t index_masks[] = {HOB_MASK_FLOAT, HOB_MASK_INT};

static const struct hob_entry entries[] = {
    {
        .op = "max_pool2d",
        .signature =
            "(x: Float, kernel_size: [i64], stride: [i64], padding: [i64], "
            "dilation: [i64], ceil_mode: bool = false) -> x",
        .dtypes = x_masks,
        .dtype_count = 1,
        .execute = max_pool2d,
    },
    {
        .op = "max_pool2d_with_indices",
        .signature =
            "(x: Float, kernel_size: [i64], stride: [i64], padding: [i64], "
            "dilation: [i64], ceil_mode: bool = false, "
            "index_dtype: dtype = i32) -> (x, index_dtype)",
        .dtypes = x_masks,
        .dtype_count = 1,
        .execute = max_pool2d_with_indices,
    },
    {
        .op = "max_pool2d_backward",
        .signature = "(x_shape: shape, grad: Float, indices: Int) -> grad",
        .dtypes = index_masks,
        .dtype_count = 2,
        .execute = max_pool2d_backward,
    },
    {
        .op = "avg_pool2d",
        .signature =
            "(x: Float, kernel_size: [i64], stride: [i64], padding: [i64], "
            "count_include_pad: bool = true, ceil_mode: bool = false) -> x",
        .dtypes = x_masks,
        .dtype_count = 1,
        .execute = avg_pool2d,
    },
    {
        .op = "avg_pool2d_backward",
        .signature =
            "(x_shape: shape, grad: Float, kernel_size: [i64], "
            "stride: [i64], padding: [i64], count_include_pad: bool = true, "
            "ceil_mode: bool = false) -> grad",
        .dtypes = x_masks,
        .dtype_count = 1,
        .execute = avg_pool2d_backward,
    },
};

const struct flex_entries flex_pool_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

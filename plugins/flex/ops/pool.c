/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - max and average pooling in 2 dimensions, and their gradients. A
 * task is some planes.
 */
#include "index.h"
#include "kernels/pool.h"
#include "wide.h"
#include "window.h"

#include <inttypes.h>
#include <string.h>

enum {
    /* Indices that the gradient of max reads at a time. */
    INDEX_BLOCK = 512
};

typedef void (*planes_fn)(const struct flex_pool *pool, int64_t planes,
                          const void *in, void *out, void *scratch);

struct job {
    struct flex_device *device;
    struct flex_pool pool;
    const struct flex_pool_kernels *kernels;
    planes_fn fn; /* NULL: max_index */
    int64_t size; /* bytes of an element */
    int64_t planes;
    int64_t in_plane, out_plane; /* elements */
    const char *in;
    const char *grad; /* of max_x_back_range */
    char *out;
    char *places;                   /* of max_index */
    const struct hob_view *indices; /* of the gradient of max */
    struct flex_loop index_loop;
    int32_t bad_index; /* set from any thread, as is: */
    int32_t no_memory;
};

static const struct flex_pool_kernels *
find_kernels(const struct flex_device *device, uint32_t dtype)
{
    const struct flex_pool_kernels *table =
        FLEX_BY_ISA(device->isa, flex_pool_kernels);

    return &table[dtype == HOB_DTYPE_F64 ? FLEX_POOL_F64 : FLEX_POOL_F32];
}

/* X's sizes lie under the windows, WINDOWS' sizes are their counts. */
static void job_init(struct job *job, struct flex_device *device,
                     uint32_t dtype, const int64_t *x, const int64_t *windows)
{
    *job = (struct job){.device = device,
                        .kernels = find_kernels(device, dtype),
                        .size = dtype == HOB_DTYPE_F64 ? 8 : 4,
                        .planes = x[0] * x[1],
                        .in_plane = x[2] * x[3],
                        .out_plane = windows[2] * windows[3]};
    for (int i = 0; i < 2; i++) {
        job->pool.in[i] = x[2 + i];
        job->pool.out[i] = windows[2 + i];
    }
}

/* kernel_size, stride, padding from argument FIRST on, then, for max,
 * dilation. */
static void read_attributes(struct job *job, const struct hob_call *call,
                            uint32_t first, int with_dilation)
{
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
    struct flex_pool *pool = &job->pool;

    hob_window_pair(call, first, ones, pool->size);
    hob_window_pair(call, first + 1, pool->size, pool->stride);
    hob_window_pair(call, first + 2, zeros, pool->padding);
    pool->dilation[0] = pool->dilation[1] = 1;
    if (with_dilation)
        hob_window_pair(call, first + 3, ones, pool->dilation);
}

static void planes_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct job *job = context;
    const uint64_t bytes = (uint64_t)flex_pool_bytes(&job->pool, !job->fn);
    void *scratch = flex_scratch_take(job->device, bytes);
    const char *in = job->in + first * job->in_plane * job->size;
    char *out = job->out + first * job->out_plane * job->size;

    (void)worker;
    if (!scratch) {
        __atomic_store_n(&job->no_memory, 1, __ATOMIC_RELAXED);
        return;
    }
    if (job->fn)
        job->fn(&job->pool, last - first, in, out, scratch);
    else
        job->kernels->max_index(
            &job->pool, last - first, in, out,
            job->places + first * job->out_plane * job->size, scratch);
    flex_scratch_give(job->device, scratch, bytes);
}

/* The same from windows to planes: IN has the windows. */
static void mean_back_range(void *context, int64_t first, int64_t last,
                            uint32_t worker)
{
    struct job *job = context;
    const uint64_t bytes = (uint64_t)flex_pool_bytes(&job->pool, 0);
    void *scratch = flex_scratch_take(job->device, bytes);

    (void)worker;
    if (!scratch) {
        __atomic_store_n(&job->no_memory, 1, __ATOMIC_RELAXED);
        return;
    }
    job->kernels->mean_back(
        &job->pool, last - first, job->in + first * job->out_plane * job->size,
        job->out + first * job->in_plane * job->size, scratch);
    flex_scratch_give(job->device, scratch, bytes);
}

/* grad added at its places. */
static void max_back_range(void *context, int64_t first, int64_t last,
                           uint32_t worker)
{
    struct job *job = context;
    int64_t places[INDEX_BLOCK];

    (void)worker;
    for (int64_t n = first; n < last; n++) {
        const int64_t end = (n + 1) * job->out_plane;
        char *out = job->out + n * job->in_plane * job->size;

        memset(out, 0, (size_t)(job->in_plane * job->size));
        for (int64_t i = n * job->out_plane; i < end; i += INDEX_BLOCK) {
            const int64_t count = end - i < INDEX_BLOCK ? end - i : INDEX_BLOCK;
            const char *grad = job->in + i * job->size;

            if (flex_index_read(job->device, &job->index_loop,
                                job->indices->dtype, i, count, job->in_plane,
                                places) >= 0) {
                __atomic_store_n(&job->bad_index, 1, __ATOMIC_RELAXED);
                return;
            }
            if (job->size == 4)
                for (int64_t k = 0; k < count; k++)
                    ((float *)(void *)out)[places[k]] +=
                        ((const float *)(const void *)grad)[k];
            else
                for (int64_t k = 0; k < count; k++)
                    ((double *)(void *)out)[places[k]] +=
                        ((const double *)(const void *)grad)[k];
        }
    }
}

/* GRAD added at PLACES, which are integers of its elements' size. */
static void add_at(char *out, const char *places, const char *grad, int64_t n,
                   int64_t size)
{
    if (size == 4)
        for (int64_t i = 0; i < n; i++)
            ((float *)(void *)
                 out)[((const int32_t *)(const void *)places)[i]] +=
                ((const float *)(const void *)grad)[i];
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)(void *)
                 out)[((const int64_t *)(const void *)places)[i]] +=
                ((const double *)(const void *)grad)[i];
}

/* grad added where the maxima of IN are. */
static void max_x_back_range(void *context, int64_t first, int64_t last,
                             uint32_t worker)
{
    struct job *job = context;
    const int64_t in_bytes = job->in_plane * job->size;
    const int64_t out_bytes = job->out_plane * job->size;
    const int64_t own = flex_pool_bytes(&job->pool, 1);
    const uint64_t bytes = (uint64_t)(own + 2 * out_bytes);
    const char *in = job->in + first * in_bytes;
    const char *grad = job->grad + first * out_bytes;
    char *out = job->out + first * in_bytes;
    char *scratch;

    (void)worker;
    if (job->kernels->max_back(&job->pool, last - first, in, grad, out))
        return;
    scratch = flex_scratch_take(job->device, bytes);
    if (!scratch) {
        __atomic_store_n(&job->no_memory, 1, __ATOMIC_RELAXED);
        return;
    }
    for (; first < last; first++) {
        char *places = scratch + own, *values = places + out_bytes;

        job->kernels->max_index(&job->pool, 1, in, values, places, scratch);
        memset(out, 0, (size_t)in_bytes);
        add_at(out, places, grad, job->out_plane, job->size);
        in += in_bytes;
        out += in_bytes;
        grad += out_bytes;
    }
    flex_scratch_give(job->device, scratch, bytes);
}

/* Run FN over all planes, IN to result 0, in the type that is computed in. */
static hob_status run(struct hob_call *call, struct job *job,
                      const struct hob_view *in, hob_range_fn fn)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t work = job->in_plane + job->out_plane;
    struct flex_wide source = {0}, result = {0};
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    st = flex_wide_read(job->device, in, &source);
    if (!st)
        st = flex_wide_begin(job->device, out, &result);
    if (!st) {
        job->in = source.data;
        job->out = result.data;
        flex_parallel(job->device, job->planes,
                      1 + 4 * FLEX_GRAIN_DEAR / (work + 1), fn, job);
        flex_wide_finish(job->device, out, &result);
    }
    flex_wide_release(job->device, &source);
    flex_wide_release(job->device, &result);
    if (st || job->no_memory)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for rows of %" PRId64
                                " elements",
                                call->op_name, flex_pool_row(&job->pool));
    return HOB_OK;
}

static hob_status max_pool2d(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct job job;

    job_init(&job, device, x->dtype, x->shape, hob_ret_view(call, 0)->shape);
    read_attributes(&job, call, 1, 1);
    job.fn = job.kernels->max;
    return run(call, &job, x, planes_range);
}

/* Places are counted in integers of the element's size. */
static hob_status max_pool2d_with_indices_prepare(void *device,
                                                  const struct hob_call *call,
                                                  struct hob_prepare *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    (void)device;
    (void)out;
    return x->dtype != HOB_DTYPE_F64 && x->shape[3] > 0 &&
                   x->shape[2] > INT32_MAX / x->shape[3]
               ? HOB_ERR_UNSUPPORTED
               : HOB_OK;
}

static hob_status max_pool2d_with_indices(void *instance, struct hob_call *call)
{
    struct flex_device *device = instance;
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_ret_view(call, 1);
    const uint32_t dtype =
        x->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_I64 : HOB_DTYPE_I32;
    const int64_t count = hob_view_count(indices);
    const uint64_t bytes = (uint64_t)(count * (int64_t)hob_dtype_size(dtype));
    struct job job;
    hob_status st;

    job_init(&job, device, x->dtype, x->shape, hob_ret_view(call, 0)->shape);
    read_attributes(&job, call, 1, 1);
    job.places = indices->dtype == dtype ? indices->data
                                         : flex_scratch_take(device, bytes);
    if (!job.places)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for %" PRId64 " indices",
                                call->op_name, count);
    st = run(call, &job, x, planes_range);
    if (indices->dtype != dtype) {
        if (!st)
            device->kernels->cast[indices->dtype][dtype](indices->data,
                                                         job.places, count);
        flex_scratch_give(device, job.places, bytes);
    }
    return st;
}

static hob_status max_pool2d_backward(void *device, struct hob_call *call)
{
    const struct hob_view *grad = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct job job;
    uint64_t bytes;
    const int64_t *indices;
    hob_status st;

    job_init(&job, device, grad->dtype, out->shape, grad->shape);
    job.indices = hob_arg_view(call, 2);
    flex_loop_init(&job.index_loop, job.indices);
    st = run(call, &job, grad, max_back_range);
    if (st || !job.bad_index)
        return st;
    /* It names the index. */
    st = flex_index_take(call, device, job.indices, job.in_plane, &indices,
                         &bytes);
    if (!st)
        flex_index_give(device, indices, bytes);
    return st;
}

static hob_status max_pool2d_x_backward(void *instance, struct hob_call *call)
{
    struct flex_device *device = instance;
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *grad = hob_arg_view(call, 1);
    struct flex_wide wide = {0};
    struct job job;
    hob_status st;

    job_init(&job, device, x->dtype, x->shape, grad->shape);
    read_attributes(&job, call, 2, 1);
    st = flex_wide_read(device, grad, &wide);
    if (st)
        return call->host->fail(call, st,
                                "%s: no memory for %" PRId64 " elements",
                                call->op_name, hob_view_count(grad));
    job.grad = wide.data;
    st = run(call, &job, x, max_x_back_range);
    flex_wide_release(device, &wide);
    return st;
}

static hob_status avg_pool2d(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct job job;

    job_init(&job, device, x->dtype, x->shape, hob_ret_view(call, 0)->shape);
    read_attributes(&job, call, 1, 0);
    job.pool.count_padding = flex_arg_i64(call, 4) != 0;
    job.fn = job.kernels->mean;
    return run(call, &job, x, planes_range);
}

static hob_status avg_pool2d_backward(void *device, struct hob_call *call)
{
    const struct hob_view *grad = hob_arg_view(call, 1);
    struct job job;

    job_init(&job, device, grad->dtype, hob_ret_view(call, 0)->shape,
             grad->shape);
    read_attributes(&job, call, 2, 0);
    job.pool.count_padding = flex_arg_i64(call, 5) != 0;
    return run(call, &job, grad, mean_back_range);
}

static const uint32_t x_masks[] = {HOB_MASK_FLOAT};
static const uint32_t index_masks[] = {HOB_MASK_FLOAT, HOB_MASK_INT};
static const uint32_t grad_masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT};

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
        .prepare = max_pool2d_with_indices_prepare,
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
        .op = "max_pool2d_x_backward",
        .signature =
            "(x: Float, grad: Float, kernel_size: [i64], stride: [i64], "
            "padding: [i64], dilation: [i64], ceil_mode: bool = false) -> x",
        .dtypes = grad_masks,
        .dtype_count = 2,
        .prepare = max_pool2d_with_indices_prepare,
        .execute = max_pool2d_x_backward,
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.c - layer_norm, rms_norm, group_norm and batch_norm.
 */
#include "group_norm.h"
#include "norm_backward.h"
#include "rows.h"

#include <inttypes.h>
#include <math.h>

struct norm {
    struct flex_rows out, x;
    const struct flex_row_kernels *kernels;
    const void *weight, *bias; /* of the computing type, or NULL */
    double epsilon;
    const double *channel; /* batch_norm: mean, scale, shift of each */
    int64_t channels;      /* group_norm: of one group */
    int64_t channel_rows;  /* rows of one channel of one sample */
    int64_t groups;
};

static void layer_row(const struct flex_rows_job *job, int64_t row,
                      char *buffers)
{
    const struct norm *norm = job->context;
    void *target = flex_rows_target(&norm->out, row, buffers);

    norm->kernels->layer_norm(target, flex_rows_get(&norm->x, row, buffers),
                              norm->weight, norm->bias, norm->epsilon,
                              norm->x.n);
    flex_rows_put(&norm->out, row, buffers);
}

static void rms_row(const struct flex_rows_job *job, int64_t row, char *buffers)
{
    const struct norm *norm = job->context;
    void *target = flex_rows_target(&norm->out, row, buffers);

    norm->kernels->rms_norm(target, flex_rows_get(&norm->x, row, buffers),
                            norm->weight, norm->epsilon, norm->x.n);
    flex_rows_put(&norm->out, row, buffers);
}

/* That of element AT of a row, of SIZE bytes; FALLBACK without any. */
static double number_at(struct flex_channels numbers, uint32_t size, int64_t at,
                        double fallback)
{
    const int64_t index = at / numbers.places;

    return !numbers.data ? fallback
           : size == 8   ? ((const double *)numbers.data)[index]
                         : (double)((const float *)numbers.data)[index];
}

void flex_group_norm_row(const struct flex_row_kernels *kernels, uint32_t size,
                         void *out, const void *x, struct flex_channels weight,
                         struct flex_channels bias, double epsilon, int64_t n)
{
    const struct flex_moments m = kernels->moments(x, epsilon, n);
    const int64_t places = flex_least(weight.places, bias.places);

    for (int64_t at = 0; at < n; at += places) {
        const double scale = number_at(weight, size, at, 1) * m.factor;
        const double shift = number_at(bias, size, at, 0) - m.rest * scale;

        kernels->affine((char *)out + at * size, (const char *)x + at * size,
                        m.mean, scale, shift, places);
    }
}

/* The numbers of VECTOR, one a channel, from channel FIRST on. */
static struct flex_channels channels_from(const struct norm *norm,
                                          const void *vector, int64_t first)
{
    const struct flex_channels numbers = {
        vector ? (const char *)vector + first * norm->x.size : NULL,
        norm->x.n / norm->channels};

    return numbers;
}

/* A row is a group: some channels, one after the other. */
static void group_row(const struct flex_rows_job *job, int64_t row,
                      char *buffers)
{
    const struct norm *norm = job->context;
    const int64_t first = row % norm->groups * norm->channels;
    void *target = flex_rows_target(&norm->out, row, buffers);

    flex_group_norm_row(norm->kernels, norm->x.size, target,
                        flex_rows_get(&norm->x, row, buffers),
                        channels_from(norm, norm->weight, first),
                        channels_from(norm, norm->bias, first), norm->epsilon,
                        norm->x.n);
    flex_rows_put(&norm->out, row, buffers);
}

static void batch_row(const struct flex_rows_job *job, int64_t row,
                      char *buffers)
{
    const struct norm *norm = job->context;
    const double *channel =
        norm->channel + 3 * (row / norm->channel_rows % norm->channels);
    void *target = flex_rows_target(&norm->out, row, buffers);

    norm->kernels->affine(target, flex_rows_get(&norm->x, row, buffers),
                          channel[0], channel[1], channel[2], norm->x.n);
    flex_rows_put(&norm->out, row, buffers);
}

static hob_status run_rows(struct hob_call *call, struct norm *norm,
                           struct flex_rows_job *job)
{
    if (norm->x.n == 0)
        return HOB_OK;
    flex_rows_reserve(job, &norm->x);
    flex_rows_reserve(job, &norm->out);
    if (flex_rows_run(job, norm->x.outer.count, norm->x.n))
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for rows of %" PRId64
                                " elements",
                                call->op_name, norm->x.n);
    return HOB_OK;
}

/* Arguments ARG (weight) and ARG + 1 (bias, if COUNT is 2) as vectors of the
 * computing type, then the rows of X and OUT along DIM through FN. */
static hob_status run_affine(struct hob_call *call, struct flex_device *device,
                             struct norm *norm, uint32_t arg, uint32_t count,
                             const struct hob_view *x,
                             const struct hob_view *out,
                             void (*fn)(const struct flex_rows_job *job,
                                        int64_t row, char *buffers))
{
    struct flex_rows_job job = {.device = device, .fn = fn, .context = norm};
    void *vectors[2] = {NULL, NULL};
    uint64_t bytes[2] = {0, 0};
    hob_status st = HOB_OK;

    for (uint32_t i = 0; i < count; i++) {
        const struct hob_view *view = hob_arg_view(call, arg + i);
        if (!view)
            continue;
        vectors[i] = flex_vector_take(device, view, &bytes[i]);
        if (!vectors[i]) {
            st = call->host->fail(call, HOB_ERR_MEMORY,
                                  "%s: no memory for a copy of %s",
                                  call->op_name, i ? "bias" : "weight");
            goto out;
        }
    }
    norm->weight = vectors[0];
    norm->bias = vectors[1];
    norm->kernels = flex_row_kernels(device, x->dtype);
    flex_rows_init(&norm->x, device, x, x->rank - 1u);
    flex_rows_init(&norm->out, device, out, x->rank - 1u);
    flex_rows_past(&norm->out, out, &x, 1);
    st = run_rows(call, norm, &job);
out:
    for (uint32_t i = 0; i < 2; i++)
        flex_scratch_give(device, vectors[i], bytes[i]);
    return st;
}

static hob_status layer_norm(void *device, struct hob_call *call)
{
    struct norm norm = {.epsilon = flex_arg_f64(call, 3)};

    return run_affine(call, device, &norm, 1, 2, hob_arg_view(call, 0),
                      hob_ret_view(call, 0), layer_row);
}

static hob_status rms_norm(void *device, struct hob_call *call)
{
    struct norm norm = {.epsilon = flex_arg_f64(call, 2)};

    return run_affine(call, device, &norm, 1, 1, hob_arg_view(call, 0),
                      hob_ret_view(call, 0), rms_row);
}

/* Contiguous [n, c, ..] as [n * groups, elements of a group]. */
static void as_groups(struct hob_view *view, int64_t groups, int64_t elements)
{
    view->rank = 2;
    view->shape[0] *= groups;
    view->shape[1] = elements;
    view->strides[0] = elements;
    view->strides[1] = 1;
}

static hob_status group_norm(void *device, struct hob_call *call)
{
    struct hob_view x = *hob_arg_view(call, 0);
    struct hob_view out = *hob_ret_view(call, 0);
    const int64_t count = hob_view_count(&x), groups = flex_arg_i64(call, 1);
    struct norm norm = {.epsilon = flex_arg_f64(call, 4), .groups = groups};
    int64_t elements;

    if (count == 0)
        return HOB_OK;
    norm.channels = x.shape[1] / groups;
    elements = count / x.shape[0] / groups;
    as_groups(&x, groups, elements);
    as_groups(&out, groups, elements);
    return run_affine(call, device, &norm, 2, 2, &x, &out, group_row);
}

/* Element INDEX of rank-1 argument ARG, FALLBACK where it is absent. */
static double channel_value(const struct hob_call *call, uint32_t arg,
                            int64_t index, double fallback)
{
    const struct hob_view *view = hob_arg_view(call, arg);
    struct hob_view element;

    if (!view)
        return fallback;
    element = *view;
    element.data =
        (char *)view->data +
        index * view->strides[0] * (int64_t)hob_dtype_size(view->dtype);
    return flex_float_load(&element);
}

/* [n, c, d, ...] without gaps as [n, c, d * ...]. */
static void merge_tail(struct hob_view *view)
{
    for (; view->rank > 3; view->rank--)
        view->shape[2] *= view->shape[view->rank - 1];
    view->strides[2] = 1;
    view->strides[1] = view->shape[2];
    view->strides[0] = view->shape[1] * view->shape[2];
}

static hob_status batch_norm(void *instance, struct hob_call *call)
{
    struct flex_device *device = instance;
    struct hob_view x = *hob_arg_view(call, 0);
    struct hob_view out = *hob_ret_view(call, 0);
    const double epsilon = flex_arg_f64(call, 5);
    const int64_t channels = x.shape[1];
    const uint64_t bytes = (uint64_t)channels * 24;
    struct norm norm = {.kernels = flex_row_kernels(device, x.dtype),
                        .channels = channels,
                        .channel_rows = 1};
    struct flex_rows_job job = {
        .device = device, .fn = batch_row, .context = &norm};
    double *channel;
    uint32_t dim;
    hob_status st;

    if (hob_view_count(&out) == 0)
        return HOB_OK;
    channel = flex_scratch_take(device, bytes);
    if (!channel)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for %" PRId64 " channels",
                                call->op_name, channels);
    for (int64_t i = 0; i < channels; i++) {
        channel[3 * i] = channel_value(call, 3, i, 0);
        channel[3 * i + 1] = channel_value(call, 1, i, 1) /
                             sqrt(channel_value(call, 4, i, 1) + epsilon);
        channel[3 * i + 2] = channel_value(call, 2, i, 0);
    }
    norm.channel = channel;
    if (x.rank > 3 && flex_is_contiguous(&x)) {
        merge_tail(&x);
        merge_tail(&out);
    }
    /* Of rank 2, a row is a column: one channel over all samples. */
    dim = x.rank == 2 ? 0 : x.rank - 1u;
    for (uint32_t i = 2; i < dim; i++)
        norm.channel_rows *= x.shape[i];
    flex_rows_init(&norm.x, device, &x, dim);
    flex_rows_init(&norm.out, device, &out, dim);
    st = run_rows(call, &norm, &job);
    flex_scratch_give(device, channel, bytes);
    return st;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT, HOB_MASK_FLOAT};

#define WIDE (HOB_DTYPE_BIT(HOB_DTYPE_F32) | HOB_DTYPE_BIT(HOB_DTYPE_F64))

/* Halves are the body's. */
static const uint32_t wide_masks[] = {WIDE, WIDE, WIDE, WIDE};

#undef WIDE

static const struct hob_entry entries[] = {
    {
        .op = "layer_norm",
        .signature = "(x: Float, weight: Float?, bias: Float?, "
                     "epsilon: f64 = 1e-5) -> x",
        .dtypes = masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = layer_norm,
    },
    {
        .op = "rms_norm",
        .signature = "(x: Float, weight: Float?, epsilon: f64 = 1e-5) -> x",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = rms_norm,
    },
    {
        .op = "layer_norm_backward",
        .signature = "(x: Float, weight: Float?, grad: Float, "
                     "epsilon: f64 = 1e-5) -> (d_x: x, d_weight: x, "
                     "d_bias: x)",
        .dtypes = masks,
        .dtype_count = 3,
        .execute = flex_layer_norm_backward,
    },
    {
        .op = "rms_norm_backward",
        .signature = "(x: Float, weight: Float?, grad: Float, "
                     "epsilon: f64 = 1e-5) -> (d_x: x, d_weight: x)",
        .dtypes = masks,
        .dtype_count = 3,
        .execute = flex_rms_norm_backward,
    },
    {
        .op = "batch_norm_backward",
        .signature = "(x: Float, mean: Float, scale: Float, grad: Float) -> "
                     "(d_x: x, total: x, moment: x)",
        .dtypes = wide_masks,
        .dtype_count = 4,
        .flags = HOB_ENTRY_CONTIGUOUS,
        .prepare = flex_batch_norm_backward_prepare,
        .execute = flex_batch_norm_backward,
    },
    {
        .op = "group_norm",
        .signature = "(x: Float, groups: i64, weight: Float?, bias: Float?, "
                     "epsilon: f64 = 1e-5) -> x",
        .dtypes = masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_CONTIGUOUS | HOB_ENTRY_IN_PLACE,
        .execute = group_norm,
    },
    {
        .op = "batch_norm",
        .signature = "(x: Float, weight: Float?, bias: Float?, mean: Float, "
                     "variance: Float, epsilon: f64 = 1e-5) -> x",
        .dtypes = masks,
        .dtype_count = 5,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = batch_norm,
    },
};

const struct flex_entries flex_norm_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

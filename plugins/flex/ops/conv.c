/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - 2-d convolution and its gradients.
 *
 * A block of output rows of one sample and group is a matrix product: weights
 * [out, taps] by the input's taps laid out as columns [taps, positions]. The
 * blocks are small enough for the columns to stay in cache. 1 x 1
 * convolutions need no columns; depthwise ones are summed row by row.
 */
#include "rows.h"
#include "wide.h"
#include "window.h"

#include <inttypes.h>
#include <string.h>

enum {
    /* Bytes of the columns of one block, about. */
    COLUMN_BYTES = 1 << 20,
    /* The weight gradient is summed in so many parts, by size of the batch. */
    WEIGHT_PARTS = 8,
    /* Taps up to which a one-channel group is summed directly. */
    DIRECT_TAPS = 64
};

struct conv {
    struct flex_device *device;
    const struct flex_row_kernels *kernels;
    struct flex_window window;
    uint32_t dtype; /* that is computed in: f32 or f64 */
    int64_t size;
    int64_t batch, groups;
    int64_t in_channels, out_channels; /* of one group */
    int64_t taps;                      /* in_channels * kh * kw */
    int64_t in_plane, out_plane;       /* elements */
    int64_t rows;                      /* output rows in a block */
    int64_t blocks;                    /* in one plane */
    char *x, *weight, *grad, *out;
    const char *bias;
    char *parts; /* of the weight gradient */
    int64_t part_count;
    int pointwise;  /* columns are the input as it is */
    int32_t failed; /* set from any thread */
};

/* ---- columns ---- */

/* One row of output positions ROW of tap column KX from input row IN. */
static void fill_row(const struct conv *conv, const char *in, int64_t kx,
                     char *out)
{
    const struct flex_window *w = &conv->window;
    const int64_t stride = w->stride[1];
    int64_t first, last;
    const char *from;

    flex_window_valid(w, 1, kx, &first, &last);
    from = in +
           (first * stride + kx * w->dilation[1] - w->padding[1]) * conv->size;
    memset(out, 0, (size_t)(first * conv->size));
    if (first < last && stride == 1)
        memcpy(out + first * conv->size, from,
               (size_t)((last - first) * conv->size));
    else if (conv->size == 4)
        for (int64_t i = first; i < last; i++)
            ((float *)(void *)out)[i] =
                ((const float *)(const void *)from)[(i - first) * stride];
    else
        for (int64_t i = first; i < last; i++)
            ((double *)(void *)out)[i] =
                ((const double *)(const void *)from)[(i - first) * stride];
    memset(out + last * conv->size, 0,
           (size_t)((w->out[1] - last) * conv->size));
}

/* The columns of output rows FIRST .. LAST - 1 over the planes at IN. */
static void fill_columns(const struct conv *conv, const char *in, int64_t first,
                         int64_t last, char *out)
{
    const struct flex_window *w = &conv->window;
    const int64_t row_bytes = w->out[1] * conv->size;

    for (int64_t c = 0; c < conv->in_channels; c++)
        for (int64_t ky = 0; ky < w->size[0]; ky++)
            for (int64_t kx = 0; kx < w->size[1]; kx++)
                for (int64_t y = first; y < last; y++, out += row_bytes) {
                    int64_t from =
                        y * w->stride[0] + ky * w->dilation[0] - w->padding[0];
                    if (from < 0 || from >= w->in[0])
                        memset(out, 0, (size_t)row_bytes);
                    else
                        fill_row(conv,
                                 in + (c * conv->in_plane + from * w->in[1]) *
                                          conv->size,
                                 kx, out);
                }
}

/* Add row COLUMNS of tap KX to input row OUT. */
static void spread_row(const struct conv *conv, const char *columns, int64_t kx,
                       char *out)
{
    const struct flex_window *w = &conv->window;
    const int64_t stride = w->stride[1];
    int64_t first, last;

    flex_window_valid(w, 1, kx, &first, &last);
    if (first == last)
        return;
    out += (first * stride + kx * w->dilation[1] - w->padding[1]) * conv->size;
    columns += first * conv->size;
    if (stride == 1)
        conv->kernels->add(out, columns, last - first);
    else if (conv->size == 4)
        for (int64_t i = 0; i < last - first; i++)
            ((float *)(void *)out)[i * stride] +=
                ((const float *)(const void *)columns)[i];
    else
        for (int64_t i = 0; i < last - first; i++)
            ((double *)(void *)out)[i * stride] +=
                ((const double *)(const void *)columns)[i];
}

/* The opposite of fill_columns: add the columns to the planes at OUT. */
static void spread_columns(const struct conv *conv, const char *columns,
                           int64_t first, int64_t last, char *out)
{
    const struct flex_window *w = &conv->window;
    const int64_t row_bytes = w->out[1] * conv->size;

    for (int64_t c = 0; c < conv->in_channels; c++)
        for (int64_t ky = 0; ky < w->size[0]; ky++)
            for (int64_t kx = 0; kx < w->size[1]; kx++)
                for (int64_t y = first; y < last; y++, columns += row_bytes) {
                    int64_t to =
                        y * w->stride[0] + ky * w->dilation[0] - w->padding[0];
                    if (to >= 0 && to < w->in[0])
                        spread_row(conv, columns, kx,
                                   out + (c * conv->in_plane + to * w->in[1]) *
                                             conv->size);
                }
}

/* Scratch for the columns of one block; NULL, and failed set, without it. */
static char *columns_take(struct conv *conv, uint64_t *out_bytes)
{
    char *columns;

    *out_bytes =
        (uint64_t)(conv->taps * conv->rows * conv->window.out[1] * conv->size) +
        1;
    columns = flex_scratch_take(conv->device, *out_bytes);
    if (!columns)
        __atomic_store_n(&conv->failed, 1, __ATOMIC_RELAXED);
    return columns;
}

static void multiply(struct conv *conv, struct flex_gemm *gemm)
{
    gemm->struct_size = sizeof(*gemm);
    gemm->dtype = conv->dtype;
    gemm->alpha = 1;
    if (flex_gemm(conv->device, gemm))
        __atomic_store_n(&conv->failed, 1, __ATOMIC_RELAXED);
}

/* Input planes and output planes of sample N, group G. */
static char *in_planes(const struct conv *conv, char *base, int64_t n,
                       int64_t g)
{
    return base + (n * conv->groups + g) * conv->in_channels * conv->in_plane *
                      conv->size;
}

static char *out_planes(const struct conv *conv, char *base, int64_t n,
                        int64_t g)
{
    return base + (n * conv->groups + g) * conv->out_channels *
                      conv->out_plane * conv->size;
}

static char *group_weight(const struct conv *conv, char *base, int64_t g)
{
    return base + g * conv->out_channels * conv->taps * conv->size;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- conv2d ---- */

/* The epilogue of a block: one bias for each row, an output channel. */
struct channel_bias {
    const char *bias;
    const struct conv *conv;
};

static void add_bias(void *context, void *block, int64_t first_row,
                     int64_t rows, int64_t first_column, int64_t columns,
                     int64_t ldc)
{
    const struct channel_bias *job = context;

    (void)first_column;
    for (int64_t i = 0; i < rows; i++) {
        const char *bias = job->bias + (first_row + i) * job->conv->size;
        if (job->conv->size == 4) {
            float *c = (float *)block + i * ldc;
            const float b = *(const float *)(const void *)bias;
            for (int64_t j = 0; j < columns; j++)
                c[j] += b;
        } else {
            double *c = (double *)block + i * ldc;
            const double b = *(const double *)(const void *)bias;
            for (int64_t j = 0; j < columns; j++)
                c[j] += b;
        }
    }
}

static void forward_range(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    struct conv *conv = context;
    const int64_t width = conv->window.out[1];
    uint64_t bytes = 0;
    char *columns = conv->pointwise ? NULL : columns_take(conv, &bytes);

    (void)worker;
    if (!columns && !conv->pointwise)
        return;
    for (int64_t i = first; i < last; i++) {
        const int64_t g = i / conv->blocks % conv->groups;
        const int64_t n = i / conv->blocks / conv->groups;
        const int64_t row = i % conv->blocks * conv->rows;
        const int64_t end = least(row + conv->rows, conv->window.out[0]);
        char *x = in_planes(conv, conv->x, n, g);
        struct channel_bias bias = {
            conv->bias ? conv->bias + g * conv->out_channels * conv->size
                       : NULL,
            conv};
        struct flex_gemm gemm = {
            .m = conv->out_channels,
            .n = (end - row) * width,
            .k = conv->taps,
            .a = group_weight(conv, conv->weight, g),
            .a_row = conv->taps,
            .a_column = 1,
            .b = conv->pointwise ? x + row * width * conv->size : columns,
            .b_row = conv->pointwise ? conv->in_plane : (end - row) * width,
            .b_column = 1,
            .c = out_planes(conv, conv->out, n, g) + row * width * conv->size,
            .ldc = conv->out_plane,
            .epilogue = bias.bias ? add_bias : NULL,
            .epilogue_context = &bias};

        if (!conv->pointwise)
            fill_columns(conv, x, row, end, columns);
        multiply(conv, &gemm);
    }
    flex_scratch_give(conv->device, columns, bytes);
}

/* One plane of a depthwise convolution: out row += weight * input row. */
static void direct_plane(const struct conv *conv, int64_t n, int64_t channel)
{
    const struct flex_window *w = &conv->window;
    const int64_t g = channel / conv->out_channels;
    const char *x = in_planes(conv, conv->x, n, g);
    const char *weight = conv->weight + channel * conv->taps * conv->size;
    char *out = conv->out + (n * conv->groups * conv->out_channels + channel) *
                                conv->out_plane * conv->size;

    for (int64_t y = 0; y < w->out[0]; y++, out += w->out[1] * conv->size) {
        for (int64_t j = 0; j < w->out[1]; j++) {
            if (conv->bias)
                memcpy(out + j * conv->size, conv->bias + channel * conv->size,
                       (size_t)conv->size);
            else
                memset(out + j * conv->size, 0, (size_t)conv->size);
        }
        for (int64_t ky = 0; ky < w->size[0]; ky++) {
            int64_t from =
                y * w->stride[0] + ky * w->dilation[0] - w->padding[0];
            if (from < 0 || from >= w->in[0])
                continue;
            for (int64_t kx = 0; kx < w->size[1]; kx++) {
                const char *tap = weight + (ky * w->size[1] + kx) * conv->size;
                double factor = conv->size == 4
                                    ? *(const float *)(const void *)tap
                                    : *(const double *)(const void *)tap;
                int64_t first, last;

                flex_window_valid(w, 1, kx, &first, &last);
                conv->kernels->add_scaled(out + first * conv->size,
                                          x + (from * w->in[1] + first +
                                               kx * w->dilation[1] -
                                               w->padding[1]) *
                                                  conv->size,
                                          factor, last - first);
            }
        }
    }
}

static void direct_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct conv *conv = context;
    const int64_t channels = conv->groups * conv->out_channels;

    (void)worker;
    for (int64_t i = first; i < last; i++)
        direct_plane(conv, i / channels, i % channels);
}

/* ---- gradients ---- */

/* The gradient of the input planes of samples and groups FIRST .. LAST - 1. */
static void x_range(void *context, int64_t first, int64_t last, uint32_t worker)
{
    struct conv *conv = context;
    const int64_t width = conv->window.out[1];
    uint64_t bytes;
    char *columns = columns_take(conv, &bytes);

    (void)worker;
    if (!columns)
        return;
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / conv->groups;
        const int64_t g = i % conv->groups;
        char *out = in_planes(conv, conv->out, n, g);

        memset(out, 0,
               (size_t)(conv->in_channels * conv->in_plane * conv->size));
        for (int64_t row = 0; row < conv->window.out[0]; row += conv->rows) {
            const int64_t end = least(row + conv->rows, conv->window.out[0]);
            struct flex_gemm gemm = {.m = conv->taps,
                                     .n = (end - row) * width,
                                     .k = conv->out_channels,
                                     .a = group_weight(conv, conv->weight, g),
                                     .a_row = 1,
                                     .a_column = conv->taps,
                                     .b = out_planes(conv, conv->grad, n, g) +
                                          row * width * conv->size,
                                     .b_row = conv->out_plane,
                                     .b_column = 1,
                                     .c = columns,
                                     .ldc = (end - row) * width};

            multiply(conv, &gemm);
            spread_columns(conv, columns, row, end, out);
        }
    }
    flex_scratch_give(conv->device, columns, bytes);
}

/* Parts of the weight gradient: task i is part i / groups, group i % groups;
 * a part is a fixed share of the samples. */
static void weight_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct conv *conv = context;
    const int64_t width = conv->window.out[1];
    const int64_t share =
        (conv->batch + conv->part_count - 1) / conv->part_count;
    const int64_t weight_bytes =
        conv->groups * conv->out_channels * conv->taps * conv->size;
    uint64_t bytes;
    char *columns = columns_take(conv, &bytes);

    (void)worker;
    if (!columns)
        return;
    for (int64_t i = first; i < last; i++) {
        const int64_t part = i / conv->groups;
        const int64_t g = i % conv->groups;
        char *out = group_weight(
            conv, part ? conv->parts + (part - 1) * weight_bytes : conv->out,
            g);
        int is_first = 1;

        memset(out, 0, (size_t)(conv->out_channels * conv->taps * conv->size));
        for (int64_t n = part * share;
             n < least((part + 1) * share, conv->batch); n++)
            for (int64_t row = 0; row < conv->window.out[0];
                 row += conv->rows) {
                const int64_t end =
                    least(row + conv->rows, conv->window.out[0]);
                struct flex_gemm gemm = {
                    .m = conv->out_channels,
                    .n = conv->taps,
                    .k = (end - row) * width,
                    .a = out_planes(conv, conv->grad, n, g) +
                         row * width * conv->size,
                    .a_row = conv->out_plane,
                    .a_column = 1,
                    .b = columns,
                    .b_row = 1,
                    .b_column = (end - row) * width,
                    .c = out,
                    .ldc = conv->taps,
                    .beta = is_first ? 0 : 1};

                fill_columns(conv, in_planes(conv, conv->x, n, g), row, end,
                             columns);
                multiply(conv, &gemm);
                is_first = 0;
            }
    }
    flex_scratch_give(conv->device, columns, bytes);
}

/* ---- the ops ---- */

/* Read what the three ops share: X and WEIGHT shapes, attributes from FIRST
 * on, the result's plane. */
static void conv_init(struct conv *conv, struct flex_device *device,
                      const struct hob_call *call, const int64_t *x,
                      const int64_t *weight, uint32_t first, const int64_t *out,
                      uint32_t dtype)
{
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
    struct flex_window *w = &conv->window;

    *conv = (struct conv){.device = device,
                          .kernels = flex_row_kernels(device, dtype),
                          .batch = x[0],
                          .groups = flex_arg_i64(call, first + 3)};
    flex_window_pair(call, first, ones, w->stride);
    flex_window_pair(call, first + 1, zeros, w->padding);
    flex_window_pair(call, first + 2, ones, w->dilation);
    for (int i = 0; i < 2; i++) {
        w->size[i] = weight[2 + i];
        w->in[i] = x[2 + i];
        w->out[i] = out[2 + i];
    }
    conv->dtype = dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    conv->size = hob_dtype_size(conv->dtype);
    conv->in_channels = weight[1];
    conv->out_channels = weight[0] / conv->groups;
    conv->taps = weight[1] * weight[2] * weight[3];
    conv->in_plane = x[2] * x[3];
    conv->out_plane = w->out[0] * w->out[1];
    conv->rows =
        flex_clamp(COLUMN_BYTES / (conv->taps * w->out[1] * conv->size + 1), 1,
                   w->out[0] ? w->out[0] : 1);
    conv->blocks = (w->out[0] + conv->rows - 1) / conv->rows;
    conv->pointwise = w->size[0] == 1 && w->size[1] == 1 && w->stride[0] == 1 &&
                      w->stride[1] == 1 && w->padding[0] == 0 &&
                      w->padding[1] == 0;
}

static hob_status finish(struct hob_call *call, const struct conv *conv,
                         hob_status st)
{
    if (!st && !conv->failed)
        return HOB_OK;
    return call->host->fail(
        call, HOB_ERR_MEMORY,
        "%s: no memory for %" PRId64 " columns of %" PRId64 " taps",
        call->op_name, conv->rows * conv->window.out[1], conv->taps);
}

static hob_status conv2d(void *instance, struct hob_call *call)
{
    struct flex_device *device = instance;
    const struct hob_view *out = hob_ret_view(call, 0);
    const struct hob_view *bias = hob_arg_view(call, 2);
    struct flex_wide x = {0}, weight = {0}, wide_bias = {0}, result = {0};
    struct conv conv;
    hob_status st;

    conv_init(&conv, device, call, hob_arg_view(call, 0)->shape,
              hob_arg_view(call, 1)->shape, 3, out->shape, out->dtype);
    if (hob_view_count(out) == 0)
        return HOB_OK;
    st = flex_wide_read(device, hob_arg_view(call, 0), &x);
    if (!st)
        st = flex_wide_read(device, hob_arg_view(call, 1), &weight);
    if (!st && bias)
        st = flex_wide_read(device, bias, &wide_bias);
    if (!st)
        st = flex_wide_begin(device, out, &result);
    if (st)
        goto out;
    conv.x = x.data;
    conv.weight = weight.data;
    conv.bias = wide_bias.data;
    conv.out = result.data;
    if (conv.in_channels == 1 && conv.out_channels <= 4 &&
        conv.taps <= DIRECT_TAPS && conv.window.stride[1] == 1)
        flex_parallel(device, conv.batch * out->shape[1],
                      1 + FLEX_GRAIN_CHEAP / (conv.taps * conv.out_plane),
                      direct_range, &conv);
    else
        flex_parallel(device, conv.batch * conv.groups * conv.blocks, 1,
                      forward_range, &conv);
    flex_wide_finish(device, out, &result);
out:
    flex_wide_release(device, &x);
    flex_wide_release(device, &weight);
    flex_wide_release(device, &wide_bias);
    flex_wide_release(device, &result);
    return finish(call, &conv, st);
}

static hob_status conv2d_x_backward(void *instance, struct hob_call *call)
{
    struct flex_device *device = instance;
    const struct hob_view *out = hob_ret_view(call, 0);
    struct flex_wide weight = {0}, grad = {0}, result = {0};
    struct conv conv;
    hob_status st;

    conv_init(&conv, device, call, out->shape, hob_arg_view(call, 1)->shape, 3,
              hob_arg_view(call, 2)->shape, out->dtype);
    if (hob_view_count(out) == 0)
        return HOB_OK;
    st = flex_wide_read(device, hob_arg_view(call, 1), &weight);
    if (!st)
        st = flex_wide_read(device, hob_arg_view(call, 2), &grad);
    if (!st)
        st = flex_wide_begin(device, out, &result);
    if (st)
        goto out;
    conv.weight = weight.data;
    conv.grad = grad.data;
    conv.out = result.data;
    flex_parallel(device, conv.batch * conv.groups, 1, x_range, &conv);
    flex_wide_finish(device, out, &result);
out:
    flex_wide_release(device, &weight);
    flex_wide_release(device, &grad);
    flex_wide_release(device, &result);
    return finish(call, &conv, st);
}

static hob_status conv2d_weight_backward(void *instance, struct hob_call *call)
{
    struct flex_device *device = instance;
    const struct hob_view *out = hob_ret_view(call, 0);
    struct flex_wide x = {0}, grad = {0}, result = {0};
    const int64_t count = hob_view_count(out);
    uint64_t part_bytes = 0;
    struct conv conv;
    hob_status st;

    conv_init(&conv, device, call, hob_arg_view(call, 0)->shape, out->shape, 3,
              hob_arg_view(call, 2)->shape, out->dtype);
    if (count == 0)
        return HOB_OK;
    st = flex_wide_read(device, hob_arg_view(call, 0), &x);
    if (!st)
        st = flex_wide_read(device, hob_arg_view(call, 2), &grad);
    if (!st)
        st = flex_wide_begin(device, out, &result);
    if (st)
        goto out;
    conv.part_count = flex_clamp(conv.batch, 1, WEIGHT_PARTS);
    part_bytes = (uint64_t)((conv.part_count - 1) * count * conv.size);
    conv.parts = flex_scratch_take(device, part_bytes);
    if (!conv.parts) {
        st = HOB_ERR_MEMORY;
        goto out;
    }
    conv.x = x.data;
    conv.grad = grad.data;
    conv.out = result.data;
    flex_parallel(device, conv.part_count * conv.groups, 1, weight_range,
                  &conv);
    for (int64_t i = 1; i < conv.part_count; i++)
        conv.kernels->add(conv.out, conv.parts + (i - 1) * count * conv.size,
                          count);
    flex_wide_finish(device, out, &result);
out:
    flex_scratch_give(device, conv.parts, part_bytes);
    flex_wide_release(device, &x);
    flex_wide_release(device, &grad);
    flex_wide_release(device, &result);
    return finish(call, &conv, st);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "conv2d",
        .signature = "(x: Float, weight: Float, bias: Float?, stride: [i64], "
                     "padding: [i64], dilation: [i64], groups: i64 = 1) -> x",
        .dtypes = masks,
        .dtype_count = 3,
        .execute = conv2d,
    },
    {
        .op = "conv2d_x_backward",
        .signature =
            "(x_shape: shape, weight: Float, grad: Float, stride: [i64], "
            "padding: [i64], dilation: [i64], groups: i64 = 1) -> grad",
        .dtypes = masks,
        .dtype_count = 2,
        .execute = conv2d_x_backward,
    },
    {
        .op = "conv2d_weight_backward",
        .signature =
            "(x: Float, weight_shape: shape, grad: Float, stride: [i64], "
            "padding: [i64], dilation: [i64], groups: i64 = 1) -> grad",
        .dtypes = masks,
        .dtype_count = 2,
        .execute = conv2d_weight_backward,
    },
};

const struct flex_entries flex_conv_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_nd.c - bodies of convolutions of 1 and 3 dimensions, of transposed
 * ones, of adaptive pooling, of im2col and back.
 *
 * One dimension is two with a height of 1; three are the sum over the
 * kernel's depth of two-dimensional ones.
 */
#include "bodies.h"
#include "util.h"

#include <hob/ext/window.h>

#include <string.h>

/* Number I of LIST, of which one may stand for all; FALLBACK of none. */
static int64_t number(const int64_t *list, uint32_t count, uint32_t i,
                      int64_t fallback)
{
    return !count ? fallback : list[count == 1 ? 0 : i];
}

/* BIAS [c] over Y [n, c, ..] of RANK dimensions. */
static hob_tensor *add_bias(hob_scope *scope, hob_tensor *y, hob_tensor *bias,
                            uint32_t rank)
{
    int64_t shape[HOB_MAX_RANK];

    if (!bias)
        return y;
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = 1;
    shape[1] = hob_tensor_count(bias);
    return hob_add(scope, y, hob_reshape(scope, bias, shape, rank));
}

hob_tensor *hob__body_conv1d(hob_scope *scope, hob_tensor *x,
                             hob_tensor *weight, hob_tensor *bias,
                             const int64_t *stride, uint32_t stride_count,
                             const int64_t *padding, uint32_t padding_count,
                             const int64_t *dilation, uint32_t dilation_count,
                             int64_t groups)
{
    const int64_t strides[2] = {1, number(stride, stride_count, 0, 1)};
    const int64_t paddings[2] = {0, number(padding, padding_count, 0, 0)};
    const int64_t dilations[2] = {1, number(dilation, dilation_count, 0, 1)};
    const int64_t height = 2;

    return hob_squeeze(scope,
                       hob_conv2d(scope, hob_unsqueeze(scope, x, 2),
                                  hob_unsqueeze(scope, weight, 2), bias,
                                  strides, 2, paddings, 2, dilations, 2,
                                  groups),
                       &height, 1);
}

/* The attributes of a pool of two dimensions, the first of size 1. */
struct line {
    int64_t size[2], stride[2], padding[2], dilation[2];
};

static struct line as_line(int64_t size, hob_scalar stride, int64_t padding,
                           int64_t dilation)
{
    return (struct line){
        {1, size},
        {1, stride.tag == HOB_TAG_ABSENT ? size : stride.u.i64},
        {0, padding},
        {1, dilation}};
}

static hob_tensor *without_height(hob_scope *scope, hob_tensor *y)
{
    const int64_t height = 2;

    return hob_squeeze(scope, y, &height, 1);
}

hob_tensor *hob__body_max_pool1d(hob_scope *scope, hob_tensor *x,
                                 int64_t kernel_size, hob_scalar stride,
                                 int64_t padding, int64_t dilation,
                                 int ceil_mode)
{
    struct line l = as_line(kernel_size, stride, padding, dilation);

    return without_height(scope,
                          hob_max_pool2d(scope, hob_unsqueeze(scope, x, 2),
                                         l.size, 2, l.stride, 2, l.padding, 2,
                                         l.dilation, 2, ceil_mode));
}

/* With a height of 1 the flat position is the one in the line. */
hob_status hob__body_max_pool1d_with_indices(
    hob_scope *scope, hob_tensor *x, int64_t kernel_size, hob_scalar stride,
    int64_t padding, int64_t dilation, int ceil_mode, hob_dtype index_dtype,
    hob_tensor **out_0, hob_tensor **out_1)
{
    struct line l = as_line(kernel_size, stride, padding, dilation);
    hob_status st = hob_max_pool2d_with_indices(
        scope, hob_unsqueeze(scope, x, 2), l.size, 2, l.stride, 2, l.padding, 2,
        l.dilation, 2, ceil_mode, index_dtype, out_0, out_1);

    if (st)
        return st;
    *out_0 = without_height(scope, *out_0);
    *out_1 = without_height(scope, *out_1);
    return hob_scope_host(scope)->scope_status(scope);
}

hob_tensor *hob__body_avg_pool1d(hob_scope *scope, hob_tensor *x,
                                 int64_t kernel_size, hob_scalar stride,
                                 int64_t padding, int count_include_pad,
                                 int ceil_mode)
{
    struct line l = as_line(kernel_size, stride, padding, 1);

    return without_height(scope,
                          hob_avg_pool2d(scope, hob_unsqueeze(scope, x, 2),
                                         l.size, 2, l.stride, 2, l.padding, 2,
                                         count_include_pad, ceil_mode));
}

/* ---- three dimensions ---- */

/* Every STEP-th of X [n, c, d, h, w] along d, COUNT from FIRST on, as
 * [n * count, c, h, w]. */
static hob_tensor *planes(hob_scope *scope, hob_tensor *x, int64_t first,
                          int64_t count, int64_t step, const int64_t *sizes)
{
    const int64_t starts[3] = {0, 0, first};
    const int64_t ends[3] = {INT64_MAX, INT64_MAX,
                             first + (count - 1) * step + 1};
    const int64_t steps[3] = {1, 1, step};
    const int64_t shape[4] = {sizes[0] * count, sizes[1], sizes[3], sizes[4]};
    hob_tensor *y = hob_slice(scope, x, starts, 3, ends, 3, steps, 3);

    return hob_reshape(scope, hob_swap_dims(scope, y, 1, 2), shape, 4);
}

/* [n * count, c, h, w] as [n, c, count, h, w]. */
static hob_tensor *volumes(hob_scope *scope, hob_tensor *y, int64_t n,
                           int64_t count, int64_t c, int64_t h, int64_t w)
{
    const int64_t shape[5] = {n, count, c, h, w};

    return hob_swap_dims(scope, hob_reshape(scope, y, shape, 5), 1, 2);
}

/* Slice I of the kernel WEIGHT [out, in, kd, kh, kw]. */
static hob_tensor *kernel_slice(hob_scope *scope, hob_tensor *weight, int64_t i)
{
    const int64_t starts[3] = {0, 0, i};
    const int64_t ends[3] = {INT64_MAX, INT64_MAX, i + 1}, depth = 2;

    return hob_squeeze(scope,
                       hob_slice(scope, weight, starts, 3, ends, 3, NULL, 0),
                       &depth, 1);
}

static hob_tensor *sum_of(hob_scope *scope, hob_tensor *sum, hob_tensor *part)
{
    return sum ? hob_add(scope, hob_move(scope, sum), part) : part;
}

hob_tensor *hob__body_conv3d(hob_scope *scope, hob_tensor *x,
                             hob_tensor *weight, hob_tensor *bias,
                             const int64_t *stride, uint32_t stride_count,
                             const int64_t *padding, uint32_t padding_count,
                             const int64_t *dilation, uint32_t dilation_count,
                             int64_t groups)
{
    const int64_t *k = hob_tensor_shape(weight);
    int64_t s[3], p[3], d[3], out[3], sizes[5];
    hob_tensor *sum = NULL, *padded;

    memcpy(sizes, hob_tensor_shape(x), sizeof(sizes));
    for (uint32_t i = 0; i < 3; i++) {
        s[i] = number(stride, stride_count, i, 1);
        p[i] = number(padding, padding_count, i, 0);
        d[i] = number(dilation, dilation_count, i, 1);
        out[i] = hob_window_count(
            sizes[2 + i], hob_window_extent(k[2 + i], d[i]), s[i], p[i]);
    }
    {
        const int64_t depth[6] = {0, 0, 0, 0, p[0], p[0]};

        padded = hob_pad(scope, x, depth, 6, HOB_PAD_MODE_CONSTANT, hob_i64(0));
    }
    for (int64_t i = 0; i < k[2]; i++)
        sum = sum_of(
            scope, sum,
            hob_conv2d(scope,
                       planes(scope, padded, i * d[0], out[0], s[0], sizes),
                       kernel_slice(scope, weight, i), NULL, s + 1, 2, p + 1, 2,
                       d + 1, 2, groups));
    sum = volumes(scope, sum, sizes[0], out[0], k[0], out[1], out[2]);
    return add_bias(scope, sum, bias, 5);
}

/* ---- transposed ---- */

/*
 * A convolution's gradient with respect to x is its transpose: WEIGHT reads
 * as one from this result's channels to x's. Where output padding reaches the
 * stride there would be room for one window more, so the whole plane is made
 * and cut to size.
 */
hob_tensor *hob__body_conv_transpose2d(
    hob_scope *scope, hob_tensor *x, hob_tensor *weight, hob_tensor *bias,
    const int64_t *stride, uint32_t stride_count, const int64_t *padding,
    uint32_t padding_count, const int64_t *output_padding,
    uint32_t output_padding_count, const int64_t *dilation,
    uint32_t dilation_count, int64_t groups)
{
    const int64_t *in = hob_tensor_shape(x), *k = hob_tensor_shape(weight);
    int64_t shape[4] = {in[0], k[1] * groups, 0, 0}, cut[4] = {0};
    int64_t s[2], p[2], d[2];
    int is_cut = 0;
    hob_tensor *y;

    for (uint32_t i = 0; i < 2; i++) {
        int64_t more = number(output_padding, output_padding_count, i, 0);

        s[i] = number(stride, stride_count, i, 1);
        p[i] = number(padding, padding_count, i, 0);
        d[i] = number(dilation, dilation_count, i, 1);
        shape[2 + i] = (in[2 + i] - 1) * s[i] + d[i] * (k[2 + i] - 1) + 1;
        if (more < s[i]) {
            shape[2 + i] += more - 2 * p[i];
            continue;
        }
        is_cut = 1;
        cut[2 - 2 * i] = -p[i];
        cut[3 - 2 * i] = more - p[i];
        p[i] = 0;
    }
    y = hob_conv2d_x_backward(scope, shape, 4, weight, x, s, 2, p, 2, d, 2,
                              groups);
    if (is_cut)
        y = hob_pad(scope, y, cut, 4, HOB_PAD_MODE_CONSTANT, hob_i64(0));
    return add_bias(scope, y, bias, 4);
}

hob_tensor *hob__body_conv_transpose1d(
    hob_scope *scope, hob_tensor *x, hob_tensor *weight, hob_tensor *bias,
    const int64_t *stride, uint32_t stride_count, const int64_t *padding,
    uint32_t padding_count, const int64_t *output_padding,
    uint32_t output_padding_count, const int64_t *dilation,
    uint32_t dilation_count, int64_t groups)
{
    const int64_t s[2] = {1, number(stride, stride_count, 0, 1)};
    const int64_t p[2] = {0, number(padding, padding_count, 0, 0)};
    const int64_t more[2] = {
        0, number(output_padding, output_padding_count, 0, 0)};
    const int64_t d[2] = {1, number(dilation, dilation_count, 0, 1)};
    const int64_t height = 2;

    return hob_squeeze(scope,
                       hob_conv_transpose2d(scope, hob_unsqueeze(scope, x, 2),
                                            hob_unsqueeze(scope, weight, 2),
                                            bias, s, 2, p, 2, more, 2, d, 2,
                                            groups),
                       &height, 1);
}

/* Slice i of the kernel's depth lands at depth i * dilation + j * stride. */
hob_tensor *hob__body_conv_transpose3d(
    hob_scope *scope, hob_tensor *x, hob_tensor *weight, hob_tensor *bias,
    const int64_t *stride, uint32_t stride_count, const int64_t *padding,
    uint32_t padding_count, const int64_t *output_padding,
    uint32_t output_padding_count, const int64_t *dilation,
    uint32_t dilation_count, int64_t groups)
{
    const int64_t *k = hob_tensor_shape(weight);
    int64_t in[5], s[3], p[3], more[3], d[3], out[3];
    int64_t channels = k[1] * groups, depth, crop[6] = {0};
    hob_tensor *sum, *flat;

    memcpy(in, hob_tensor_shape(x), sizeof(in));
    for (uint32_t i = 0; i < 3; i++) {
        s[i] = number(stride, stride_count, i, 1);
        p[i] = number(padding, padding_count, i, 0);
        more[i] = number(output_padding, output_padding_count, i, 0);
        d[i] = number(dilation, dilation_count, i, 1);
        out[i] = (in[2 + i] - 1) * s[i] + d[i] * (k[2 + i] - 1) + 1 + more[i] -
                 2 * p[i];
    }
    depth = (in[2] - 1) * s[0] + d[0] * (k[2] - 1) + 1;
    flat = planes(scope, x, 0, in[2], 1, in);
    {
        const int64_t whole[5] = {in[0], channels, depth, out[1], out[2]};

        sum = hob__part_full(scope, x, whole, 5, hob_i64(0));
        for (int64_t i = 0; i < k[2]; i++) {
            const int64_t starts[3] = {0, 0, i * d[0]}, steps[3] = {1, 1, s[0]};
            const int64_t ends[3] = {INT64_MAX, INT64_MAX,
                                     i * d[0] + (in[2] - 1) * s[0] + 1};
            hob_tensor *part = hob_conv_transpose2d(
                scope, flat, kernel_slice(scope, weight, i), NULL, s + 1, 2,
                p + 1, 2, more + 1, 2, d + 1, 2, groups);

            part = volumes(scope, part, in[0], in[2], channels, out[1], out[2]);
            part = hob_add(scope, part,
                           hob_slice(scope, sum, starts, 3, ends, 3, steps, 3));
            sum = hob_slice_assign(scope, hob_move(scope, sum), part, starts, 3,
                                   ends, 3, steps, 3);
        }
    }
    crop[4] = -p[0];
    crop[5] = more[0] - p[0];
    sum = hob_pad(scope, sum, crop, 6, HOB_PAD_MODE_CONSTANT, hob_i64(0));
    return add_bias(scope, sum, bias, 5);
}

/* ---- adaptive pooling ---- */

/* Of an axis: window i covers floor(i in / out) up to, without,
 * ceil((i + 1) in / out). It has TAPS places, not all of which are in it. */
struct bins {
    int64_t taps;
    hob_tensor *at;     /* i64 [out * taps]; those that are not in, anywhere */
    hob_tensor *is_in;  /* [out, taps] */
    hob_tensor *counts; /* [out, 1] */
};

static struct bins find_bins(hob_scope *scope, hob_tensor *y, int64_t in,
                             int64_t out)
{
    hob_device *device = hob_scope_host(scope)->tensor_device(y);
    struct bins bins = {.taps = (in - 1) / out + 2};
    const int64_t flat = out * bins.taps;
    hob_tensor *i = hob_unsqueeze(
        scope, hob_arange(scope, 0, out, 1, device, HOB_DTYPE_I64), 1);
    hob_tensor *k = hob_arange(scope, 0, bins.taps, 1, device, HOB_DTYPE_I64);
    hob_tensor *scaled = hob_mul_scalar(scope, i, hob_i64(in));
    /* All numbers are positive, so integers divide downwards. */
    hob_tensor *start = hob_div_scalar(scope, scaled, hob_i64(out));
    hob_tensor *end = hob_div_scalar(
        scope, hob_add_scalar(scope, scaled, hob_i64(in + out - 1)),
        hob_i64(out));
    hob_tensor *place = hob_add(scope, start, k);

    bins.is_in = hob_less(scope, place, end);
    bins.at = hob_reshape(
        scope, hob_clamp(scope, place, hob_none(), hob_i64(in - 1)), &flat, 1);
    bins.counts =
        hob_cast(scope, hob_sub(scope, end, start), hob_tensor_dtype(y));
    return bins;
}

/* Means over the windows of Y [lines, in], of which there are OUT; or back from
 * means. What is not in a window does not reach its mean, be it infinite. */
static hob_tensor *pool_lines(hob_scope *scope, hob_tensor *y, int64_t in,
                              int64_t out, int is_backward)
{
    struct bins bins = find_bins(scope, y, in, out);
    const int64_t lines = hob_tensor_shape(y)[0];
    const int64_t whole[2] = {lines, in}, flat[2] = {lines, out * bins.taps};
    const int64_t parts[3] = {lines, out, is_backward ? 1 : bins.taps};
    hob_tensor *zero = hob__part_constant(scope, y, hob_f64(0));

    if (!is_backward)
        y = hob_select(scope, y, bins.at, 1);
    y = hob_reshape(scope, y, parts, 3);
    if (is_backward)
        y = hob_div(scope, y, bins.counts);
    y = hob_where(scope, bins.is_in, y, zero);
    if (is_backward)
        return hob_select_add(scope,
                              hob__part_full(scope, y, whole, 2, hob_f64(0)),
                              bins.at, hob_reshape(scope, y, flat, 2), 1);
    return hob_div(scope, hob_sum_dim(scope, y, 2), bins.counts);
}

/* Along each pooled dimension, whose sizes become SIZES; back from means to
 * what they were of if IS_BACKWARD. */
static hob_tensor *pool(hob_scope *scope, hob_tensor *x, const int64_t *sizes,
                        uint32_t count, int is_backward)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    hob_dtype dtype = hob_tensor_dtype(x);
    hob_tensor *y = hob__part_up(scope, x);
    int64_t shape[HOB_MAX_RANK];

    memcpy(shape, hob_tensor_shape(x), rank * sizeof(shape[0]));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = rank - count + i;
        int64_t old = shape[axis], swapped[HOB_MAX_RANK], lines[2];

        shape[axis] = sizes[i];
        if (!sizes[i] || !old) { /* nothing is asked for */
            y = hob__part_full(scope, y, shape, rank, hob_i64(0));
            continue;
        }
        memcpy(swapped, shape, rank * sizeof(swapped[0]));
        swapped[axis] = shape[rank - 1];
        swapped[rank - 1] = sizes[i];
        lines[0] = hob__part_product(swapped, rank - 1);
        lines[1] = old;
        y = hob_reshape(scope, hob_swap_dims(scope, y, (int64_t)axis, -1),
                        lines, 2);
        y = is_backward ? pool_lines(scope, y, sizes[i], old, 1)
                        : pool_lines(scope, y, old, sizes[i], 0);
        y = hob_swap_dims(scope, hob_reshape(scope, y, swapped, rank),
                          (int64_t)axis, -1);
    }
    return hob__part_down(scope, y, dtype);
}

hob_tensor *hob__body_adaptive_avg_pool(hob_scope *scope, hob_tensor *x,
                                        const int64_t *output_size,
                                        uint32_t output_size_count)
{
    return pool(scope, x, output_size, output_size_count, 0);
}

hob_tensor *hob__body_adaptive_avg_pool_backward(hob_scope *scope,
                                                 hob_tensor *grad,
                                                 const int64_t *input_size,
                                                 uint32_t input_size_count)
{
    return pool(scope, grad, input_size, input_size_count, 1);
}

/* ---- columns ---- */

struct columns {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int64_t count[2]; /* windows along each dimension */
};

/* The elements of PLANE [n, c, h, w], padded, that tap (I, J) of each window
 * meets. */
static void tap(const struct columns *c, int64_t i, int64_t j,
                int64_t starts[4], int64_t ends[4], int64_t steps[4])
{
    const int64_t at[2] = {i, j};

    for (int k = 0; k < 2; k++) {
        starts[k] = 0;
        ends[k] = INT64_MAX;
        steps[k] = 1;
        starts[2 + k] = at[k] * c->dilation[k];
        ends[2 + k] = starts[2 + k] + (c->count[k] - 1) * c->stride[k] + 1;
        steps[2 + k] = c->stride[k];
    }
}

static void lay_out(struct columns *c, const int64_t *sizes)
{
    for (int i = 0; i < 2; i++)
        c->count[i] = hob_window_count(
            sizes[i], hob_window_extent(c->kernel[i], c->dilation[i]),
            c->stride[i], c->padding[i]);
}

hob_tensor *hob__body_im2col(hob_scope *scope, hob_tensor *x,
                             const int64_t *kernel_size,
                             uint32_t kernel_size_count, const int64_t *stride,
                             uint32_t stride_count, const int64_t *padding,
                             uint32_t padding_count, const int64_t *dilation,
                             uint32_t dilation_count)
{
    const struct hob_host *host = hob_scope_host(scope);
    const int64_t *sizes = hob_tensor_shape(x);
    struct columns c;
    int64_t taps, shape[3], around[4], at = 0;
    hob_tensor **parts, *plane, *y;

    for (uint32_t i = 0; i < 2; i++) {
        c.kernel[i] = number(kernel_size, kernel_size_count, i, 1);
        c.stride[i] = number(stride, stride_count, i, 1);
        c.padding[i] = number(padding, padding_count, i, 0);
        c.dilation[i] = number(dilation, dilation_count, i, 1);
        around[2 - 2 * i] = around[3 - 2 * i] = c.padding[i];
    }
    lay_out(&c, sizes + 2);
    taps = c.kernel[0] * c.kernel[1];
    shape[0] = sizes[0];
    shape[1] = sizes[1] * taps;
    shape[2] = c.count[0] * c.count[1];
    parts = host->mem_alloc(host, (uint64_t)taps * sizeof(*parts));
    if (!parts)
        return host->scope_fail(scope, HOB_ERR_MEMORY,
                                "im2col: no memory for a list of tensors");
    plane = hob_pad(scope, x, around, 4, HOB_PAD_MODE_CONSTANT, hob_i64(0));
    for (int64_t i = 0; i < c.kernel[0]; i++)
        for (int64_t j = 0; j < c.kernel[1]; j++) {
            int64_t starts[4], ends[4], steps[4];

            tap(&c, i, j, starts, ends, steps);
            parts[at++] = hob_slice(scope, plane, starts, 4, ends, 4, steps, 4);
        }
    y = hob_stack(scope, parts, (uint32_t)taps, 2);
    host->mem_free(host, parts);
    return hob_reshape(scope, y, shape, 3);
}

/* Each tap of all windows is added where it came from. */
hob_tensor *hob__body_col2im(hob_scope *scope, hob_tensor *x,
                             const int64_t *output_size,
                             uint32_t output_size_count,
                             const int64_t *kernel_size,
                             uint32_t kernel_size_count, const int64_t *stride,
                             uint32_t stride_count, const int64_t *padding,
                             uint32_t padding_count, const int64_t *dilation,
                             uint32_t dilation_count)
{
    const int64_t *in = hob_tensor_shape(x);
    int64_t size[2], whole[4], grid[5], crop[4];
    struct columns c;
    hob_tensor *columns, *sum;

    for (uint32_t i = 0; i < 2; i++) {
        size[i] = number(output_size, output_size_count, i, 1);
        c.kernel[i] = number(kernel_size, kernel_size_count, i, 1);
        c.stride[i] = number(stride, stride_count, i, 1);
        c.padding[i] = number(padding, padding_count, i, 0);
        c.dilation[i] = number(dilation, dilation_count, i, 1);
        crop[2 - 2 * i] = crop[3 - 2 * i] = -c.padding[i];
        whole[2 + i] = size[i] + 2 * c.padding[i];
    }
    lay_out(&c, size);
    whole[0] = grid[0] = in[0];
    whole[1] = grid[1] = in[1] / (c.kernel[0] * c.kernel[1]);
    grid[2] = c.kernel[0] * c.kernel[1];
    grid[3] = c.count[0];
    grid[4] = c.count[1];
    columns = hob_reshape(scope, x, grid, 5);
    sum = hob__part_full(scope, x, whole, 4, hob_i64(0));
    for (int64_t i = 0; i < grid[2]; i++) {
        int64_t starts[4], ends[4], steps[4];
        const int64_t from[3] = {0, 0, i};
        const int64_t to[3] = {INT64_MAX, INT64_MAX, i + 1}, third = 2;
        hob_tensor *part = hob_squeeze(
            scope, hob_slice(scope, columns, from, 3, to, 3, NULL, 0), &third,
            1);

        tap(&c, i / c.kernel[1], i % c.kernel[1], starts, ends, steps);
        part = hob_add(scope, part,
                       hob_slice(scope, sum, starts, 4, ends, 4, steps, 4));
        sum = hob_slice_assign(scope, hob_move(scope, sum), part, starts, 4,
                               ends, 4, steps, 4);
    }
    return hob_pad(scope, sum, crop, 4, HOB_PAD_MODE_CONSTANT, hob_i64(0));
}

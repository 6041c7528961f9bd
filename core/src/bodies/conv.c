/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - bodies of 2-d convolution and pooling.
 *
 * All of them look at the padded plane through a view of its windows,
 * [n, c, oh, ow, kh, kw]. Convolution is then a matrix product, pooling a
 * reduction, and a gradient is added back at the windows' positions.
 */
#include "bodies.h"
#include "util.h"

#include "../infer/window.h"

#include <math.h>
#include <string.h>

static const int64_t ones[2] = {1, 1};
static const int64_t zeros[2] = {0, 0};

/* Where the windows lie, and how large the plane is that holds them all. */
struct layout {
    struct hob__window window;
    int64_t in[2];    /* x's height and width */
    int64_t out[2];   /* windows */
    int64_t plane[2]; /* with the padding, as far as the windows reach */
};

static void lay_out(struct layout *layout, int ceil)
{
    for (int i = 0; i < 2; i++) {
        struct hob__window *window = &layout->window;
        int64_t extent = hob__window_extent(window, i);
        int64_t padded = window->padding[i] + layout->in[i];
        int64_t reach;
        layout->out[i] = hob__window_count(window, i, layout->in[i], ceil);
        reach = (layout->out[i] - 1) * window->stride[i] + extent;
        layout->plane[i] = reach > padded ? reach : padded;
    }
}

/* X [.., h, w] in a plane of PLANE's size full of VALUE, PADDING from its
 * upper left corner. */
static hob_tensor *pad(hob_scope *scope, hob_tensor *x, const int64_t shape[4],
                       const int64_t padding[2], const int64_t plane[2],
                       double value)
{
    int64_t full[4] = {shape[0], shape[1], plane[0], plane[1]};
    int64_t starts[4] = {0, 0, padding[0], padding[1]};
    int64_t ends[4] = {shape[0], shape[1], padding[0] + shape[2],
                       padding[1] + shape[3]};

    if (memcmp(full, shape, sizeof(full)) == 0)
        return x;
    return hob_slice_assign(scope,
                            hob__part_full(scope, x, full, 4, hob_f64(value)),
                            x, starts, 4, ends, 4, NULL, 0);
}

/* The windows of PLANE, [n, c, oh, ow, kh, kw]: a view. */
static hob_tensor *windows(hob_scope *scope, hob_tensor *plane,
                           const struct hob__window *window)
{
    int64_t starts[6] = {0};
    int64_t ends[6], steps[6] = {1, 1, 1, 1, 0, 0};
    hob_tensor *y = plane;

    for (int i = 0; i < 2; i++) {
        y = hob_unfold(scope, y, 2 + i, hob__window_extent(window, i),
                       window->stride[i]);
        steps[4 + i] = window->dilation[i];
    }
    if (window->dilation[0] == 1 && window->dilation[1] == 1)
        return y;
    for (int i = 0; i < 6; i++)
        ends[i] = INT64_MAX;
    return hob_slice(scope, y, starts, 6, ends, 6, steps, 6);
}

/* The same with each window's elements in one last dimension. */
static hob_tensor *flat_windows(hob_scope *scope, hob_tensor *plane,
                                const int64_t shape[2],
                                const struct layout *layout)
{
    int64_t flat[5] = {shape[0], shape[1], layout->out[0], layout->out[1],
                       layout->window.size[0] * layout->window.size[1]};

    return hob_reshape(scope, windows(scope, plane, &layout->window), flat, 5);
}

/*
 * Add TAPS [n, c, kh, kw, oh, ow], one number a window and element of it,
 * where they come from: the gradient [n, c, h, w] of reading the windows.
 */
static hob_tensor *add_back(hob_scope *scope, hob_tensor *taps,
                            const int64_t shape[4], const struct layout *layout)
{
    static const int64_t taps_first[6] = {0, 1, 4, 5, 2, 3};
    hob_device *device = hob_scope_host(scope)->tensor_device(taps);
    const int64_t *plane = layout->plane, *padding = layout->window.padding;
    int64_t size = plane[0] * plane[1];
    int64_t positions[4] = {1, 1, plane[0], plane[1]};
    int64_t list[3] = {1, 1,
                       layout->window.size[0] * layout->window.size[1] *
                           layout->out[0] * layout->out[1]};
    int64_t flat[3] = {shape[0], shape[1], size};
    int64_t full[4] = {shape[0], shape[1], plane[0], plane[1]};
    int64_t starts[4] = {0, 0, padding[0], padding[1]};
    int64_t ends[4] = {shape[0], shape[1], padding[0] + shape[2],
                       padding[1] + shape[3]};
    hob_tensor *index, *sum;

    index =
        hob_reshape(scope, hob_arange(scope, 0, size, 1, device, HOB_DTYPE_I64),
                    positions, 4);
    index = hob_permute(scope, windows(scope, index, &layout->window),
                        taps_first, 6);
    index = hob_reshape(scope, index, list, 3);
    list[0] = shape[0];
    list[1] = shape[1];
    index = hob_expand(scope, index, list, 3);
    sum =
        hob_scatter_add(scope, hob__part_full(scope, taps, flat, 3, hob_i64(0)),
                        index, hob_reshape(scope, taps, list, 3), 2);
    sum = hob_reshape(scope, sum, full, 4);
    return hob_slice(scope, sum, starts, 4, ends, 4, NULL, 0);
}

/* ---- convolution ---- */

struct conv {
    struct layout layout;
    int64_t groups;
    int64_t x[4];      /* n, c, h, w */
    int64_t weight[4]; /* out, c / groups, kh, kw */
};

static void conv_init(struct conv *conv, const int64_t *x,
                      const int64_t *weight, const int64_t *stride,
                      uint32_t stride_count, const int64_t *padding,
                      uint32_t padding_count, const int64_t *dilation,
                      uint32_t dilation_count, int64_t groups)
{
    struct hob__window *window = &conv->layout.window;

    /* The infer function has checked the lists' lengths. */
    (void)hob__window_pair(stride, stride_count, ones, window->stride);
    (void)hob__window_pair(padding, padding_count, zeros, window->padding);
    (void)hob__window_pair(dilation, dilation_count, ones, window->dilation);
    memcpy(window->size, weight + 2, sizeof(window->size));
    memcpy(conv->layout.in, x + 2, sizeof(conv->layout.in));
    memcpy(conv->x, x, sizeof(conv->x));
    memcpy(conv->weight, weight, sizeof(conv->weight));
    conv->groups = groups;
    lay_out(&conv->layout, 0);
}

/* The rows of one group's weight as a matrix: c / groups * kh * kw. */
static int64_t conv_depth(const struct conv *conv)
{
    return hob__part_product(conv->weight + 1, 3);
}

static int64_t conv_places(const struct conv *conv)
{
    return conv->layout.out[0] * conv->layout.out[1];
}

/* The windows as a matrix, [n, groups, depth, places]. */
static hob_tensor *conv_columns(hob_scope *scope, hob_tensor *x,
                                const struct conv *conv)
{
    static const int64_t places_last[7] = {0, 1, 2, 5, 6, 3, 4};
    const struct layout *layout = &conv->layout;
    int64_t split[7] = {conv->x[0],     conv->groups,   conv->weight[1],
                        layout->out[0], layout->out[1], conv->weight[2],
                        conv->weight[3]};
    int64_t matrix[4] = {conv->x[0], conv->groups, conv_depth(conv),
                         conv_places(conv)};
    hob_tensor *y =
        pad(scope, x, conv->x, layout->window.padding, layout->plane, 0);

    y = hob_reshape(scope, windows(scope, y, &layout->window), split, 7);
    return hob_reshape(scope, hob_permute(scope, y, places_last, 7), matrix, 4);
}

/* The weight as [1, groups, out / groups, depth]. */
static hob_tensor *conv_matrix(hob_scope *scope, hob_tensor *weight,
                               const struct conv *conv)
{
    int64_t shape[4] = {1, conv->groups, conv->weight[0] / conv->groups,
                        conv_depth(conv)};

    return hob_reshape(scope, weight, shape, 4);
}

/* A gradient [n, out, oh, ow] as [n, groups, out / groups, places]. */
static hob_tensor *conv_grad(hob_scope *scope, hob_tensor *grad,
                             const struct conv *conv)
{
    int64_t shape[4] = {conv->x[0], conv->groups,
                        conv->weight[0] / conv->groups, conv_places(conv)};

    return hob_reshape(scope, grad, shape, 4);
}

hob_tensor *hob__body_conv2d(hob_scope *scope, hob_tensor *x,
                             hob_tensor *weight, hob_tensor *bias,
                             const int64_t *stride, uint32_t stride_count,
                             const int64_t *padding, uint32_t padding_count,
                             const int64_t *dilation, uint32_t dilation_count,
                             int64_t groups)
{
    struct conv conv;
    int64_t shape[4], channels[3] = {0, 1, 1};
    hob_tensor *y;

    conv_init(&conv, hob_tensor_shape(x), hob_tensor_shape(weight), stride,
              stride_count, padding, padding_count, dilation, dilation_count,
              groups);
    y = hob_matmul(scope, conv_matrix(scope, weight, &conv),
                   conv_columns(scope, x, &conv));
    shape[0] = conv.x[0];
    shape[1] = channels[0] = conv.weight[0];
    memcpy(shape + 2, conv.layout.out, sizeof(conv.layout.out));
    y = hob_reshape(scope, y, shape, 4);
    if (bias)
        y = hob_add(scope, y, hob_reshape(scope, bias, channels, 3));
    return y;
}

hob_tensor *hob__body_conv2d_x_backward(
    hob_scope *scope, const int64_t *x_shape, uint32_t x_shape_count,
    hob_tensor *weight, hob_tensor *grad, const int64_t *stride,
    uint32_t stride_count, const int64_t *padding, uint32_t padding_count,
    const int64_t *dilation, uint32_t dilation_count, int64_t groups)
{
    struct conv conv;
    hob_dtype dtype = hob_tensor_dtype(grad);
    hob_tensor *matrix, *taps;

    (void)x_shape_count;
    conv_init(&conv, x_shape, hob_tensor_shape(weight), stride, stride_count,
              padding, padding_count, dilation, dilation_count, groups);
    matrix = conv_matrix(scope, hob__part_up(scope, weight), &conv);
    taps = hob_matmul(scope, hob_swap_dims(scope, matrix, 2, 3),
                      conv_grad(scope, hob__part_up(scope, grad), &conv));
    return hob__part_down(scope, add_back(scope, taps, conv.x, &conv.layout),
                          dtype);
}

hob_tensor *hob__body_conv2d_weight_backward(
    hob_scope *scope, hob_tensor *x, const int64_t *weight_shape,
    uint32_t weight_shape_count, hob_tensor *grad, const int64_t *stride,
    uint32_t stride_count, const int64_t *padding, uint32_t padding_count,
    const int64_t *dilation, uint32_t dilation_count, int64_t groups)
{
    struct conv conv;
    hob_dtype dtype = hob_tensor_dtype(grad);
    hob_tensor *columns, *y;

    (void)weight_shape_count;
    conv_init(&conv, hob_tensor_shape(x), weight_shape, stride, stride_count,
              padding, padding_count, dilation, dilation_count, groups);
    columns = conv_columns(scope, hob__part_up(scope, x), &conv);
    y = hob_matmul(scope, conv_grad(scope, hob__part_up(scope, grad), &conv),
                   hob_swap_dims(scope, columns, 2, 3));
    y = hob_reshape(scope, hob_sum_dim(scope, y, 0), conv.weight, 4);
    return hob__part_down(scope, y, dtype);
}

/* ---- pooling ---- */

static void pool_init(struct layout *layout, const int64_t *x,
                      const int64_t *kernel_size, uint32_t kernel_size_count,
                      const int64_t *stride, uint32_t stride_count,
                      const int64_t *padding, uint32_t padding_count,
                      const int64_t *dilation, uint32_t dilation_count,
                      int ceil)
{
    struct hob__window *window = &layout->window;

    (void)hob__window_pair(kernel_size, kernel_size_count, ones, window->size);
    (void)hob__window_pair(stride, stride_count, window->size, window->stride);
    (void)hob__window_pair(padding, padding_count, zeros, window->padding);
    (void)hob__window_pair(dilation, dilation_count, ones, window->dilation);
    memcpy(layout->in, x + 2, sizeof(layout->in));
    lay_out(layout, ceil);
}

/*
 * Each window's elements' places in the unpadded plane, [1, 1, oh, ow, taps].
 * If all are -inf the first is taken, which may lie in the padding before the
 * plane: it has the place of the window's first element in the plane.
 */
static hob_tensor *pool_places(hob_scope *scope, hob_tensor *x,
                               const struct layout *layout)
{
    static const int64_t shape[2] = {1, 1};
    hob_device *device = hob_scope_host(scope)->tensor_device(x);
    int64_t sizes[4] = {1, 1, layout->plane[0], layout->plane[1]};
    int64_t column[2] = {layout->plane[0], 1};
    hob_tensor *line[2], *places;

    for (int i = 0; i < 2; i++) {
        int64_t first = -layout->window.padding[i];
        line[i] = hob_arange(scope, first, first + layout->plane[i], 1, device,
                             HOB_DTYPE_I64);
        line[i] = hob_maximum(
            scope, line[i],
            hob_remainder_scalar(scope, line[i],
                                 hob_i64(layout->window.dilation[i])));
        line[i] =
            hob_clamp(scope, line[i], hob_i64(0), hob_i64(layout->in[i] - 1));
    }
    places = hob_mul_scalar(scope, hob_reshape(scope, line[0], column, 2),
                            hob_i64(layout->in[1]));
    places = hob_reshape(scope, hob_add(scope, places, line[1]), sizes, 4);
    return flat_windows(scope, places, shape, layout);
}

hob_status hob__body_max_pool2d_with_indices(
    hob_scope *scope, hob_tensor *x, const int64_t *kernel_size,
    uint32_t kernel_size_count, const int64_t *stride, uint32_t stride_count,
    const int64_t *padding, uint32_t padding_count, const int64_t *dilation,
    uint32_t dilation_count, int ceil_mode, hob_dtype index_dtype,
    hob_tensor **out_0, hob_tensor **out_1)
{
    struct layout layout;
    int64_t shape[4], all[5];
    hob_tensor *taps, *which, *places;

    memcpy(shape, hob_tensor_shape(x), sizeof(shape));
    pool_init(&layout, shape, kernel_size, kernel_size_count, stride,
              stride_count, padding, padding_count, dilation, dilation_count,
              ceil_mode);
    taps = flat_windows(
        scope,
        pad(scope, x, shape, layout.window.padding, layout.plane, -INFINITY),
        shape, &layout);
    which = hob_argmax(scope, taps, 4, HOB_DTYPE_I64);
    memcpy(shape + 2, layout.out, sizeof(layout.out));
    memcpy(all, shape, sizeof(shape));
    all[4] = layout.window.size[0] * layout.window.size[1];
    places = hob_expand(scope, pool_places(scope, x, &layout), all, 5);
    places = hob_gather(scope, places, which, 4);
    *out_0 = hob_reshape(scope, hob_gather(scope, taps, which, 4), shape, 4);
    *out_1 = hob_cast(scope, hob_reshape(scope, places, shape, 4), index_dtype);
    return hob_scope_host(scope)->scope_status(scope);
}

hob_tensor *hob__body_max_pool2d(hob_scope *scope, hob_tensor *x,
                                 const int64_t *kernel_size,
                                 uint32_t kernel_size_count,
                                 const int64_t *stride, uint32_t stride_count,
                                 const int64_t *padding, uint32_t padding_count,
                                 const int64_t *dilation,
                                 uint32_t dilation_count, int ceil_mode)
{
    struct layout layout;
    int64_t shape[4];
    hob_tensor *taps;

    memcpy(shape, hob_tensor_shape(x), sizeof(shape));
    pool_init(&layout, shape, kernel_size, kernel_size_count, stride,
              stride_count, padding, padding_count, dilation, dilation_count,
              ceil_mode);
    taps = flat_windows(
        scope,
        pad(scope, x, shape, layout.window.padding, layout.plane, -INFINITY),
        shape, &layout);
    memcpy(shape + 2, layout.out, sizeof(layout.out));
    return hob_reshape(scope, hob_max_dim(scope, taps, 4), shape, 4);
}

hob_tensor *hob__body_max_pool2d_backward(hob_scope *scope,
                                          const int64_t *x_shape,
                                          uint32_t x_shape_count,
                                          hob_tensor *grad, hob_tensor *indices)
{
    hob_dtype dtype = hob_tensor_dtype(grad);
    int64_t plane[3] = {x_shape[0], x_shape[1], x_shape[2] * x_shape[3]};
    int64_t list[3] = {x_shape[0], x_shape[1],
                       hob_tensor_shape(grad)[2] * hob_tensor_shape(grad)[3]};
    hob_tensor *sum;

    grad = hob__part_up(scope, grad);
    sum = hob_scatter_add(scope,
                          hob__part_full(scope, grad, plane, 3, hob_i64(0)),
                          hob_reshape(scope, indices, list, 3),
                          hob_reshape(scope, grad, list, 3), 2);
    return hob__part_down(
        scope, hob_reshape(scope, sum, x_shape, x_shape_count), dtype);
}

hob_tensor *hob__body_max_pool2d_x_backward(
    hob_scope *scope, hob_tensor *x, hob_tensor *grad,
    const int64_t *kernel_size, uint32_t kernel_size_count,
    const int64_t *stride, uint32_t stride_count, const int64_t *padding,
    uint32_t padding_count, const int64_t *dilation, uint32_t dilation_count,
    int ceil_mode)
{
    hob_tensor *values = NULL, *indices = NULL;

    (void)hob_max_pool2d_with_indices(
        scope, x, kernel_size, kernel_size_count, stride, stride_count, padding,
        padding_count, dilation, dilation_count, ceil_mode, HOB_DTYPE_I64,
        &values, &indices);
    return hob_max_pool2d_backward(scope, hob_tensor_shape(x),
                                   (uint32_t)hob_tensor_rank(x), grad, indices);
}

/* How many elements each window averages, [1, 1, oh, ow]. */
static hob_tensor *pool_counts(hob_scope *scope, hob_tensor *x,
                               const struct layout *layout, int includes)
{
    static const int64_t one[2] = {1, 1};
    const int64_t *padding = layout->window.padding;
    int64_t shape[4] = {1, 1, layout->in[0], layout->in[1]};
    int64_t plane[2];
    hob_tensor *counted;

    for (int i = 0; i < 2; i++) {
        if (includes)
            shape[2 + i] += 2 * padding[i];
        plane[i] =
            layout->plane[i] > shape[2 + i] ? layout->plane[i] : shape[2 + i];
    }
    counted = hob__part_full(scope, x, shape, 4, hob_i64(1));
    counted = pad(scope, counted, shape, includes ? zeros : padding, plane, 0);
    shape[2] = layout->out[0];
    shape[3] = layout->out[1];
    return hob_reshape(
        scope, hob_sum_dim(scope, flat_windows(scope, counted, one, layout), 4),
        shape, 4);
}

hob_tensor *hob__body_avg_pool2d(hob_scope *scope, hob_tensor *x,
                                 const int64_t *kernel_size,
                                 uint32_t kernel_size_count,
                                 const int64_t *stride, uint32_t stride_count,
                                 const int64_t *padding, uint32_t padding_count,
                                 int count_include_pad, int ceil_mode)
{
    struct layout layout;
    hob_dtype dtype = hob_tensor_dtype(x);
    int64_t shape[4];
    hob_tensor *sum;

    memcpy(shape, hob_tensor_shape(x), sizeof(shape));
    pool_init(&layout, shape, kernel_size, kernel_size_count, stride,
              stride_count, padding, padding_count, NULL, 0, ceil_mode);
    x = hob__part_up(scope, x);
    sum = hob_sum_dim(scope,
                      flat_windows(scope,
                                   pad(scope, x, shape, layout.window.padding,
                                       layout.plane, 0),
                                   shape, &layout),
                      4);
    memcpy(shape + 2, layout.out, sizeof(layout.out));
    sum = hob_reshape(scope, sum, shape, 4);
    return hob__part_down(
        scope,
        hob_div(scope, sum, pool_counts(scope, x, &layout, count_include_pad)),
        dtype);
}

hob_tensor *hob__body_avg_pool2d_backward(
    hob_scope *scope, const int64_t *x_shape, uint32_t x_shape_count,
    hob_tensor *grad, const int64_t *kernel_size, uint32_t kernel_size_count,
    const int64_t *stride, uint32_t stride_count, const int64_t *padding,
    uint32_t padding_count, int count_include_pad, int ceil_mode)
{
    struct layout layout;
    hob_dtype dtype = hob_tensor_dtype(grad);
    int64_t shape[6];
    hob_tensor *share;

    (void)x_shape_count;
    pool_init(&layout, x_shape, kernel_size, kernel_size_count, stride,
              stride_count, padding, padding_count, NULL, 0, ceil_mode);
    grad = hob__part_up(scope, grad);
    share = hob_div(scope, grad,
                    pool_counts(scope, grad, &layout, count_include_pad));
    shape[0] = x_shape[0];
    shape[1] = x_shape[1];
    shape[2] = shape[3] = 1;
    shape[4] = layout.out[0];
    shape[5] = layout.out[1];
    share = hob_reshape(scope, share, shape, 6);
    shape[2] = layout.window.size[0];
    shape[3] = layout.window.size[1];
    share = hob_expand(scope, share, shape, 6);
    return hob__part_down(scope, add_back(scope, share, x_shape, &layout),
                          dtype);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - 2-d convolution and pooling.
 */
#include "infer.h"
#include "util.h"
#include "window.h"

#include <inttypes.h>
#include <string.h>

/* Attributes above this are refused: sums of them stay far from overflow. */
static const int64_t attribute_most = INT32_MAX;

static const int64_t ones[2] = {1, 1};
static const int64_t zeros[2] = {0, 0};

/* Read list argument INDEX, one or two numbers of at least LEAST. */
static hob_status read_pair(struct hob_call *call, uint32_t index,
                            const char *name, const int64_t fallback[2],
                            int64_t least, int64_t out[2])
{
    uint32_t count;
    const int64_t *list = hob__attr_list(call, index, &count);

    if (!hob__window_pair(list, count, fallback, out))
        return call->host->fail(
            call, HOB_ERR_ARGUMENT, "%s: %s %s has %u numbers; give one or two",
            call->op_name, name, hob__list_text(list, count).text,
            (unsigned)count);
    for (int i = 0; i < 2; i++)
        if (out[i] < least || out[i] > attribute_most)
            return call->host->fail(
                call, HOB_ERR_RANGE,
                "%s: %s is %s; each must be in %" PRId64 "..%" PRId64,
                call->op_name, name, hob__list_text(out, 2).text, least,
                attribute_most);
    return HOB_OK;
}

/* Stride, padding and dilation from the arguments at FIRST on. */
static hob_status read_conv(struct hob_call *call, uint32_t first,
                            struct hob__window *window)
{
    hob_status st = read_pair(call, first, "stride", ones, 1, window->stride);

    if (st)
        return st;
    st = read_pair(call, first + 1, "padding", zeros, 0, window->padding);
    if (st)
        return st;
    return read_pair(call, first + 2, "dilation", ones, 1, window->dilation);
}

/* Write the result's height and width for SIZES [n, c, h, w] into OUT. */
static hob_status count_windows(struct hob_call *call, const int64_t *sizes,
                                const struct hob__window *window, int ceil,
                                struct hob_meta *out)
{
    for (int i = 0; i < 2; i++) {
        out->shape[2 + i] = hob__window_count(window, i, sizes[2 + i], ceil);
        if (out->shape[2 + i] == 0)
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: a window of %s over %" PRId64 " elements does not fit "
                "%s %" PRId64 " with padding %" PRId64,
                call->op_name, hob__list_text(window->size, 2).text,
                hob__window_extent(window, i), i ? "width" : "height",
                sizes[2 + i], window->padding[i]);
    }
    return HOB_OK;
}

/*
 * The shape of conv2d for X and WEIGHT, four sizes each, into OUT. The
 * attributes start at argument FIRST: stride, padding, dilation, groups.
 */
static hob_status conv_shape(struct hob_call *call, const int64_t *x,
                             const int64_t *weight, uint32_t first,
                             struct hob_meta *out)
{
    struct hob__window window;
    int64_t groups = hob__attr_i64(call, first + 3);
    hob_status st = read_conv(call, first, &window);

    if (st)
        return st;
    if (groups < 1)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: groups is %" PRId64
                                "; it must be at least 1",
                                call->op_name, groups);
    /* x[1] == weight[1] * groups, without a product that could overflow. */
    if (x[1] % groups || x[1] / groups != weight[1] || weight[0] % groups)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: x is %s, weight is %s, groups is %" PRId64
            "; x's channels must be groups times weight's second size, and "
            "weight's first a multiple of groups",
            call->op_name, hob__list_text(x, 4).text,
            hob__list_text(weight, 4).text, groups);
    if (weight[2] < 1 || weight[3] < 1)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: weight is %s; its window is empty",
                                call->op_name, hob__list_text(weight, 4).text);
    window.size[0] = weight[2];
    window.size[1] = weight[3];
    out->rank = 4;
    out->shape[0] = x[0];
    out->shape[1] = weight[0];
    st = count_windows(call, x, &window, 0, out);
    return st ? st : hob__infer_check(call, out);
}

/* Read shape argument INDEX, four sizes, into OUT. */
static hob_status read_shape(struct hob_call *call, uint32_t index,
                             const char *name, struct hob_meta *out)
{
    uint32_t count;
    const int64_t *shape = hob__attr_list(call, index, &count);

    if (count != 4)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: %s %s must have 4 sizes", call->op_name,
                                name, hob__list_text(shape, count).text);
    out->rank = 4;
    memcpy(out->shape, shape, 4 * sizeof(shape[0]));
    return hob__infer_check(call, out);
}

hob_status hob__infer_conv2d(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *bias = hob_arg_view(call, 2);
    hob_status st = hob__infer_rank(call, 0, "x", 4, "[n, c, h, w]");

    if (st)
        return st;
    st = hob__infer_rank(call, 1, "weight", 4, "[out, c / groups, kh, kw]");
    if (st)
        return st;
    if (bias && (bias->rank != 1 || bias->shape[0] != weight->shape[0]))
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: bias is %s; for weight %s it must be [%" PRId64 "]",
            call->op_name, hob__view_text(bias).text,
            hob__view_text(weight).text, weight->shape[0]);
    return conv_shape(call, x->shape, weight->shape, 3, out);
}

hob_status hob__infer_conv2d_x_backward(struct hob_call *call,
                                        struct hob_meta *out)
{
    struct hob_meta result = *out;
    hob_status st = read_shape(call, 0, "x_shape", out);

    if (st)
        return st;
    st = hob__infer_rank(call, 1, "weight", 4, "[out, c / groups, kh, kw]");
    if (st)
        return st;
    st = conv_shape(call, out->shape, hob_arg_view(call, 1)->shape, 3, &result);
    if (st)
        return st;
    return hob__infer_equal(call, "grad", hob_arg_view(call, 2),
                            "conv2d's result", &result);
}

hob_status hob__infer_conv2d_weight_backward(struct hob_call *call,
                                             struct hob_meta *out)
{
    struct hob_meta result = *out;
    hob_status st = hob__infer_rank(call, 0, "x", 4, "[n, c, h, w]");

    if (st)
        return st;
    st = read_shape(call, 1, "weight_shape", out);
    if (st)
        return st;
    st = conv_shape(call, hob_arg_view(call, 0)->shape, out->shape, 3, &result);
    if (st)
        return st;
    return hob__infer_equal(call, "grad", hob_arg_view(call, 2),
                            "conv2d's result", &result);
}

/*
 * The shape of pooling X, four sizes, into OUT. The attributes start at
 * argument FIRST: kernel_size, stride, padding, and where DILATES, dilation.
 */
static hob_status pool_shape(struct hob_call *call, const int64_t *x,
                             uint32_t first, int dilates, int ceil,
                             struct hob_meta *out)
{
    struct hob__window window;
    hob_status st =
        read_pair(call, first, "kernel_size", zeros, 1, window.size);

    if (st)
        return st;
    st = read_pair(call, first + 1, "stride", window.size, 1, window.stride);
    if (st)
        return st;
    st = read_pair(call, first + 2, "padding", zeros, 0, window.padding);
    if (st)
        return st;
    memcpy(window.dilation, ones, sizeof(ones));
    if (dilates)
        st = read_pair(call, first + 3, "dilation", ones, 1, window.dilation);
    if (st)
        return st;
    for (int i = 0; i < 2; i++)
        if (window.padding[i] >= hob__window_extent(&window, i))
            return call->host->fail(
                call, HOB_ERR_RANGE,
                "%s: padding is %s; it must be smaller than the window, which "
                "has %" PRId64 " elements in dimension %d",
                call->op_name, hob__list_text(window.padding, 2).text,
                hob__window_extent(&window, i), 2 + i);
    if (x[2] == 0 || x[3] == 0)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s: its windows have no elements",
                                call->op_name, hob__list_text(x, 4).text);
    out->rank = 4;
    out->shape[0] = x[0];
    out->shape[1] = x[1];
    st = count_windows(call, x, &window, ceil, out);
    for (int i = 0; !st && i < 2; i++)
        if (hob__window_misses(&window, i, x[2 + i], out->shape[2 + i]))
            st = call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: with dilation %" PRId64 " and padding %" PRId64
                " a window steps over all of the %s %" PRId64
                " and has no element; give less of either",
                call->op_name, window.dilation[i], window.padding[i],
                i ? "width" : "height", x[2 + i]);
    return st ? st : hob__infer_check(call, out);
}

hob_status hob__infer_max_pool2d(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t plane;
    hob_status st = hob__infer_rank(call, 0, "x", 4, "[n, c, h, w]");

    if (st)
        return st;
    st = pool_shape(call, x->shape, 1, 1, (int)hob__attr_i64(call, 5), out);
    if (st)
        return st;
    if (call->ret_count > 1)
        hob__meta_copy_shape(&out[1], x);
    for (uint32_t i = 1; i < call->ret_count; i++)
        memcpy(out[i].shape, out->shape, sizeof(out->shape));
    if (!hob__dim_mul(x->shape[2], x->shape[3], &plane))
        plane = INT64_MAX;
    return hob__infer_index_dtype(call, plane);
}

hob_status hob__infer_max_pool2d_backward(struct hob_call *call,
                                          struct hob_meta *out)
{
    const struct hob_view *grad = hob_arg_view(call, 1);
    const struct hob_view *indices = hob_arg_view(call, 2);
    hob_status st = read_shape(call, 0, "x_shape", out);

    if (st)
        return st;
    if (grad->rank != 4 || !hob__same_shape(grad, indices) ||
        grad->shape[0] != out->shape[0] || grad->shape[1] != out->shape[1])
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: x_shape is %s, grad is %s, indices is %s; grad and indices "
            "must have one shape, with x's first two sizes",
            call->op_name, hob__list_text(out->shape, 4).text,
            hob__view_text(grad).text, hob__view_text(indices).text);
    return HOB_OK;
}

hob_status hob__infer_max_pool2d_x_backward(struct hob_call *call,
                                            struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct hob_meta result = *out;
    hob_status st = hob__infer_rank(call, 0, "x", 4, "[n, c, h, w]");

    if (st)
        return st;
    st = pool_shape(call, x->shape, 2, 1, (int)hob__attr_i64(call, 6), &result);
    if (st)
        return st;
    hob__meta_copy_shape(out, x);
    return hob__infer_equal(call, "grad", hob_arg_view(call, 1),
                            "max_pool2d's result", &result);
}

hob_status hob__infer_avg_pool2d(struct hob_call *call, struct hob_meta *out)
{
    hob_status st = hob__infer_rank(call, 0, "x", 4, "[n, c, h, w]");

    if (st)
        return st;
    return pool_shape(call, hob_arg_view(call, 0)->shape, 1, 0,
                      (int)hob__attr_i64(call, 5), out);
}

hob_status hob__infer_avg_pool2d_backward(struct hob_call *call,
                                          struct hob_meta *out)
{
    struct hob_meta result = *out;
    hob_status st = read_shape(call, 0, "x_shape", out);

    if (st)
        return st;
    st = pool_shape(call, out->shape, 2, 0, (int)hob__attr_i64(call, 6),
                    &result);
    if (st)
        return st;
    return hob__infer_equal(call, "grad", hob_arg_view(call, 1),
                            "avg_pool2d's result", &result);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_nd.c - convolutions of 1 and 3 dimensions, transposed ones of 1 to 3,
 * adaptive pooling, im2col and back.
 */
#include "infer.h"
#include "util.h"
#include "window.h"

#include <hob/ext/window.h>

#include <inttypes.h>
#include <string.h>

/* Sums of attributes stay far from overflow. */
static const int64_t attribute_most = INT32_MAX;

/* Read list argument INDEX, up to N numbers; one stands for all. */
static hob_status read_numbers(struct hob_call *call, uint32_t index,
                               const char *name, uint32_t n, int64_t fallback,
                               int64_t least, int64_t *out)
{
    uint32_t count;
    const int64_t *list = hob__attr_list(call, index, &count);

    if (count > 1 && count != n)
        return call->host->fail(
            call, HOB_ERR_ARGUMENT, "%s: %s %s has %u numbers; give one or %u",
            call->op_name, name, hob__list_text(list, count).text,
            (unsigned)count, (unsigned)n);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = !count ? fallback : list[count == 1 ? 0 : i];
        if (out[i] < least || out[i] > attribute_most)
            return call->host->fail(
                call, HOB_ERR_RANGE,
                "%s: %s is %s; each must be in %" PRId64 "..%" PRId64,
                call->op_name, name, hob__list_text(list, count).text, least,
                attribute_most);
    }
    return HOB_OK;
}

static hob_status check_groups(struct hob_call *call, int64_t groups,
                               int64_t in, int64_t out)
{
    if (groups >= 1 && in % groups == 0 && out % groups == 0)
        return HOB_OK;
    return call->host->fail(
        call, HOB_ERR_SHAPE,
        "%s: groups is %" PRId64 "; it must divide the %" PRId64
        " channels that come in and the %" PRId64 " that go out",
        call->op_name, groups, in, out);
}

static hob_status check_bias(struct hob_call *call, int64_t channels)
{
    const struct hob_view *bias = hob_arg_view(call, 2);

    if (!bias || (bias->rank == 1 && bias->shape[0] == channels))
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: bias is %s; it must be [%" PRId64 "]",
                            call->op_name, hob__view_text(bias).text, channels);
}

static const char *const layouts[] = {"", "[n, c, w]", "[n, c, h, w]",
                                      "[n, c, d, h, w]"};

static hob_status check_ranks(struct hob_call *call, uint32_t n)
{
    hob_status st = hob__infer_rank(call, 0, "x", n + 2, layouts[n]);

    return st ? st : hob__infer_rank(call, 1, "weight", n + 2, layouts[n]);
}

static hob_status conv(struct hob_call *call, uint32_t n, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *w = hob_arg_view(call, 1);
    int64_t stride[3], padding[3], dilation[3];
    int64_t groups = hob__attr_i64(call, 6);
    hob_status st = check_ranks(call, n);

    if (!st)
        st = read_numbers(call, 3, "stride", n, 1, 1, stride);
    if (!st)
        st = read_numbers(call, 4, "padding", n, 0, 0, padding);
    if (!st)
        st = read_numbers(call, 5, "dilation", n, 1, 1, dilation);
    if (!st)
        st = check_groups(call, groups, x->shape[1], w->shape[0]);
    if (!st && x->shape[1] / groups != w->shape[1])
        st = call->host->fail(call, HOB_ERR_SHAPE,
                              "%s: x is %s and weight is %s; with %" PRId64
                              " groups weight's second size must be %" PRId64,
                              call->op_name, hob__view_text(x).text,
                              hob__view_text(w).text, groups,
                              x->shape[1] / groups);
    if (!st)
        st = check_bias(call, w->shape[0]);
    if (st)
        return st;
    out->rank = (uint8_t)(n + 2);
    out->shape[0] = x->shape[0];
    out->shape[1] = w->shape[0];
    for (uint32_t i = 0; i < n; i++) {
        int64_t k = w->shape[2 + i];

        out->shape[2 + i] =
            hob_window_count(x->shape[2 + i], hob_window_extent(k, dilation[i]),
                             stride[i], padding[i]);
        if (k < 1 || k >= attribute_most || !out->shape[2 + i])
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: a window of weight %s, dilation %" PRId64
                ", does not fit x %s with padding %" PRId64,
                call->op_name, hob__view_text(w).text, dilation[i],
                hob__view_text(x).text, padding[i]);
    }
    return hob__infer_check(call, out);
}

hob_status hob__infer_conv1d(struct hob_call *call, struct hob_meta *out)
{
    return conv(call, 1, out);
}

hob_status hob__infer_conv3d(struct hob_call *call, struct hob_meta *out)
{
    return conv(call, 3, out);
}

/* out = (in - 1) stride + dilation (k - 1) + 1 + output_padding - 2 padding */
static hob_status conv_transpose(struct hob_call *call, uint32_t n,
                                 struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *w = hob_arg_view(call, 1);
    int64_t stride[3], padding[3], more[3], dilation[3];
    int64_t groups = hob__attr_i64(call, 7);
    hob_status st = check_ranks(call, n);

    if (!st)
        st = read_numbers(call, 3, "stride", n, 1, 1, stride);
    if (!st)
        st = read_numbers(call, 4, "padding", n, 0, 0, padding);
    if (!st)
        st = read_numbers(call, 5, "output_padding", n, 0, 0, more);
    if (!st)
        st = read_numbers(call, 6, "dilation", n, 1, 1, dilation);
    if (!st && x->shape[1] != w->shape[0])
        st = call->host->fail(call, HOB_ERR_SHAPE,
                              "%s: x is %s and weight is %s; weight's first "
                              "size must be x's channels",
                              call->op_name, hob__view_text(x).text,
                              hob__view_text(w).text);
    if (!st)
        st = check_groups(call, groups, x->shape[1], groups);
    if (st)
        return st;
    out->rank = (uint8_t)(n + 2);
    out->shape[0] = x->shape[0];
    if (!hob__dim_mul(w->shape[1], groups, &out->shape[1]))
        out->shape[1] = INT64_MAX; /* refused below */
    st = check_bias(call, out->shape[1]);
    for (uint32_t i = 0; i < n && !st; i++) {
        int64_t k = w->shape[2 + i], in = x->shape[2 + i];

        if (k < 1 || k >= attribute_most || in >= attribute_most)
            return call->host->fail(call, HOB_ERR_SHAPE,
                                    "%s: x is %s and weight is %s: there is "
                                    "no window, or too large a one",
                                    call->op_name, hob__view_text(x).text,
                                    hob__view_text(w).text);
        if (more[i] && more[i] >= stride[i] && more[i] >= dilation[i])
            return call->host->fail(
                call, HOB_ERR_RANGE,
                "%s: output_padding %" PRId64
                " must be smaller than stride %" PRId64 " or dilation %" PRId64,
                call->op_name, more[i], stride[i], dilation[i]);
        out->shape[2 + i] = in ? (in - 1) * stride[i] +
                                     hob_window_extent(k, dilation[i]) +
                                     more[i] - 2 * padding[i]
                               : 0;
        if (out->shape[2 + i] < 0)
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: padding %" PRId64 " crops more than x %s gives",
                call->op_name, padding[i], hob__view_text(x).text);
    }
    return st ? st : hob__infer_check(call, out);
}

hob_status hob__infer_conv_transpose1d(struct hob_call *call,
                                       struct hob_meta *out)
{
    return conv_transpose(call, 1, out);
}

hob_status hob__infer_conv_transpose2d(struct hob_call *call,
                                       struct hob_meta *out)
{
    return conv_transpose(call, 2, out);
}

hob_status hob__infer_conv_transpose3d(struct hob_call *call,
                                       struct hob_meta *out)
{
    return conv_transpose(call, 3, out);
}

/* As many of the last dimensions as there are sizes. */
/* X with its last dimensions replaced by SIZES. Where there is nothing in or
 * (is_backward) out of the pool, nothing is on its other side either. */
static hob_status pooled(struct hob_call *call, const char *name,
                         int is_backward, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count;
    const int64_t *sizes = hob__attr_list(call, 1, &count);

    if (!count || count > x->rank)
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "%s: %s %s has %u numbers; give one for each "
                                "pooled dimension of %s",
                                call->op_name, name,
                                hob__list_text(sizes, count).text,
                                (unsigned)count, hob__view_text(x).text);
    hob__meta_copy_shape(out, x);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = x->rank - count + i;
        int64_t in = is_backward ? sizes[i] : x->shape[axis];
        int64_t made = is_backward ? x->shape[axis] : sizes[i];

        if (sizes[i] < 0 || (made && !in))
            return call->host->fail(
                call, HOB_ERR_RANGE,
                "%s: %s is %s for %s; sizes must not be negative, and nothing "
                "can be pooled from an empty dimension",
                call->op_name, name, hob__list_text(sizes, count).text,
                hob__view_text(x).text);
        out->shape[axis] = sizes[i];
    }
    return hob__infer_check(call, out);
}

hob_status hob__infer_adaptive_pool(struct hob_call *call, struct hob_meta *out)
{
    return pooled(call, "output_size", 0, out);
}

hob_status hob__infer_adaptive_pool_backward(struct hob_call *call,
                                             struct hob_meta *out)
{
    return pooled(call, "input_size", 1, out);
}

/* How many windows there are along each of two dimensions of SIZES. */
static hob_status count_columns(struct hob_call *call, const int64_t *sizes,
                                uint32_t first, int64_t *kernel,
                                int64_t *out_count)
{
    int64_t stride[2], padding[2], dilation[2];
    hob_status st = read_numbers(call, first, "kernel_size", 2, 1, 1, kernel);

    if (!st)
        st = read_numbers(call, first + 1, "stride", 2, 1, 1, stride);
    if (!st)
        st = read_numbers(call, first + 2, "padding", 2, 0, 0, padding);
    if (!st)
        st = read_numbers(call, first + 3, "dilation", 2, 1, 1, dilation);
    *out_count = 1;
    for (int i = 0; i < 2 && !st; i++) {
        int64_t count = hob_window_count(
            sizes[i], hob_window_extent(kernel[i], dilation[i]), stride[i],
            padding[i]);

        if (!count)
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: a window of %" PRId64 ", dilation %" PRId64
                ", does not fit size %" PRId64 " with padding %" PRId64,
                call->op_name, kernel[i], dilation[i], sizes[i], padding[i]);
        if (!hob__dim_mul(*out_count, count, out_count))
            *out_count = INT64_MAX;
    }
    return st;
}

hob_status hob__infer_im2col(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t kernel[2], count;
    hob_status st = hob__infer_rank(call, 0, "x", 4, layouts[2]);

    if (!st)
        st = count_columns(call, x->shape + 2, 1, kernel, &count);
    if (st)
        return st;
    out->rank = 3;
    out->shape[0] = x->shape[0];
    if (!hob__dim_mul(x->shape[1], kernel[0] * kernel[1], &out->shape[1]))
        out->shape[1] = INT64_MAX; /* refused below */
    out->shape[2] = count;
    return hob__infer_check(call, out);
}

hob_status hob__infer_col2im(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t size[2], kernel[2], count;
    hob_status st = hob__infer_rank(call, 0, "x", 3, "[n, c * kh * kw, l]");

    if (!st)
        st = read_numbers(call, 1, "output_size", 2, 1, 1, size);
    if (!st)
        st = count_columns(call, size, 2, kernel, &count);
    if (st)
        return st;
    if (x->shape[1] % (kernel[0] * kernel[1]) || x->shape[2] != count)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: x is %s; its second size must be a multiple of the window's "
            "%" PRId64 " elements, its third the %" PRId64 " windows",
            call->op_name, hob__view_text(x).text, kernel[0] * kernel[1],
            count);
    out->rank = 4;
    out->shape[0] = x->shape[0];
    out->shape[1] = x->shape[1] / (kernel[0] * kernel[1]);
    out->shape[2] = size[0];
    out->shape[3] = size[1];
    return hob__infer_check(call, out);
}

/* ---- pooling of one dimension ---- */

/* kernel_size, stride, padding are arguments 1 to 3, dilation DILATION; an
 * absent stride is the window's size. */
static hob_status pool(struct hob_call *call, uint32_t dilation, int ceil,
                       struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t size = hob__attr_i64(call, 1), padding = hob__attr_i64(call, 3);
    int64_t stride =
        call->args[2].tag == HOB_TAG_ABSENT ? size : hob__attr_i64(call, 2);
    int64_t step = dilation ? hob__attr_i64(call, dilation) : 1;
    struct hob__window window = {{size}, {stride}, {padding}, {step}};
    hob_status st = hob__infer_rank(call, 0, "x", 3, layouts[1]);

    if (st)
        return st;
    if (size < 1 || stride < 1 || step < 1 || padding < 0 ||
        size > attribute_most || stride > attribute_most ||
        step > attribute_most || padding >= hob__window_extent(&window, 0))
        return call->host->fail(
            call, HOB_ERR_RANGE,
            "%s: kernel_size is %" PRId64 ", stride %" PRId64
            ", padding %" PRId64 ", dilation %" PRId64
            "; they must be in 1..%" PRId64
            ", padding at least 0 and smaller than the window",
            call->op_name, size, stride, padding, step, attribute_most);
    hob__meta_copy_shape(out, x);
    out->shape[2] =
        x->shape[2] ? hob__window_count(&window, 0, x->shape[2], ceil) : 0;
    if (!out->shape[2])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: a window over %" PRId64
                                " elements does not fit x %s with padding "
                                "%" PRId64,
                                call->op_name, hob__window_extent(&window, 0),
                                hob__view_text(x).text, padding);
    if (hob__window_misses(&window, 0, x->shape[2], out->shape[2]))
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: with dilation %" PRId64
                                " and padding %" PRId64
                                " a window steps over all of the width %" PRId64
                                " and has no element; give less of either",
                                call->op_name, step, padding, x->shape[2]);
    return hob__infer_check(call, out);
}

hob_status hob__infer_max_pool1d(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st = pool(call, 4, (int)hob__attr_i64(call, 5), out);

    if (st || call->ret_count < 2)
        return st;
    out[1].rank = out->rank;
    memcpy(out[1].shape, out->shape, sizeof(out->shape));
    return hob__infer_index_dtype(call, x->shape[2]);
}

hob_status hob__infer_avg_pool1d(struct hob_call *call, struct hob_meta *out)
{
    return pool(call, 0, (int)hob__attr_i64(call, 5), out);
}

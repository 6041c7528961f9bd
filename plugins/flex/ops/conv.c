/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - convolutions of 1, 2 and 3 dimensions, transposed ones, and the
 * gradients of 2-d convolution: from arguments to struct flex_conv.
 */
#include "conv.h"
#include "wide.h"

#include <inttypes.h>
#include <string.h>

/* The attributes of a call; axes as in struct flex_conv. */
struct geometry {
    int64_t stride[3], padding[3], dilation[3];
    int64_t kernel[3];
    int64_t groups;
};

/* Numbers of list argument INDEX, of which one stands for all, into OUT. */
static void read_list(const struct hob_call *call, uint32_t index,
                      uint32_t spatial, int64_t fallback, int64_t out[3])
{
    const hob_value *list = &call->args[index];
    const uint32_t count = list->tag == HOB_TAG_I64S ? list->count : 0;

    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t at = i + spatial - 3; /* wraps for missing axes */
        out[i] = i + spatial < 3 || !count ? fallback
                 : count == 1              ? list->u.i64s[0]
                                           : list->u.i64s[at];
    }
}

/* Axis I's number of SHAPE [.., .., spatial sizes]. */
static int64_t size_of(const int64_t *shape, uint32_t spatial, uint32_t i)
{
    return i + spatial < 3 ? 1 : shape[2 + i + spatial - 3];
}

/* DILATION, groups behind it: argument indices. */
static void read_geometry(struct geometry *g, const struct hob_call *call,
                          uint32_t stride, uint32_t dilation, uint32_t spatial,
                          const int64_t *weight)
{
    read_list(call, stride, spatial, 1, g->stride);
    read_list(call, stride + 1, spatial, 0, g->padding);
    read_list(call, dilation, spatial, 1, g->dilation);
    g->groups = flex_arg_i64(call, dilation + 1);
    for (uint32_t i = 0; i < 3; i++) {
        g->kernel[i] = size_of(weight, spatial, i);
        if (i + spatial < 3) /* no padding of an axis that is not there */
            g->stride[i] = g->dilation[i] = 1, g->padding[i] = 0;
    }
}

static void init(struct flex_conv *conv, struct flex_device *device,
                 uint32_t dtype, int64_t batch, const struct geometry *g)
{
    const int is_f64 = dtype == HOB_DTYPE_F64;

    *conv = (struct flex_conv){
        .device = device,
        .gemm = &device->blas->kernels[is_f64 ? FLEX_GEMM_F64 : FLEX_GEMM_F32],
        .kernels =
            &flex_conv_kernels(device)[is_f64 ? FLEX_CONV_F64 : FLEX_CONV_F32],
        .size = is_f64 ? 8 : 4,
        .batch = batch,
        .groups = g->groups};
}

/* Elements between taps along axis I. */
static int64_t tap_step(const struct geometry *g, int i)
{
    return i == 0 ? g->kernel[1] * g->kernel[2] : i == 1 ? g->kernel[2] : 1;
}

/* A convolution of X's shape with a weight [out, in, taps]. */
static void describe(struct flex_conv *conv, const struct geometry *g,
                     uint32_t spatial, const int64_t *x, const int64_t *weight,
                     const int64_t *out)
{
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2];

    for (int i = 0; i < 3; i++) {
        const int64_t positions = size_of(out, spatial, (uint32_t)i);
        conv->axis[i] =
            (struct flex_conv_axis){.in = size_of(x, spatial, (uint32_t)i),
                                    .positions = positions,
                                    .step = g->stride[i],
                                    .taps = g->kernel[i],
                                    .first = -g->padding[i],
                                    .pace = g->dilation[i],
                                    .out = positions,
                                    .spread = 1,
                                    .weight_pace = tap_step(g, i)};
    }
    conv->in_channels = weight[1];
    conv->out_channels = weight[0] / g->groups;
    conv->weight_in = taps;
    conv->weight_out = weight[1] * taps;
    conv->weight_group = conv->out_channels * conv->weight_out;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Axis I of a transposed convolution, results whose place is REST modulo the
 * stride: they meet every step-th tap, in descending order of positions. */
static void describe_phase(struct flex_conv_axis *axis,
                           const struct geometry *g, int i, int64_t rest)
{
    const int64_t stride = g->stride[i], dilation = g->dilation[i];
    const int64_t step = stride / common_divisor(stride, dilation);
    int64_t tap = 0;

    while (tap < step && (rest + g->padding[i] - tap * dilation) % stride != 0)
        tap++;
    axis->step = 1;
    axis->place = rest;
    axis->spread = stride;
    axis->positions =
        axis->out > rest ? flex_divide_up(axis->out - rest, stride) : 0;
    axis->taps = tap < step && tap < g->kernel[i]
                     ? flex_divide_up(g->kernel[i] - tap, step)
                     : 0;
    axis->first =
        axis->taps ? (rest + g->padding[i] - tap * dilation) / stride : 0;
    axis->pace = -(step * dilation / stride);
    axis->weight_first = tap * tap_step(g, i);
    axis->weight_pace = step * tap_step(g, i);
}

/* Nonzero if there is one position, which takes the whole input in its order,
 * as of 1 x 1 taps over planes of one element. */
static int is_product(const struct flex_conv *conv)
{
    for (int i = 0; i < 3; i++) {
        const struct flex_conv_axis *axis = &conv->axis[i];
        if (axis->positions != 1 || axis->out != 1 || axis->taps != axis->in ||
            axis->first != 0 || (axis->taps > 1 && axis->pace != 1))
            return 0;
    }
    return conv->groups == 1 && conv->in_channels > 0;
}

/* The product of matrices [batch, inputs] and [inputs, out channels]. */
static hob_status multiply(const struct flex_conv *conv)
{
    const struct flex_conv_axis *axis = conv->axis;
    const int64_t taps = flex_conv_taps(conv);
    const int64_t weight_first =
        axis[0].weight_first + axis[1].weight_first + axis[2].weight_first;
    const struct flex_gemm gemm = {
        .struct_size = sizeof(gemm),
        .dtype = conv->size == 8 ? HOB_DTYPE_F64 : HOB_DTYPE_F32,
        .m = conv->batch,
        .n = conv->out_channels,
        .k = conv->in_channels * taps,
        .a = conv->in,
        .a_row = conv->in_channels * taps,
        .a_column = 1,
        .b = conv->weight + weight_first * conv->size,
        .b_row = taps == 1 ? conv->weight_in : 1,
        .b_column = conv->weight_out,
        .c = conv->out,
        .ldc = conv->out_channels,
        .alpha = 1,
        .bias = conv->bias};

    return flex_gemm(conv->device, &gemm);
}

/* Choose the way by the shape alone. */
static hob_status compute(const struct flex_conv *conv)
{
    if (is_product(conv))
        return multiply(conv);
    if (flex_conv_is_direct(conv))
        return flex_conv_direct(conv);
    if (flex_conv_is_winograd(conv))
        return flex_conv_winograd(conv);
    return flex_conv_gemm(conv);
}

/* The transposed convolution of X's shape with a weight [in, out, taps]. */
static hob_status transpose(struct flex_conv *conv, const struct geometry *g,
                            uint32_t spatial, const int64_t *x,
                            const int64_t *weight, const int64_t *out)
{
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2];
    int64_t phases[3];
    hob_status st = HOB_OK;

    conv->in_channels = weight[0] / g->groups;
    conv->out_channels = weight[1];
    conv->weight_out = taps;
    conv->weight_in = weight[1] * taps;
    conv->weight_group = conv->in_channels * conv->weight_in;
    for (uint32_t i = 0; i < 3; i++) {
        conv->axis[i].in = size_of(x, spatial, i);
        conv->axis[i].out = size_of(out, spatial, i);
    }
    for (int i = 0; i < 3; i++)
        phases[i] = flex_least(g->stride[i], conv->axis[i].out);
    for (int64_t z = 0; z < phases[0] && !st; z++)
        for (int64_t y = 0; y < phases[1] && !st; y++)
            for (int64_t w = 0; w < phases[2] && !st; w++) {
                describe_phase(&conv->axis[0], g, 0, z);
                describe_phase(&conv->axis[1], g, 1, y);
                describe_phase(&conv->axis[2], g, 2, w);
                if (flex_conv_positions(conv) > 0)
                    st = compute(conv);
            }
    return st;
}

static hob_status finish(struct hob_call *call, hob_status st)
{
    if (!st)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_MEMORY,
                            "%s: no memory for working space; use smaller "
                            "batches",
                            call->op_name);
}

/* ---- the ops ---- */

/* The wide forms of what a call reads and writes. */
struct operands {
    struct flex_wide x, weight, bias, result;
};

static void release(struct flex_device *device, struct operands *o)
{
    flex_wide_release(device, &o->x);
    flex_wide_release(device, &o->weight);
    flex_wide_release(device, &o->bias);
    flex_wide_release(device, &o->result);
}

/* X and WEIGHT (a gradient, for weight_backward), BIAS or NULL, and OUT. */
static hob_status take(struct flex_device *device, const struct hob_view *x,
                       const struct hob_view *weight,
                       const struct hob_view *bias, const struct hob_view *out,
                       struct operands *o)
{
    hob_status st;

    memset(o, 0, sizeof(*o));
    st = flex_wide_read(device, x, &o->x);
    if (!st)
        st = flex_wide_read(device, weight, &o->weight);
    if (!st && bias)
        st = flex_wide_read(device, bias, &o->bias);
    if (!st)
        st = flex_wide_begin(device, out, &o->result);
    return st;
}

static void give(struct flex_conv *conv, const struct operands *o)
{
    conv->in = o->x.data;
    conv->weight = o->weight.data;
    conv->bias = o->bias.data;
    conv->out = o->result.data;
}

static hob_status forward(struct flex_device *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t spatial = (uint32_t)out->rank - 2;
    struct geometry g;
    struct flex_conv conv;
    struct operands o;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    read_geometry(&g, call, 3, 5, spatial, weight->shape);
    init(&conv, device, out->dtype, x->shape[0], &g);
    describe(&conv, &g, spatial, x->shape, weight->shape, out->shape);
    st = take(device, x, weight, hob_arg_view(call, 2), out, &o);
    if (!st) {
        give(&conv, &o);
        st = compute(&conv);
    }
    if (!st)
        flex_wide_finish(device, out, &o.result);
    release(device, &o);
    return finish(call, st);
}

/* X is the convolution's gradient for conv2d_x_backward. */
static hob_status backward(struct flex_device *device, struct hob_call *call,
                           const struct hob_view *x,
                           const struct hob_view *weight,
                           const struct hob_view *bias, uint32_t dilation)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t spatial = (uint32_t)out->rank - 2;
    struct geometry g;
    struct flex_conv conv;
    struct operands o;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    read_geometry(&g, call, 3, dilation, spatial, weight->shape);
    init(&conv, device, out->dtype, x->shape[0], &g);
    st = take(device, x, weight, bias, out, &o);
    if (!st) {
        give(&conv, &o);
        st = transpose(&conv, &g, spatial, x->shape, weight->shape, out->shape);
    }
    if (!st)
        flex_wide_finish(device, out, &o.result);
    release(device, &o);
    return finish(call, st);
}

static hob_status conv(void *device, struct hob_call *call)
{
    return forward(device, call);
}

static hob_status conv_transpose(void *device, struct hob_call *call)
{
    return backward(device, call, hob_arg_view(call, 0), hob_arg_view(call, 1),
                    hob_arg_view(call, 2), 6);
}

static hob_status conv2d_x_backward(void *device, struct hob_call *call)
{
    return backward(device, call, hob_arg_view(call, 2), hob_arg_view(call, 1),
                    NULL, 5);
}

static hob_status conv2d_weight_backward(void *instance, struct hob_call *call)
{
    struct flex_device *device = instance;
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *grad = hob_arg_view(call, 2);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct geometry g;
    struct flex_conv conv;
    struct operands o;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    read_geometry(&g, call, 3, 5, 2, out->shape);
    init(&conv, device, out->dtype, x->shape[0], &g);
    describe(&conv, &g, 2, x->shape, out->shape, grad->shape);
    st = take(device, x, grad, NULL, out, &o);
    if (!st) {
        give(&conv, &o);
        st = flex_conv_is_direct_weight(&conv)
                 ? flex_conv_direct_weight(&conv, o.weight.data, conv.out)
                 : flex_conv_weight(&conv, o.weight.data, conv.out);
    }
    if (!st)
        flex_wide_finish(device, out, &o.result);
    release(device, &o);
    return finish(call, st);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT};

#define ATTRIBUTES                                                             \
    "stride: [i64], padding: [i64], dilation: [i64], groups: i64 = 1"
#define ENTRY(name, text, count, fn)                                           \
    {                                                                          \
        .op = name, .signature = text, .dtypes = masks, .dtype_count = count,  \
        .execute = fn,                                                         \
    }
#define FORWARD "(x: Float, weight: Float, bias: Float?, " ATTRIBUTES ") -> x"
#define TRANSPOSE                                                              \
    "(x: Float, weight: Float, bias: Float?, stride: [i64], padding: [i64], "  \
    "output_padding: [i64], dilation: [i64], groups: i64 = 1) -> x"

static const struct hob_entry entries[] = {
    ENTRY("conv1d", FORWARD, 3, conv),
    ENTRY("conv2d", FORWARD, 3, conv),
    ENTRY("conv3d", FORWARD, 3, conv),
    ENTRY("conv_transpose1d", TRANSPOSE, 3, conv_transpose),
    ENTRY("conv_transpose2d", TRANSPOSE, 3, conv_transpose),
    ENTRY("conv_transpose3d", TRANSPOSE, 3, conv_transpose),
    ENTRY("conv2d_x_backward",
          "(x_shape: shape, weight: Float, grad: Float, " ATTRIBUTES
          ") -> grad",
          2, conv2d_x_backward),
    ENTRY("conv2d_weight_backward",
          "(x: Float, weight_shape: shape, grad: Float, " ATTRIBUTES
          ") -> grad",
          2, conv2d_weight_backward),
};

#undef ATTRIBUTES
#undef ENTRY
#undef FORWARD
#undef TRANSPOSE

const struct flex_entries flex_conv_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

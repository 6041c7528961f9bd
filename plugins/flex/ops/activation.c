/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activation.c - the activations that are more than one elementwise op, each
 * in one pass, and activation_backward.
 */
#include "map.h"

/* x and COUNT attributes behind it. */
static hob_status forward(struct flex_device *device, struct hob_call *call,
                          enum flex_map map, uint32_t count)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct flex_operand operands[3];

    operands[0].view = x;
    for (uint32_t i = 1; i <= count; i++)
        flex_operand_wide(&operands[i], flex_arg_f64(call, i), x->dtype);
    return flex_map_run(device, call, map, x->dtype, hob_ret_view(call, 0),
                        operands, 1 + count);
}

/* One slope, or one for each channel of x [n, c, ..]. */
static hob_status prelu(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *slope = hob_arg_view(call, 1);
    struct hob_view wide = *slope;
    struct flex_operand operands[2];

    wide.rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++) {
        wide.shape[i] = i == 1 ? hob_view_count(slope) : 1;
        wide.strides[i] = slope->rank ? slope->strides[0] : 0;
    }
    operands[0].view = x;
    operands[1].view = &wide;
    return flex_map_run(device, call, FLEX_MAP_LEAKY_RELU, x->dtype,
                        hob_ret_view(call, 0), operands, 2);
}

/* The first half of x along dim times the sigmoid of the second. */
static hob_status glu(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t dim = flex_dim(flex_arg_i64(call, 1), x->rank);
    struct hob_view halves[2] = {*x, *x};
    struct flex_operand operands[2];

    for (uint32_t i = 0; i < 2; i++) {
        halves[i].shape[dim] = out->shape[dim];
        operands[i].view = &halves[i];
    }
    halves[1].data = (char *)x->data + out->shape[dim] * x->strides[dim] *
                                           (int64_t)hob_dtype_size(x->dtype);
    return flex_map_run(device, call, FLEX_MAP_GLU, x->dtype, out, operands, 2);
}

const enum flex_map flex_backward_maps[FLEX_BACKWARD_COUNT] = {
    FLEX_MAP_SILU_BACKWARD,     FLEX_MAP_MISH_BACKWARD,
    FLEX_MAP_SOFTPLUS_BACKWARD, FLEX_MAP_LOG_SIGMOID_BACKWARD,
    FLEX_MAP_SOFTSIGN_BACKWARD, FLEX_MAP_LEAKY_RELU_BACKWARD,
    FLEX_MAP_ELU_BACKWARD,      FLEX_MAP_CELU_BACKWARD,
    FLEX_MAP_SELU_BACKWARD,     FLEX_MAP_HARD_SWISH_BACKWARD,
};

static hob_status activation_backward(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct flex_operand operands[3];

    operands[0].view = x;
    operands[1].view = hob_arg_view(call, 1);
    flex_operand_wide(&operands[2], flex_arg_f64(call, 3), x->dtype);
    return flex_map_run(device, call,
                        flex_backward_maps[flex_arg_i64(call, 2)], x->dtype,
                        hob_ret_view(call, 0), operands, 3);
}

/* X(op, its kernel, number of attributes, signature) */
#define ACTIVATIONS                                                            \
    X(silu, SILU, 0, "(x: Float) -> x")                                        \
    X(softplus, SOFTPLUS, 1, "(x: Float, beta: f64 = 1) -> x")                 \
    X(log_sigmoid, LOG_SIGMOID, 0, "(x: Float) -> x")                          \
    X(leaky_relu, LEAKY_RELU, 1, "(x: Float, slope: f64 = 0.01) -> x")         \
    X(elu, ELU, 1, "(x: Float, alpha: f64 = 1) -> x")                          \
    X(celu, CELU, 1, "(x: Float, alpha: f64 = 1) -> x")                        \
    X(selu, SELU, 0, "(x: Float) -> x")                                        \
    X(hard_sigmoid, HARD_SIGMOID, 2,                                           \
      "(x: Float, alpha: f64 = 0.2, beta: f64 = 0.5) -> x")                    \
    X(hard_swish, HARD_SWISH, 0, "(x: Float) -> x")                            \
    X(mish, MISH, 0, "(x: Float) -> x")                                        \
    X(softsign, SOFTSIGN, 0, "(x: Float) -> x")

#define X(op, map, count, signature)                                           \
    static hob_status execute_##op(void *device, struct hob_call *call)        \
    {                                                                          \
        return forward(device, call, FLEX_MAP_##map, count);                   \
    }
ACTIVATIONS
#undef X

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT};

#define X(name, map, count, text)                                              \
    {                                                                          \
        .op = #name,                                                           \
        .signature = text,                                                     \
        .dtypes = masks,                                                       \
        .dtype_count = 1,                                                      \
        .flags = HOB_ENTRY_IN_PLACE,                                           \
        .execute = execute_##name,                                             \
    },
static const struct hob_entry entries[] = {
    ACTIVATIONS
#undef X
#undef ACTIVATIONS
    {
        .op = "prelu",
        .signature = "(x: Float, slope: Float) -> x",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = prelu,
    },
    {
        .op = "glu",
        .signature = "(x: Float, dim: i64 = -1) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = glu,
    },
    {
        .op = "activation_backward",
        .signature =
            "(x: Float, grad: Float, kind: enum(silu, mish, softplus, "
            "log_sigmoid, softsign, leaky_relu, elu, celu, selu, hard_swish), "
            "alpha: f64 = 1) -> x",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = activation_backward,
    },
};

const struct flex_entries flex_activation_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

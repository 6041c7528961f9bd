/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include <hob/ops.h>

#include <math.h>

static const uint32_t num_num[] = {HOB_MASK_NUM, HOB_MASK_NUM};
static const uint32_t float_float[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT};
static const uint32_t float_1[] = {HOB_MASK_FLOAT};
static const uint32_t int_int[] = {HOB_MASK_INT, HOB_MASK_INT};
static const uint32_t bool_bool[] = {HOB_MASK_BOOL, HOB_MASK_BOOL};
static const uint32_t any_any[] = {HOB_MASK_ANY, HOB_MASK_ANY};
static const uint32_t any_1[] = {HOB_MASK_ANY};
static const uint32_t any_bool[] = {HOB_MASK_ANY, HOB_MASK_BOOL};
static const uint32_t bool_any_any[] = {HOB_MASK_BOOL, HOB_MASK_ANY,
                                        HOB_MASK_ANY};

#define UNARY_NUM "(x: Num) -> x"
#define UNARY_FLOAT "(x: Float) -> x"
#define BINARY_NUM "(lhs: Num, rhs: Num) -> lhs"
#define BINARY_FLOAT "(lhs: Float, rhs: Float) -> lhs"
#define BINARY_INT "(lhs: Int, rhs: Int) -> lhs"
#define SCALAR_NUM "(x: Num, scalar: scalar) -> x"
#define SCALAR_INT "(x: Int, scalar: scalar) -> x"
#define COMPARE_ANY "(lhs: Any, rhs: Any) -> Bool"
#define COMPARE_NUM "(lhs: Num, rhs: Num) -> Bool"
#define COMPARE_SCALAR "(x: Num, scalar: scalar) -> Bool"

#define PLAIN(function)                                                        \
    {                                                                          \
        function, CUBE_CHECK_NONE, 0, NULL                                     \
    }
#define MATHS(function)                                                        \
    {                                                                          \
        function, CUBE_CHECK_NONE, 1, NULL                                     \
    }
#define CHECKED(function, check)                                               \
    {                                                                          \
        function, check, 1, NULL                                               \
    }
#define HALVES(function)                                                       \
    {                                                                          \
        function, CUBE_CHECK_NONE, 1, function "_half"                         \
    }

/* ---- drivers ---- */

/* The first COUNT arguments, all tensors. */
static hob_status run_views(struct cube_device *device, struct hob_call *call,
                            const struct cube_map *map, uint32_t count)
{
    struct cube_operand operands[3];

    for (uint32_t i = 0; i < count; i++)
        operands[i] = cube_operand_view(hob_arg_view(call, i));
    return cube_map_run(device, call, map, hob_ret_view(call, 0), operands,
                        count);
}

static hob_status run_unary(struct cube_device *device, struct hob_call *call,
                            const struct cube_map *map)
{
    return run_views(device, call, map, 1);
}

static hob_status run_binary(struct cube_device *device, struct hob_call *call,
                             const struct cube_map *map)
{
    return run_views(device, call, map, 2);
}

/* A tensor and a scalar, in this order. */
static hob_status run_scalar(struct cube_device *device, struct hob_call *call,
                             const struct cube_map *map)
{
    const struct cube_operand operands[] = {
        cube_operand_view(hob_arg_view(call, 0)),
        cube_operand_number(call->args[1])};

    return cube_map_run(device, call, map, hob_ret_view(call, 0), operands, 2);
}

static double number_of(const hob_value *value)
{
    return value->tag == HOB_TAG_F64   ? value->u.f64
           : value->tag == HOB_TAG_U64 ? (double)value->u.u64
                                       : (double)value->u.i64;
}

enum cube_power cube_power_of(const hob_value *value, uint32_t dtype)
{
    const double exponent = number_of(value);

    if (!(HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT))
        return CUBE_POWER_ANY;
    return exponent == 2    ? CUBE_POWER_SQUARE
           : exponent == -1 ? CUBE_POWER_RECIP
           : exponent == -2 ? CUBE_POWER_RECIP_SQUARE
                            : CUBE_POWER_ANY;
}

static hob_status run_pow_scalar(struct cube_device *device,
                                 struct hob_call *call,
                                 const struct cube_map *map)
{
    static const struct cube_map powers[] = {
        [CUBE_POWER_SQUARE] = PLAIN("map_square"),
        [CUBE_POWER_RECIP] = MATHS("map_recip"),
        [CUBE_POWER_RECIP_SQUARE] = MATHS("map_recip_square")};
    const enum cube_power power =
        cube_power_of(&call->args[1], hob_arg_view(call, 0)->dtype);

    return power == CUBE_POWER_ANY ? run_scalar(device, call, map)
                                   : run_unary(device, call, &powers[power]);
}

hob_value cube_open_bound(uint32_t dtype, int is_upper)
{
    const uint32_t bits = hob_dtype_size(dtype) * 8;
    const int64_t most = (int64_t)(UINT64_MAX >> (65 - bits));

    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT)
        return hob_f64(is_upper ? INFINITY : -INFINITY);
    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_UNSIGNED)
        return hob_u64(is_upper ? UINT64_MAX : 0);
    return hob_i64(is_upper ? most : -most - 1);
}

static hob_status run_clamp(struct cube_device *device, struct hob_call *call,
                            const struct cube_map *map)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct cube_operand operands[3];

    operands[0] = cube_operand_view(x);
    for (uint32_t i = 1; i < 3; i++)
        operands[i] = cube_operand_number(
            cube_arg_absent(call, i) ? cube_open_bound(x->dtype, i == 2)
                                     : call->args[i]);
    return cube_map_run(device, call, map, hob_ret_view(call, 0), operands, 3);
}

static hob_status run_where(struct cube_device *device, struct hob_call *call,
                            const struct cube_map *map)
{
    const struct cube_operand operands[] = {
        cube_operand_view(hob_arg_view(call, 2)),
        cube_operand_view(hob_arg_view(call, 1)),
        cube_operand_view(hob_arg_view(call, 0))};

    return cube_map_run(device, call, map, hob_ret_view(call, 0), operands, 3);
}

static hob_status run_mask_fill(struct cube_device *device,
                                struct hob_call *call,
                                const struct cube_map *map)
{
    const struct cube_operand operands[] = {
        cube_operand_view(hob_arg_view(call, 0)),
        cube_operand_number(call->args[2]),
        cube_operand_view(hob_arg_view(call, 1))};

    return cube_map_run(device, call, map, hob_ret_view(call, 0), operands, 3);
}

/* x and the attributes behind it, as many as there are. */
static hob_status run_attributes(struct cube_device *device,
                                 struct hob_call *call,
                                 const struct cube_map *map)
{
    struct cube_operand operands[3];

    operands[0] = cube_operand_view(hob_arg_view(call, 0));
    for (uint32_t i = 1; i < call->arg_count; i++)
        operands[i] = cube_operand_wide(cube_arg_f64(call, i));
    return cube_map_run(device, call, map, hob_ret_view(call, 0), operands,
                        call->arg_count);
}

/* One slope, or one for each channel of x [n, c, ..]. */
static hob_status run_prelu(struct cube_device *device, struct hob_call *call,
                            const struct cube_map *map)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *slope = hob_arg_view(call, 1);
    struct hob_view wide = *slope;
    struct cube_operand operands[2];

    wide.rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++) {
        wide.shape[i] = i == 1 ? hob_view_count(slope) : 1;
        wide.strides[i] = slope->rank ? slope->strides[0] : 0;
    }
    operands[0] = cube_operand_view(x);
    operands[1] = cube_operand_view(&wide);
    return cube_map_run(device, call, map, hob_ret_view(call, 0), operands, 2);
}

/* The first half of x along dim times the sigmoid of the second. */
static hob_status run_glu(struct cube_device *device, struct hob_call *call,
                          const struct cube_map *map)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t dim = cube_dim(cube_arg_i64(call, 1), x->rank);
    struct hob_view halves[2] = {*x, *x};
    struct cube_operand operands[2];

    for (uint32_t i = 0; i < 2; i++) {
        halves[i].shape[dim] = out->shape[dim];
        operands[i] = cube_operand_view(&halves[i]);
    }
    halves[1].data = (char *)x->data + out->shape[dim] * x->strides[dim] *
                                           (int64_t)hob_dtype_size(x->dtype);
    return cube_map_run(device, call, map, out, operands, 2);
}

/* By kind, in the order of the op's enum. */
const struct cube_activation cube_activations[CUBE_ACTIVATIONS] = {
    {MATHS("map_silu_backward"), 2},     {MATHS("map_mish_backward"), 2},
    {MATHS("map_softplus_backward"), 3}, {MATHS("map_log_sigmoid_backward"), 2},
    {MATHS("map_softsign_backward"), 2}, {PLAIN("map_leaky_relu_backward"), 3},
    {MATHS("map_elu_backward"), 3},      {MATHS("map_celu_backward"), 3},
    {MATHS("map_selu_backward"), 2},     {MATHS("map_hard_swish_backward"), 2},
};

static hob_status run_activation_backward(struct cube_device *device,
                                          struct hob_call *call,
                                          const struct cube_map *map)
{
    const int64_t kind = cube_arg_i64(call, 2);
    const struct cube_operand operands[] = {
        cube_operand_view(hob_arg_view(call, 0)),
        cube_operand_view(hob_arg_view(call, 1)),
        cube_operand_wide(cube_arg_f64(call, 3))};

    (void)map;
    return cube_map_run(device, call, &cube_activations[kind].map,
                        hob_ret_view(call, 0), operands,
                        cube_activations[kind].count);
}

/* ---- entries ---- */

static hob_status (*const forms[])(struct cube_device *device,
                                   struct hob_call *call,
                                   const struct cube_map *map) = {
    [CUBE_FORM_UNARY] = run_unary,
    [CUBE_FORM_BINARY] = run_binary,
    [CUBE_FORM_SCALAR] = run_scalar,
    [CUBE_FORM_POW_SCALAR] = run_pow_scalar,
    [CUBE_FORM_CLAMP] = run_clamp,
    [CUBE_FORM_WHERE] = run_where,
    [CUBE_FORM_MASK_FILL] = run_mask_fill,
    [CUBE_FORM_ATTRIBUTES] = run_attributes,
    [CUBE_FORM_PRELU] = run_prelu,
    [CUBE_FORM_GLU] = run_glu,
    [CUBE_FORM_ACTIVATION_BACKWARD] = run_activation_backward,
};

/* An entry's execute has no place for the kernel's name, so each op gets a
 * trampoline; a hundred of them by hand would be a list kept in step by
 * hand. */
#define X(number, op, form, map, signature, masks)                             \
    static hob_status execute_##op(void *device, struct hob_call *call)        \
    {                                                                          \
        static const struct cube_map of_op = map;                              \
                                                                               \
        return forms[CUBE_FORM_##form](device, call, &of_op);                  \
    }
#include "elementwise.def"
#undef X

#define X(number, name, form, map, text, masks)                                \
    {                                                                          \
        .op = #name,                                                           \
        .signature = text,                                                     \
        .dtypes = masks,                                                       \
        .dtype_count = sizeof(masks) / sizeof(masks[0]),                       \
        .flags = HOB_ENTRY_IN_PLACE,                                           \
        .execute = execute_##name,                                             \
    },
static const struct hob_entry entries[] = {
#include "elementwise.def"
};
#undef X

const struct cube_entries cube_elementwise_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

/* ---- as steps of a fused kernel ---- */

#define X(number, name, form, map, text, masks)                                \
    {HOB_OP_##number, CUBE_FORM_##form, map, text, masks},
static const struct cube_map_op map_ops[] = {
#include "elementwise.def"
};
#undef X

const struct cube_map_op *cube_map_op_find(uint32_t op)
{
    for (size_t i = 0; i < sizeof(map_ops) / sizeof(map_ops[0]); i++)
        if (map_ops[i].op == op)
            return &map_ops[i];
    return NULL;
}

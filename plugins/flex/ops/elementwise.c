/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include <string.h>

/* ---- masks and signatures ---- */

static const uint32_t num_num[] = {HOB_MASK_NUM, HOB_MASK_NUM};
static const uint32_t float_float[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT};
static const uint32_t int_int[] = {HOB_MASK_INT, HOB_MASK_INT};
static const uint32_t bool_bool[] = {HOB_MASK_BOOL, HOB_MASK_BOOL};
static const uint32_t any_any[] = {HOB_MASK_ANY, HOB_MASK_ANY};
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

/* ---- drivers ---- */

static struct hob_view *view_at(const struct hob_call *call, uint32_t index)
{
    return hob_tensor_view(call->args[index].u.tensor);
}

static int same_shape(const struct hob_view *a, const struct hob_view *b)
{
    if (a->rank != b->rank)
        return 0;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return 0;
    return 1;
}

/* Two tensors. Small dense ones of one shape go straight to the kernel: an
 * element must cost a few ns, and building loops costs more. */
static hob_status run_binary(struct flex_device *device, struct hob_call *call,
                             enum flex_map map)
{
    const struct hob_view *a = view_at(call, 0);
    const struct hob_view *b = view_at(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    flex_map_fn fn = device->kernels->map[map][a->dtype];
    struct flex_operand operands[2];

    if (fn && (a->flags & b->flags & out->flags & HOB_VIEW_CONTIGUOUS) &&
        same_shape(a, b)) {
        int64_t count = hob_view_count(out);

        if (count <= FLEX_BLOCK &&
            fn(out->data, a->data, b->data, NULL, count) < 0)
            return HOB_OK;
    }
    operands[0].view = a;
    operands[1].view = b;
    return flex_map_run(device, call, map, a->dtype, out, operands, 2);
}

static hob_status run_unary(struct flex_device *device, struct hob_call *call,
                            enum flex_map map)
{
    const struct hob_view *a = view_at(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    flex_map_fn fn = device->kernels->map[map][a->dtype];
    struct flex_operand operand;

    if (fn && (a->flags & out->flags & HOB_VIEW_CONTIGUOUS)) {
        int64_t count = hob_view_count(out);

        if (count <= FLEX_BLOCK) {
            fn(out->data, a->data, NULL, NULL, count);
            return HOB_OK;
        }
    }
    operand.view = a;
    return flex_map_run(device, call, map, a->dtype, out, &operand, 1);
}

/* A tensor and a scalar, in this order. */
static hob_status run_scalar(struct flex_device *device, struct hob_call *call,
                             enum flex_map map)
{
    const struct hob_view *a = view_at(call, 0);
    struct flex_operand operands[2];

    operands[0].view = a;
    flex_operand_scalar(&operands[1], &call->args[1], a->dtype);
    return flex_map_run(device, call, map, a->dtype, hob_ret_view(call, 0),
                        operands, 2);
}

static hob_status run_scalar_first(struct flex_device *device,
                                   struct hob_call *call, enum flex_map map)
{
    const struct hob_view *a = view_at(call, 0);
    struct flex_operand operands[2];

    flex_operand_scalar(&operands[0], &call->args[1], a->dtype);
    operands[1].view = a;
    return flex_map_run(device, call, map, a->dtype, hob_ret_view(call, 0),
                        operands, 2);
}

enum flex_map flex_power_map(double exponent)
{
    return exponent == 2    ? FLEX_MAP_SQUARE
           : exponent == -1 ? FLEX_MAP_RECIP
           : exponent == -2 ? FLEX_MAP_RECIP_SQUARE
                            : FLEX_MAP_POW;
}

static hob_status run_pow_scalar(struct flex_device *device,
                                 struct hob_call *call, enum flex_map map)
{
    const struct hob_view *a = view_at(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    double exponent = flex_scalar_f64(&call->args[1]);
    int is_float = (HOB_DTYPE_BIT(a->dtype) & HOB_MASK_FLOAT) != 0;
    struct flex_operand operand = {.view = a};

    if (is_float)
        map = flex_power_map(exponent);
    if (map == FLEX_MAP_POW)
        return run_scalar(device, call, map);
    return flex_map_run(device, call, map, a->dtype, out, &operand, 1);
}

static hob_status run_clamp(struct flex_device *device, struct hob_call *call,
                            enum flex_map map)
{
    const struct hob_view *a = view_at(call, 0);
    struct flex_operand operands[3];

    operands[0].view = a;
    for (uint32_t i = 1; i < 3; i++) {
        const hob_value bound = flex_arg_absent(call, i)
                                    ? flex_scalar_bound(a->dtype, i == 2)
                                    : call->args[i];

        flex_operand_scalar(&operands[i], &bound, a->dtype);
    }
    return flex_map_run(device, call, map, a->dtype, hob_ret_view(call, 0),
                        operands, 3);
}

static hob_status run_where(struct flex_device *device, struct hob_call *call,
                            enum flex_map map)
{
    struct flex_operand operands[3];

    for (uint32_t i = 0; i < 3; i++)
        operands[i].view = view_at(call, i);
    return flex_map_run(device, call, map, operands[1].view->dtype,
                        hob_ret_view(call, 0), operands, 3);
}

static hob_status run_mask_fill(struct flex_device *device,
                                struct hob_call *call, enum flex_map map)
{
    const struct hob_view *x = view_at(call, 0);
    struct flex_operand operands[3];

    operands[0].view = view_at(call, 1);
    flex_operand_scalar(&operands[1], &call->args[2], x->dtype);
    operands[2].view = x;
    return flex_map_run(device, call, map, x->dtype, hob_ret_view(call, 0),
                        operands, 3);
}

/* ---- entries ---- */

/* An entry's execute has no place for the kernel's name, so each op gets a
 * trampoline; eighty of them by hand would be a list kept in step by hand. */
#define X(op, driver, map, signature, masks)                                   \
    static hob_status execute_##op(void *device, struct hob_call *call)        \
    {                                                                          \
        return driver(device, call, FLEX_MAP_##map);                           \
    }
#include "elementwise.def"
#undef X

#define X(name, driver, map, text, masks)                                      \
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

const struct flex_entries flex_elementwise_entries = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
};

/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - one elementwise launch, for the ops of several files. */
#ifndef CUBE_OPS_MAP_H
#define CUBE_OPS_MAP_H

#include "../cube.h"

/* An operand: a tensor, broadcast to the result, or else a number. */
struct cube_operand {
    const struct hob_view *view;
    hob_value number;
    uint32_t is_wide; /* the number is not rounded to the tensors' dtype */
};

/* Integers that a function has no result for. */
enum cube_check { CUBE_CHECK_NONE, CUBE_CHECK_DIVISOR, CUBE_CHECK_POWER };

/* A function of map.cube. */
struct cube_map {
    const char *function; /* as in "map_add" */
    uint32_t check;       /* enum cube_check */
    uint32_t has_maths;   /* floats need CUBE_MATHS */
    const char *half;     /* the function for f16 and bf16; NULL: the same */
};

/* MAP's function for elements of DTYPE. */
static inline const char *cube_map_function(const struct cube_map *map,
                                            uint32_t dtype)
{
    const uint32_t bit = HOB_DTYPE_BIT(dtype);
    const uint32_t halves =
        HOB_DTYPE_BIT(HOB_DTYPE_F16) | HOB_DTYPE_BIT(HOB_DTYPE_BF16);

    return map->half && bit & halves ? map->half : map->function;
}

/* OUT = MAP(operands); the first of the COUNT, at most 3, is a tensor. */
hob_status cube_map_run(struct cube_device *device, struct hob_call *call,
                        const struct cube_map *map, const struct hob_view *out,
                        const struct cube_operand *operands, uint32_t count);

/* ---- what ops of elementwise.def are, for kernels that do several ---- */

/* How an op's arguments become operands of its function. */
enum cube_form {
    CUBE_FORM_UNARY,
    CUBE_FORM_BINARY,
    CUBE_FORM_SCALAR, /* a tensor, a scalar of its dtype */
    CUBE_FORM_POW_SCALAR,
    CUBE_FORM_CLAMP, /* a tensor, two bounds */
    CUBE_FORM_WHERE, /* the condition comes last */
    CUBE_FORM_MASK_FILL,
    CUBE_FORM_ATTRIBUTES, /* a tensor, numbers that are not rounded to it */
    CUBE_FORM_PRELU,
    CUBE_FORM_GLU,
    CUBE_FORM_ACTIVATION_BACKWARD
};

struct cube_map_op {
    uint16_t op;   /* HOB_OP_... */
    uint16_t form; /* enum cube_form */
    struct cube_map map;
    const char *signature;
    const uint32_t *masks; /* one a tensor, as in struct hob_entry */
};

/* NULL: OP is not one of them. */
const struct cube_map_op *cube_map_op_find(uint32_t op);

/* The kinds of activation_backward, and the operands of each. */
enum { CUBE_ACTIVATIONS = 10 };
struct cube_activation {
    struct cube_map map;
    uint32_t count;
};
extern const struct cube_activation cube_activations[CUBE_ACTIVATIONS];

/* The exponents that are a product or a quotient are exactly that: 2, -1 and
 * -2 for floats. 0 and 1 are exact in pow itself, and so is every integer. */
enum cube_power {
    CUBE_POWER_ANY,
    CUBE_POWER_SQUARE,
    CUBE_POWER_RECIP,
    CUBE_POWER_RECIP_SQUARE
};
enum cube_power cube_power_of(const hob_value *exponent, uint32_t dtype);

/* The bound that never acts: infinite, or the end of an integer's range. */
hob_value cube_open_bound(uint32_t dtype, int is_upper);

static inline struct cube_operand cube_operand_view(const struct hob_view *view)
{
    struct cube_operand operand = {view, hob_none(), 0};

    return operand;
}

static inline struct cube_operand cube_operand_number(hob_value number)
{
    struct cube_operand operand = {NULL, number, 0};

    return operand;
}

/* An attribute that is computed with as it is. */
static inline struct cube_operand cube_operand_wide(double number)
{
    struct cube_operand operand = {NULL, hob_f64(number), 1};

    return operand;
}

#endif

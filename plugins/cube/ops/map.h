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
};

/* OUT = MAP(operands); the first of the COUNT, at most 3, is a tensor. */
hob_status cube_map_run(struct cube_device *device, struct hob_call *call,
                        const struct cube_map *map, const struct hob_view *out,
                        const struct cube_operand *operands, uint32_t count);

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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - running an elementwise kernel over views.
 */
#ifndef FLEX_MAP_H
#define FLEX_MAP_H

#include "flex.h"

/* One operand: a view, or a scalar for all elements. */
struct flex_operand {
    const struct hob_view *view; /* NULL for a scalar */
    uint64_t scalar;             /* one element of the kernel's dtype */
    int is_wide;                 /* of f16 and bf16 the scalar is an f32 */
};

/*
 * OUT = map(operands), COUNT of them, all broadcast to OUT's shape. Kernels
 * of DTYPE; f16 and bf16 are computed in f32. Fails with HOB_ERR_RANGE where
 * an integer is divided by zero, naming the element.
 */
hob_status flex_map_run(struct flex_device *device, struct hob_call *call,
                        enum flex_map map, uint32_t dtype,
                        const struct hob_view *out,
                        const struct flex_operand *operands, uint32_t count);

/* A scalar of DTYPE as an operand. */
void flex_operand_scalar(struct flex_operand *operand, const hob_value *scalar,
                         uint32_t dtype);

/* The same, but an f32 where DTYPE is computed in f32: not rounded to it. */
void flex_operand_wide(struct flex_operand *operand, double scalar,
                       uint32_t dtype);

/* The kernel of floats to the power EXPONENT: powers that are a product or a
 * quotient are exactly that. 0 and 1 are exact in pow itself. */
enum flex_map flex_power_map(double exponent);

/* The kernels of activation_backward by kind, in the order of the op's enum. */
enum { FLEX_BACKWARD_COUNT = 10 };
extern const enum flex_map flex_backward_maps[FLEX_BACKWARD_COUNT];

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a group as a program and the operands of one run of it.
 */
#ifndef HOB_FUSION_PROGRAM_H
#define HOB_FUSION_PROGRAM_H

#include "plan.h"

struct fu_operand {
    hob_tensor *tensor; /* borrowed of an input; of an output our reference */
    int64_t start;      /* element that they begin with */
    int64_t strides[HOB_MAX_RANK]; /* over the group's space */
};

struct fu_program {
    struct hob_fused_program program;
    struct hob_fused_run run;
    struct hob_fused_input inputs[HOB_FUSED_MAX_INPUTS];
    struct hob_fused_step steps[HOB_FUSED_MAX_STEPS];
    uint8_t outputs[HOB_FUSED_MAX_OUTPUTS];
    hob_value scalars[HOB_FUSED_MAX_SCALARS];
    struct fu_operand ins[HOB_FUSED_MAX_INPUTS];
    struct fu_operand outs[HOB_FUSED_MAX_OUTPUTS];
    struct fu_item *stored[HOB_FUSED_MAX_OUTPUTS]; /* whose value it is */
    struct hob_fused_operand run_ins[HOB_FUSED_MAX_INPUTS];
    struct hob_fused_operand run_outs[HOB_FUSED_MAX_OUTPUTS];
    const struct fu_node *constants[HOB_FUSED_MAX_INPUTS];
    const struct fu_item *product; /* that the run begins with; or NULL */
    struct hob_view product_view;  /* as it is to lie */
    char product_name[160];        /* the kernel's after the product's */
    uint32_t in_place;             /* outputs that lie over an input */
    uint64_t read_bytes, written_bytes, saved_bytes;
};

/*
 * Make the program of group INDEX, its inputs in SCOPE where they are
 * constants. Nonzero if it is too large for one, or without memory.
 */
int fu_program_make(const struct fu_window *window, uint32_t index,
                    hob_scope *scope, struct fu_program *out);

/* Add the steps of ITEM, a body, whose node's inputs are in registers INPUTS.
 * Registers of steps are numbers from 0 with MARK. Nonzero if there is no room.
 * (body.c) */
int fu_add_body(struct fu_program *program, const struct fu_item *item,
                const uint8_t *inputs, uint8_t mark);

/* ---- memory.c ---- */

/* Allocate the outputs: over inputs where those are not needed any more. */
int fu_program_allocate(const struct fu_window *window, uint32_t index,
                        struct fu_program *program);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a group as a program, and a run of it.
 *
 * What follows from the plan and from how the operands lie stays with the
 * group's window: a run of the same again looks whether they lie as they did,
 * and fills in where they are, and the numbers.
 */
#ifndef HOB_FUSION_PROGRAM_H
#define HOB_FUSION_PROGRAM_H

#include "plan.h"

struct fu_operand {
    hob_tensor *tensor; /* borrowed of an input; of an output our reference */
    int64_t start;      /* element that they begin with */
};

/* An input of a member that is made elsewhere. */
struct fu_read {
    uint16_t item;
    uint8_t input;
    uint8_t reg;     /* HOB_FUSED_NONE: the product reads it */
    uint16_t users;  /* how many of the group's reads are of the same value */
    uint16_t layout; /* where its rank and strides are among the LAYOUTS */
};

enum { FU_MOST_READS = 256 };

static inline const struct fu_input *
fu_read_input(const struct fu_window *window, const struct fu_read *read)
{
    return &window->items[read->item].node->inputs[read->input];
}

/* Where a number comes from. */
struct fu_number {
    uint16_t item;
    uint16_t arg; /* as fu_number_of() has it */
};

struct fu_program {
    struct hob_fused_program program;
    struct hob_fused_run run;
    struct hob_fused_input inputs[HOB_FUSED_MAX_INPUTS];
    struct hob_fused_step steps[HOB_FUSED_MAX_STEPS];
    uint8_t outputs[HOB_FUSED_MAX_OUTPUTS];
    hob_value scalars[HOB_FUSED_MAX_SCALARS];
    struct fu_number numbers[HOB_FUSED_MAX_SCALARS]; /* what SCALARS are */
    struct fu_operand ins[HOB_FUSED_MAX_INPUTS];
    struct fu_operand outs[HOB_FUSED_MAX_OUTPUTS];
    const struct fu_item *stored[HOB_FUSED_MAX_OUTPUTS]; /* whose value it is */
    struct hob_fused_operand run_ins[HOB_FUSED_MAX_INPUTS];
    struct hob_fused_operand run_outs[HOB_FUSED_MAX_OUTPUTS];
    const struct fu_item *constants[HOB_FUSED_MAX_INPUTS];
    struct fu_read reads[FU_MOST_READS];
    uint32_t read_count;
    uint32_t op_count;                       /* of the members */
    uint32_t may_lie[HOB_FUSED_MAX_OUTPUTS]; /* over these inputs, by bits */
    const struct fu_item *product; /* that the run begins with; or NULL */
    struct hob_view product_view;  /* as it is to lie */
    int under;                     /* the output that it lies under, or -1 */
    uint32_t declined; /* so often in a row it was not finished with this */
    uint32_t in_place; /* outputs that lie over an input */
    uint64_t read_bytes, written_bytes, saved_bytes;
    struct fu_kernel *kernel; /* in use; NULL: the rest is not worth anything */
    int64_t *layouts;         /* of READS: a rank, and strides */
    size_t layout_room;
    char product_name[160]; /* the kernel's after the product's */
};

/*
 * Make the program of group INDEX, its inputs in SCOPE where they are
 * constants: with its product if that IS_WHOLE, else that has run. Nonzero if
 * it is too large for one, or without memory.
 */
int fu_program_make(const struct fu_window *window, uint32_t index,
                    int is_whole, hob_scope *scope, struct fu_program *out);

/* The tensor of the number that ITEM gives, in SCOPE; NULL: it failed. */
hob_tensor *fu_constant_make(const struct fu_layer *layer,
                             const struct fu_item *item, hob_scope *scope);

/* Number ARG of NODE: its argument, or from HOB_MAX_PARAMS on what its body
 * makes of those. (body.c) */
hob_value fu_number_of(const struct fu_node *node, uint32_t arg);
/* Add that to the numbers. Nonzero if there is no room. */
int fu_add_number(struct fu_program *program, const struct fu_node *node,
                  uint32_t arg);

/* Add the steps of ITEM, a body, whose node's inputs are in registers INPUTS.
 * Registers of steps are numbers from 0 with MARK. Nonzero if there is no room.
 * (body.c) */
int fu_add_body(struct fu_program *program, const struct fu_item *item,
                const uint8_t *inputs, uint8_t mark);

/* ---- memory.c ---- */

/* Choose over which inputs the outputs may lie, as far as that follows from how
 * they lie. Nonzero if there is no place for the product. */
int fu_program_lay(const struct fu_window *window, struct fu_program *program);

/* Allocate the outputs: over inputs where those are not needed any more. */
int fu_program_allocate(const struct fu_window *window,
                        struct fu_program *program);

/* ---- lasting.c ---- */

/* The program of group INDEX for the tensors that its members read now, as for
 * fu_program_make(), with its kernel. It is the window's; NULL: there is none.
 */
struct fu_program *fu_program_get(struct fu_window *window, uint32_t index,
                                  int is_whole, hob_scope *scope);

#endif

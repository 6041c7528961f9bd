/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_plan.h - what the makers of a plan share.
 */
#ifndef FLEX_FUSED_PLAN_H
#define FLEX_FUSED_PLAN_H

#include "fused.h"

/* A set of steps that has INDEX alone. */
static inline uint64_t fused_bit(uint32_t index)
{
    return UINT64_C(1) << index;
}

struct builder {
    struct fused_plan *plan;
    const struct flex_kernels *kernels;
    const struct hob_fused_program *program;
    uint32_t flags;
    uint32_t passes;
    uint64_t live;    /* steps, by bit: that an output depends on */
    uint64_t kept;    /* that a later pass needs */
    uint64_t chained; /* that a chain stores and nothing reads back */
    uint64_t needed[HOB_FUSED_MAX_STEPS + 1];   /* FULL steps of each pass */
    uint8_t level[FUSED_REGISTERS];             /* of each register */
    uint8_t output_pass[HOB_FUSED_MAX_OUTPUTS]; /* FUSED_NO_PASS: a ROW one */
    uint16_t expanded[FUSED_REGISTERS];         /* values, or none */
    uint16_t filled[FUSED_CELLS], single[FUSED_CELLS];
    int is_full; /* more instructions than there is room for */
};

static inline const struct hob_fused_step *
fused_step_at(const struct builder *b, uint32_t index)
{
    return hob_fused_step_at(b->program, index);
}

/* Registers below this are inputs. */
static inline uint32_t fused_inputs_of(const struct builder *b)
{
    return b->program->input_count;
}

static inline int fused_is_along(const struct builder *b, uint32_t s)
{
    return fused_op_find(fused_step_at(b, s)->op)->form == FUSED_ALONG;
}

int fused_is_row(const struct builder *b, uint32_t reg);
uint32_t fused_reg_dtype(const struct builder *b, uint32_t reg);

/* Whether step S is a reduction over something of pass P. */
int fused_is_fold_of(const struct builder *b, uint32_t s, uint32_t p);

/* The dtype that STEP's kernel is for. */
static inline uint32_t fused_operand_dtype(const struct builder *b,
                                           const struct hob_fused_step *step)
{
    const struct fused_op *op = fused_op_find(step->op);

    return fused_reg_dtype(b, step->args[op->form == FUSED_WHERE ? 1 : 0]);
}

/* ROW register REG for each element; scalar SCALAR of the run in DTYPE, for
 * each element or once. */
uint16_t fused_value_expanded(struct builder *b, uint32_t reg);
uint16_t fused_value_scalar(struct builder *b, uint32_t scalar, uint32_t dtype,
                            uint32_t bound, int is_filled);

/* fused_emit.c */
struct fused_instruction *fused_emit(struct builder *b, uint32_t kind);
/* The inputs that FULL steps of pass P with numbers above AFTER read; those of
 * folds too. */
uint16_t fused_inputs_read(const struct builder *b, uint32_t p, int after);
/* All instructions of pass P. */
void fused_emit_pass(struct builder *b, uint32_t p);

/* fused_chain.c: emit the chain that begins at step S of pass P, if there is
 * one worth it; the number of steps that it has gone over. */
uint32_t fused_chain(struct builder *b, uint32_t s, uint32_t p);

/* fused_slots.c: give all values their places. */
void fused_place(struct builder *b);

#endif

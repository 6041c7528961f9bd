/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - what ops are as steps: their functions and their numbers. */
#ifndef CUBE_FUSE_STEPS_H
#define CUBE_FUSE_STEPS_H

#include "../ops/fold.h"
#include "../ops/map.h"
#include "plan.h"

/* A reduction: what is folded, and in which type. */
struct fuse_fold {
    uint32_t kind;    /* enum cube_fold_kind */
    uint32_t is_mean; /* the sum by the number of elements */
};

/* Nonzero, and *OUT, if OP is one that reductions are of. */
int fuse_fold_find(uint32_t op, struct fuse_fold *out);
/* The operand of STEP, of FORM, that its function's type is that of. */
uint32_t fuse_main_arg(enum cube_form form);
/* The function of STEP, as map.cube has it. */
const struct cube_map *fuse_function(const struct cube_map_op *op,
                                     const struct hob_fused_step *step);
/* How many scalars a step of OP has. */
uint32_t fuse_scalars(const struct cube_map_op *op);
/* Whether MAP's results of f16 and bf16 operands are such without rounding. */
int fuse_is_exact(const struct cube_map *map);

#endif

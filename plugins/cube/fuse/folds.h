/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folds.h - reductions of a fused program as text: f<register> is what a lane
 * has folded so far, g<register> what a float's sum has rounded away.
 */
#ifndef CUBE_FUSE_FOLDS_H
#define CUBE_FUSE_FOLDS_H

#include "emit.h"
#include "steps.h"

struct fuse_reduction {
    struct fuse_fold fold;
    enum cube_type type; /* that it is accumulated in */
    const char *name;    /* of the type */
    uint32_t reg, arg;   /* its register, and its operand's */
    uint32_t dtype;      /* of the operand */
    int is_float_sum;
};

/* Step INDEX as a reduction; 0 if it is none, or not needed. */
int fuse_reduction_get(const struct fuse_emitter *emitter, uint32_t index,
                       struct fuse_reduction *out);

/* The functions of lanes for each kind and type that there is. */
void fuse_emit_fold_functions(struct fuse_emitter *emitter);
/* Before the loop, before a vector, for each element, after the vector, and
 * after the loop: then the lanes' folds become the value of the step. A vector's
 * sum is one of halves; only what it adds to the rest keeps what is rounded. */
void fuse_emit_fold_begin(struct fuse_emitter *emitter,
                          const struct fuse_reduction *one);
void fuse_emit_vector_begin(struct fuse_emitter *emitter,
                            const struct fuse_reduction *one);
void fuse_emit_fold(struct fuse_emitter *emitter,
                    const struct fuse_reduction *one);
void fuse_emit_vector_end(struct fuse_emitter *emitter,
                          const struct fuse_reduction *one);
void fuse_emit_fold_end(struct fuse_emitter *emitter,
                        const struct fuse_reduction *one);

#endif

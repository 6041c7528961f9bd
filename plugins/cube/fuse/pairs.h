/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h - walks over f16 or bf16 alone on CUDA, two elements at a time in a
 * word: r0, x0 and so on are uint. Where an op is not one of a pair it is done
 * for each half.
 */
#ifndef CUBE_FUSE_PAIRS_H
#define CUBE_FUSE_PAIRS_H

#include "emit.h"

/* Whether a walk of PLAN for CLASS goes by pairs. */
int fuse_is_paired(const struct fuse_plan *plan,
                   const struct fuse_class *class);

/* What pairs are computed with, and pair_chain(). */
void fuse_emit_pair_chain(struct fuse_emitter *emitter);
/* The vector of input I, and of output I, at element i: x<I> and y<I>. */
void fuse_emit_pair_load(struct fuse_emitter *emitter, uint32_t i);
void fuse_emit_pair_store(struct fuse_emitter *emitter, uint32_t i);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quick.h - walks whose steps round to bf16 by sums in place of integers
 * (quick.cube), where a device has nothing of its own for that. A vector with a
 * value for which they are wrong is computed once more, by chain().
 */
#ifndef CUBE_FUSE_QUICK_H
#define CUBE_FUSE_QUICK_H

#include "emit.h"

/* Whether a walk of PLAN for CLASS goes that way. */
int fuse_is_quick(const struct fuse_plan *plan, const struct fuse_class *class,
                  const struct cube_limits *limits);

/* Whether step INDEX rounds by a sum. */
int fuse_rounds_quickly(const struct fuse_plan *plan, uint32_t index);

/* At the beginning of quick_chain(): are inputs such that sums do? */
void fuse_emit_quick_inputs(struct fuse_emitter *emitter);
/* Output I, y<I>, of bf16 to where its vector lies: a dense one or, with a
 * SLOT, one along rows. */
void fuse_emit_quick_store(struct fuse_emitter *emitter, uint32_t i);

#endif

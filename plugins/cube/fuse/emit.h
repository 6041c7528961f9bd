/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h - a fused program as a kernel in the cube dialect.
 *
 * Values are variables r0, r1 and so on, named after their registers; buffers
 * are in0 .. and out0 ..; the numbers of a run are arrays by type, f32s[..].
 */
#ifndef CUBE_FUSE_EMIT_H
#define CUBE_FUSE_EMIT_H

#include "../text.h"
#include "layout.h"

struct fuse_emitter {
    struct cube_text text;
    const struct fuse_plan *plan;
    const struct fuse_class *class;
    const struct cube_limits *limits;
    int is_paired; /* pairs.h */
    int is_quick;  /* quick.h; of chain(), 0 */
};

/* The text of the kernel, which the caller frees with free(); NULL without
 * memory. */
char *fuse_emit(const struct fuse_plan *plan, const struct fuse_class *class,
                const struct cube_device *device);

/* ---- for walk.c and passes.c ---- */

void fuse_emit_walk(struct fuse_emitter *emitter);
void fuse_emit_rows(struct fuse_emitter *emitter);

/* Step INDEX, which is no reduction, as the declaration of its value. */
void fuse_emit_step(struct fuse_emitter *emitter, uint32_t index,
                    const char *indent);
/* What it computes, not rounded. */
void fuse_emit_expression(struct fuse_emitter *emitter, uint32_t index);
/* Number NTH of step INDEX as an element of its array. */
void fuse_number_name(const struct fuse_plan *plan, uint32_t index,
                      uint32_t nth, char out[24]);
/* How VALUE of dtype DTYPE is rounded: "NAME(" or "(". */
const char *fuse_rounding(uint32_t dtype);
/* The type of register REG. */
const char *fuse_type(const struct fuse_emitter *emitter, uint32_t reg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* describe.h - a fused kernel's program and variant, and a run's job. */
#ifndef CUBE_FUSE_DESCRIBE_H
#define CUBE_FUSE_DESCRIBE_H

#include "layout.h"

/* PLAN's PROGRAM, but for its text, and VARIANT for CLASS. Returns 0 where that
 * is too large for a kernel. */
int fuse_describe(struct cube_program *program, struct cube_variant *variant,
                  const struct fuse_plan *plan, const struct fuse_class *class,
                  const struct cube_limits *limits);

/* Fill JOB, which is begun, in the order of that program. */
void fuse_fill(struct cube_job *job, const struct fuse_plan *plan,
               const struct fuse_layout *layout,
               const struct hob_fused_run *run);

/* The scalar of RUN that NUMBER is made from. */
static inline const hob_value *fuse_scalar(const struct fuse_number *number,
                                           const struct hob_fused_run *run)
{
    return &run->scalars[number->scalar];
}

#endif

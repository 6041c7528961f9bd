/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lowest.h - views of any layout as buffers, whose offsets count from the
 * lowest element on, so that none is negative.
 */
#ifndef CUBE_LOWEST_H
#define CUBE_LOWEST_H

#include "launch.h"

/* The offset of VIEW's first element from its lowest one; *OUT_COUNT, if it is
 * given, is how many elements there are from the lowest to the highest. */
int64_t cube_lowest(const struct hob_view *view, int64_t *out_count);
/* VIEW as the next buffer of JOB, the lowest element at offset 0. */
void cube_job_lowest(struct cube_job *job, const struct hob_view *view);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - several views as one loop over a space of places.
 *
 * A space has the shape of a result; operands are broadcast to it. Dimensions
 * of size 1 go, and neighbours that walk the memory of all operands as one
 * are merged. A program that takes one (CUBE_SPACES) has RANK as its first
 * constant and these parameters, in this order:
 *
 *     CUBE_SPACE_PARAMS, CUBE_OPERAND_PARAMS("a"), ...
 *
 * and its .cube file calls unravel(i, place) and OFFSET(a, place).
 */
#ifndef CUBE_SPACE_H
#define CUBE_SPACE_H

#include "launch.h"

enum { CUBE_MAX_OPERANDS = CUBE_MAX_BUFFERS };

struct cube_space {
    uint32_t rank;
    uint32_t operand_count;
    int64_t count;
    int64_t sizes[HOB_MAX_RANK];
    int64_t strides[CUBE_MAX_OPERANDS][HOB_MAX_RANK]; /* in elements */
    const void *data[CUBE_MAX_OPERANDS];              /* at place 0, 0, .. */
    uint32_t dtypes[CUBE_MAX_OPERANDS];
};

void cube_space_init(struct cube_space *space, uint32_t rank,
                     const int64_t *shape);
/* The next operand: VIEW broadcast to the space, sizes of 1 and missing
 * leading dimensions repeated. */
void cube_space_add(struct cube_space *space, const struct hob_view *view);
/* Drop and merge dimensions; after the last operand. */
void cube_space_collapse(struct cube_space *space);

/* Whether operand INDEX of a collapsed space is row-major without gaps, or one
 * element that repeats. */
int cube_space_is_dense(const struct cube_space *space, uint32_t index);
int cube_space_is_single(const struct cube_space *space, uint32_t index);

#define CUBE_SPACE_PARAMS                                                      \
    {"sizes", CUBE_INDEX, CUBE_LENGTH(0)},                                     \
        {"magics", CUBE_U32, CUBE_LENGTH(0)},                                  \
    {                                                                          \
        "shifts", CUBE_U32, CUBE_LENGTH(0)                                     \
    }
#define CUBE_OPERAND_PARAMS(name)                                              \
    {name "_base", CUBE_INDEX, 0},                                             \
    {                                                                          \
        name "_strides", CUBE_INDEX, CUBE_LENGTH(0)                            \
    }

/* The numbers of CUBE_SPACE_PARAMS. */
void cube_job_space(struct cube_job *job, const struct cube_space *space);
/* The offsets of operand INDEX's least and greatest element. */
void cube_space_reach(const struct cube_space *space, uint32_t index,
                      int64_t *out_low, int64_t *out_high);
/* Operand INDEX as the next buffer, the lowest element at offset 0. */
void cube_job_operand(struct cube_job *job, const struct cube_space *space,
                      uint32_t index);
/* The numbers of CUBE_OPERAND_PARAMS. */
void cube_job_strides(struct cube_job *job, const struct cube_space *space,
                      uint32_t index);

#endif

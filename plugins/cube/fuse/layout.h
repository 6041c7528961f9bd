/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - one run of a fused program: what its kernel's text depends on,
 * which is never a size, and the sizes.
 */
#ifndef CUBE_FUSE_LAYOUT_H
#define CUBE_FUSE_LAYOUT_H

#include "../space.h"
#include "plan.h"

/* How an operand is read and written. */
enum fuse_how {
    FUSE_UNUSED,
    FUSE_DENSE,  /* as the space lies, in vectors */
    FUSE_NARROW, /* the same, element by element: it is not aligned */
    FUSE_SINGLE, /* one element for all */
    FUSE_ALONG,  /* strided; a vector lies along the last dimension */
    FUSE_FIXED,  /* strided; one element for a vector, or for a row */
    FUSE_PLACED  /* strided; each element for itself */
};

enum { FUSE_GROUP = 256 };

/* Compared byte by byte. Operands are inputs, then outputs. */
struct fuse_class {
    uint8_t how[FUSE_OPERANDS];  /* enum fuse_how */
    uint8_t slot[FUSE_OPERANDS]; /* of offsets: operands that lie alike share
                                    one; of strided ones */
    uint8_t slots;
    uint8_t rank;     /* dimensions of strided operands */
    uint8_t outer;    /* of them, those that are places of rows */
    uint8_t wide;     /* elements of a vector */
    uint8_t is_wide;  /* INDEX has 64 bits */
    uint8_t is_along; /* neighbours of a group are in one row */
    uint8_t keep;     /* vectors of a row that a lane keeps; 0: it does not */
    uint8_t has_rest; /* elements after the last whole vector; not of rows */
    uint16_t lanes;   /* of a row */
    uint16_t group_size;
};

struct fuse_layout {
    struct fuse_class class;
    struct cube_space space; /* collapsed; rows: places, then elements */
    int64_t count;           /* elements, or rows */
    int64_t length;          /* of a row */
    int64_t groups;
};

/* RUN of PLAN. HOB_ERR_UNSUPPORTED where the ops one by one are faster. */
hob_status fuse_layout_init(struct fuse_layout *layout,
                            const struct fuse_plan *plan,
                            const struct cube_device *device,
                            const struct hob_fused_run *run);

/* An operand of PLAN: its dtype, and whether it is one a row. */
static inline uint32_t fuse_operand_register(const struct fuse_plan *plan,
                                             uint32_t operand)
{
    return operand < plan->program.input_count
               ? operand
               : plan->program.outputs[operand - plan->program.input_count];
}

static inline uint32_t fuse_operand_count(const struct fuse_plan *plan)
{
    return plan->program.input_count + (uint32_t)plan->program.output_count;
}

/* Whether OPERAND is read or written by vectors. */
static inline int fuse_is_vector(const struct fuse_class *class,
                                 uint32_t operand)
{
    return class->how[operand] == FUSE_DENSE ||
           class->how[operand] == FUSE_ALONG;
}

#endif

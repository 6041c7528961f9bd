/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - a fused program (hob/ext/fusion.h) as it is kept: copied, checked,
 * and when each of its values is computed.
 *
 * Registers are numbered as in the program, inputs first. A program without
 * reductions is one walk over the elements. One with them goes over a row in
 * *passes*: pass p computes what its reductions need, and what needs those
 * comes in later passes. A FULL value that more than one pass needs is *kept*
 * where a row fits the invocations of a group; else it is computed again.
 */
#ifndef CUBE_FUSE_PLAN_H
#define CUBE_FUSE_PLAN_H

#include "../dialect.h"

#include <hob/ext/fusion.h>

enum {
    FUSE_REGISTERS = HOB_FUSED_MAX_INPUTS + HOB_FUSED_MAX_STEPS,
    FUSE_OPERANDS = HOB_FUSED_MAX_INPUTS + HOB_FUSED_MAX_OUTPUTS,
    /* Scalars, and what is told about exponents besides. */
    FUSE_NUMBERS = 2 * HOB_FUSED_MAX_SCALARS,
    FUSE_NEVER = 0xff
};

_Static_assert((int)FUSE_OPERANDS <= (int)CUBE_MAX_BUFFERS,
               "each operand is a buffer");

/* The structure of a program; compared byte by byte. */
struct fuse_program {
    uint8_t rank, row_rank;
    uint8_t input_count, output_count;
    uint8_t step_count, scalar_count;
    uint8_t outputs[HOB_FUSED_MAX_OUTPUTS];
    struct hob_fused_input inputs[HOB_FUSED_MAX_INPUTS];
    struct hob_fused_step steps[HOB_FUSED_MAX_STEPS];
};

struct fuse_value {
    uint8_t dtype;
    uint8_t is_row;
    uint8_t level;  /* reductions that it waits for, one after the other */
    uint8_t pass;   /* that computes it, or loads it first; NEVER: not needed */
    uint8_t last;   /* the last pass that reads it */
    uint8_t output; /* its number as an output, or NEVER */
};

/* A number that steps take from the run. */
struct fuse_number {
    uint8_t step;
    uint8_t scalar; /* of the run */
    uint8_t type;   /* enum cube_type */
    uint8_t index;  /* among those of the type */
    uint8_t part;   /* enum fuse_part */
};

enum fuse_part {
    FUSE_ROUNDED, /* to the dtype of the step's operand */
    FUSE_AS_IS,
    FUSE_LOW, /* a bound, which may be absent */
    FUSE_HIGH,
    FUSE_POWER /* enum cube_power of an exponent */
};

struct fuse_plan {
    struct fuse_program program;
    struct fuse_value values[FUSE_REGISTERS];
    struct fuse_number numbers[FUSE_NUMBERS]; /* in the order of steps */
    uint32_t value_count;
    uint32_t number_count;
    uint32_t numbers_of[CUBE_INDEX]; /* by type */
    uint32_t pass_count;             /* of a program with rows */
    uint32_t kept;   /* most values that wait for a later pass at a time */
    uint32_t cost;   /* of an element, in plain operations */
    uint32_t flags;  /* enum cube_program_flags */
    uint32_t types;  /* a bit for each enum cube_type that functions take */
    uint32_t rounds; /* a bit for each dtype that steps round to */
};

/* Whether STEP may be part of a program on a device of LIMITS. */
int fuse_step_fits(const struct cube_limits *limits,
                   const struct hob_fused_step *step,
                   const uint8_t *arg_dtypes);

/*
 * PROGRAM as PLAN. HOB_ERR_UNSUPPORTED if a step does not fit, HOB_ERR_ARGUMENT
 * with *OUT_REASON, static text, if it is none.
 */
hob_status fuse_plan_init(struct fuse_plan *plan,
                          const struct cube_limits *limits,
                          const struct hob_fused_program *program,
                          const char **out_reason);

/* Step INDEX's register. */
static inline uint32_t fuse_register(const struct fuse_plan *plan,
                                     uint32_t index)
{
    return plan->program.input_count + index;
}

/* How many operands STEP has. */
static inline uint32_t fuse_arity(const struct hob_fused_step *step)
{
    uint32_t count = 0;

    while (count < 3 && step->args[count] != HOB_FUSED_NONE)
        count++;
    return count;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_case.h - programs for the interface "fused.compute" and what they must
 * give: the ops called one by one through the public API.
 *
 * A case is a program with its operands in memory. fused_case_random makes
 * one from a seed: any op with any operands that the backend supports, any
 * layout. The reference is computed on dense tensors of [rows, elements].
 */
#ifndef FUSED_CASE_H
#define FUSED_CASE_H

#include <hob/ext/fusion.h>
#include <hob/hob.h>

/* A device that offers the interface. */
struct fused_side {
    const struct hob_host *host;
    hob_device *device;
    const struct hob_fused_compute *fused;
    void *instance;
    hob_runtime *runtime; /* set: the device's memory is its own, and operands
                             are copied there and back */
};

struct fused_memory {
    char *block; /* owned; NULL: another operand's */
    char *first; /* as it was before the run, of an input */
    uint64_t bytes;
    uint64_t at; /* of the operand's data */
};

struct fused_case {
    struct hob_fused_program program;
    struct hob_fused_input inputs[HOB_FUSED_MAX_INPUTS];
    struct hob_fused_step steps[HOB_FUSED_MAX_STEPS];
    uint8_t outputs[HOB_FUSED_MAX_OUTPUTS];
    hob_value scalars[HOB_FUSED_MAX_SCALARS];
    int64_t shape[HOB_MAX_RANK];
    struct hob_fused_operand in[HOB_FUSED_MAX_INPUTS];
    struct hob_fused_operand out[HOB_FUSED_MAX_OUTPUTS];
    struct fused_memory in_memory[HOB_FUSED_MAX_INPUTS];
    struct fused_memory out_memory[HOB_FUSED_MAX_OUTPUTS];
    int64_t rows, n; /* [rows, n] is the space */
    uint64_t state;  /* of the generator */
    char text[4096]; /* the program, for messages */
};

/* What random programs look like. */
struct fused_wish {
    uint64_t seed;
    int steps_most;
    int is_large; /* some 100000 elements */
    int has_rows; /* reductions */
    int is_empty_row;
};

/* The side of DEVICE; its functions are NULL if it has none. */
struct fused_side fused_side_of(hob_scope *scope, hob_device *device);

void fused_case_begin(struct fused_case *c, uint64_t seed, uint32_t rank,
                      uint32_t row_rank, const int64_t *shape);
/* Append an input with random elements; LAYOUT: 0 dense, else random. */
uint32_t fused_case_input(struct fused_case *c, hob_dtype dtype, int is_row,
                          int layout);
/* Append a step of OP with registers A, B, C (or HOB_FUSED_NONE) and
 * SCALARS; returns its register. */
uint32_t fused_case_step(struct fused_case *c, uint32_t op, hob_dtype dtype,
                         uint32_t a, uint32_t b, uint32_t x, uint32_t variant,
                         const hob_value *scalars, uint32_t scalar_count);
/* Append a layer norm of X with vectors WEIGHT and BIAS as steps, in f32 where
 * X is of halves, and its result and both means as outputs. */
void fused_case_layer_norm(struct fused_case *c, uint32_t x, uint32_t weight,
                           uint32_t bias);
/* How many tensors op OP has that goes along rows; 0: it does not. */
uint32_t fused_case_along(uint32_t op);
/* Append output REG; LAYOUT as above, or over input OVER if that is not -1. */
void fused_case_output(struct fused_case *c, uint32_t reg, int layout,
                       int over);
void fused_case_random(struct fused_case *c, const struct fused_side *side,
                       const struct fused_wish *wish);
void fused_case_release(struct fused_case *c);

/* Run C on SIDE; outputs hold what is left there by then. */
hob_status fused_case_run(struct fused_case *c, const struct fused_side *side);
/* Compare the outputs of the last run with the ops one by one on SIDE's
 * device: bit by bit, but for sums and products of floats. */
void fused_case_check(struct fused_case *c, const struct fused_side *side,
                      hob_runtime *runtime);
/* All outputs' elements as bytes, one after the other; the caller frees them.
 */
char *fused_case_bytes(const struct fused_case *c, uint64_t *out_bytes);

#endif

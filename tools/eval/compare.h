/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - whether a run gave what its program expects.
 */
#ifndef TOOLS_EVAL_COMPARE_H
#define TOOLS_EVAL_COMPARE_H

#include "run.h"

/*
 * Check the outputs and gradients of RUN. Returns HOB_OK if they are as
 * PROGRAM says; else ERROR names the value, the element, what it is and what
 * it should be.
 */
HOB_MUST_CHECK hob_status compare_outputs(const struct program *program,
                                          const struct run *run,
                                          hob_error *error);

/*
 * Compare value A with value B element by element within TOLERANCE; NaN
 * equals NaN. NAME is for the message. Dtypes and shapes must be equal.
 */
HOB_MUST_CHECK hob_status compare_tensors(const char *name, hob_tensor *a,
                                          hob_tensor *b,
                                          const struct tolerance *tolerance,
                                          hob_error *error);

/* The widest of the gaps between two values that a tolerance does not allow. */
struct gap {
    int64_t differing; /* elements; 0: none; -1: dtypes or shapes are others */
    int64_t at;        /* flat position of the widest */
    double distance;   /* infinite where it cannot be told */
    char left[48];     /* the two elements, as JSON */
    char right[48];
};

/* Compare A and B as compare_tensors() does, but look at all elements. */
HOB_MUST_CHECK hob_status compare_widest(hob_tensor *a, hob_tensor *b,
                                         const struct tolerance *tolerance,
                                         struct gap *out_gap, hob_error *error);

/* A number as JSON; the words "nan", "inf" and "-inf" where JSON has none. */
cJSON *number_to_json(double number);

/* A tensor as JSON: {"dtype", "shape", "data"}; NULL and ERROR on failure. */
cJSON *tensor_to_json(hob_tensor *tensor, hob_error *error);

#endif

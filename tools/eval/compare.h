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

/* A tensor as JSON: {"dtype", "shape", "data"}; NULL and ERROR on failure. */
cJSON *tensor_to_json(hob_tensor *tensor, hob_error *error);

#endif

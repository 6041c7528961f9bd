/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bisect.h - the first step of a program that two devices do differently.
 */
#ifndef TOOLS_EVAL_BISECT_H
#define TOOLS_EVAL_BISECT_H

#include "run.h"

/*
 * Run PROGRAM on FIRST and each of its steps on SECOND as well, with the
 * values of FIRST as arguments: a difference is of that step alone, not what
 * others before it have left. Gradients are not taken.
 *
 * *OUT_DIFFERENCE is NULL if all steps agree within the program's tolerance;
 * else what docs/EVAL.md says, which the caller deletes. Fails if an input is
 * wrong, an op is not known, or a step fails on both devices unexpectedly.
 */
HOB_MUST_CHECK hob_status bisect_program(const struct program *program,
                                         hob_device *first, hob_device *second,
                                         const struct names *names,
                                         cJSON **out_difference,
                                         hob_error *error);

#endif

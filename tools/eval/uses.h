/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uses.h - until when a program needs its values.
 *
 * Recorded programs are long: a run lets a value go after its last use.
 */
#ifndef TOOLS_EVAL_USES_H
#define TOOLS_EVAL_USES_H

#include "program.h"

struct use {
    const char *name; /* borrowed from the program */
    int last;         /* number of the step, from 1; INT_MAX: to the end */
};

struct uses {
    struct use *items; /* owned, sorted by name */
    size_t count;
};

/* Find the uses in PROGRAM. The caller ends *OUT_USES with uses_release(), on
 * failure too. */
HOB_MUST_CHECK hob_status uses_make(const struct program *program,
                                    struct uses *out_uses, hob_error *error);
void uses_release(struct uses *uses);

/* The step that uses NAME last; 0 if none does. */
int uses_last(const struct uses *uses, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a small program given as JSON; docs/EVAL.md is its reference.
 *
 * The form is that of tests/conformance/: inputs with their data, ops in SSA
 * form, expected outputs and gradients. The parsed form borrows from the
 * cJSON tree, which must outlive it.
 */
#ifndef TOOLS_EVAL_PROGRAM_H
#define TOOLS_EVAL_PROGRAM_H

#include "layout.h"

#include <hob/status.h>
#include <hob/types.h>

#include <cjson/cJSON.h>

enum tolerance_kind { TOLERANCE_EXACT, TOLERANCE_APPROX, TOLERANCE_NONE };

struct tolerance {
    enum tolerance_kind kind;
    double rel;
    double abs;
};

enum expectation { EXPECT_VALUES, EXPECT_PANIC, EXPECT_MISMATCH };

struct program {
    const char *id;
    const char *folder; /* of its NPY files, with a slash, or NULL; borrowed
                           from who read the program */
    const cJSON *inputs;
    const cJSON *steps;   /* "program" */
    const cJSON *outputs; /* may be NULL */
    const cJSON *grads;   /* may be NULL */
    const char *backward; /* the value to differentiate, or NULL */
    struct tolerance tolerance;
    enum expectation expect;
    enum layout layout; /* of inputs that say none */
};

/* Read JSON. Fails with HOB_ERR_FORMAT, naming what is wrong and where. */
HOB_MUST_CHECK hob_status program_read(const cJSON *json,
                                       struct program *out_program,
                                       hob_error *error);

/* Read the member "tolerance" of JSON, or leave *TOLERANCE as it is. */
HOB_MUST_CHECK hob_status tolerance_read(const cJSON *json,
                                         struct tolerance *tolerance,
                                         hob_error *error);

/* The dtype called NAME, or HOB_DTYPE_NONE. */
uint32_t dtype_from_name(const char *name);

/* Numbers, booleans, and the texts "nan", "inf", "-inf" and integers that a
 * double cannot hold. Returns 0 if JSON is none of them. */
int number_from_json(const cJSON *json, double *out_number);
int integer_from_json(const cJSON *json, int64_t *out_number);

/* A shape; fails with HOB_ERR_FORMAT. *OUT_RANK is at most HOB_MAX_RANK. */
HOB_MUST_CHECK hob_status shape_from_json(const cJSON *json,
                                          int64_t out_shape[HOB_MAX_RANK],
                                          int32_t *out_rank, hob_error *error);

#endif

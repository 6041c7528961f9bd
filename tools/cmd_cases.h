/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_cases.h - judging programs that say what they expect.
 */
#ifndef TOOLS_CMD_CASES_H
#define TOOLS_CMD_CASES_H

#include "cmd.h"
#include "eval/names.h"
#include "eval/program.h"

enum outcome { PASSED, FAILED, SKIPPED };

/*
 * Run PROGRAM on DEVICE and judge it by what it expects. NAMES may be NULL.
 * If it FAILED, ERROR says how; if it is SKIPPED, *OUT_MISSING is the op that
 * nobody knows, which the caller frees.
 */
enum outcome judge_program(const struct program *program, hob_device *device,
                           const struct names *names, char **out_missing,
                           hob_error *error);

/* A file of cases, one a line, and how to run them. All is borrowed. */
struct cases {
    const char *path;
    hob_device *device;
    const struct names *names; /* or NULL */
    const char *only;          /* a part of the id, or NULL for all */
    const enum layout *layout; /* of the inputs, or NULL as the cases say */
    int as_json;               /* print nothing on the way */
};

/*
 * Run CASES. Prints each that fails and a last line "N passed, N failed,
 * N skipped", or one JSON object. Returns the exit code.
 */
int run_cases(const struct cmd *cmd, const struct cases *cases);

#endif

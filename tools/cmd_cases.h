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

/*
 * Run the cases in file PATH, one a line, those whose id holds ONLY if that is
 * not NULL. Prints each that fails and a last line "N passed, N failed,
 * N skipped", or one JSON object. Returns the exit code.
 */
int run_cases(const struct cmd *cmd, hob_device *device, const char *path,
              const struct names *names, const char *only, int as_json);

#endif

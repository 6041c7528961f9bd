/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_bisect.h - hob eval --bisect.
 */
#ifndef TOOLS_CMD_BISECT_H
#define TOOLS_CMD_BISECT_H

#include "cmd.h"
#include "eval/names.h"
#include "eval/program.h"

/*
 * Print the first step of PROGRAM that the two DEVICES do differently.
 * *OUT_CODE is EXIT_FAILED if there is one, else EXIT_DONE.
 */
HOB_MUST_CHECK hob_status run_bisect(const struct program *program,
                                     hob_device **devices,
                                     const struct names *names, int as_json,
                                     int *out_code, hob_error *error);

#endif

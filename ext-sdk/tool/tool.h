/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h - the sub-commands of hob-sdk, one file each.
 *
 * Each gets its arguments without its own name and returns the exit status:
 * 0 done, 1 the input has a mistake, 2 it was called wrongly. Results go to
 * standard output, messages to standard error. The program runs on the
 * building machine and links nothing of libhob: what it shares with the core
 * is compiled into it.
 */
#ifndef TOOL_H
#define TOOL_H

#include <hob/status.h>

enum { TOOL_DONE = 0, TOOL_BAD_INPUT = 1, TOOL_USAGE = 2 };

int tool_gen(int argc, char **argv);
int tool_new(int argc, char **argv);
int tool_pack(int argc, char **argv);
int tool_check(int argc, char **argv);

/* Print "hob-sdk: WHAT NAME" and where help is; returns TOOL_USAGE. */
int tool_usage_error(const char *what, const char *name);

/* Print ERROR's message and free it; returns TOOL_BAD_INPUT. */
int tool_failed(hob_error *error);

/*
 * Find a file that is installed with this program: the first that exists of
 * BESIDE, relative to the program's own folder, and COMPILED, the place that
 * it was built for. BESIDE ends with NULL. The caller frees the path; NULL if
 * there is none.
 */
char *tool_find(const char *const *beside, const char *compiled);

#endif

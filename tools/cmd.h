/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.h - the sub-commands of hob.
 *
 * Each gets its arguments without its own name and returns the exit code:
 * 0 done, 1 it failed, 2 it was called wrongly. Results go to standard
 * output, as a table or with --json as one JSON value; messages to standard
 * error.
 */
#ifndef TOOLS_CMD_H
#define TOOLS_CMD_H

#include <hob/hob.h>

#include <cjson/cJSON.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct cmd {
    const char *name;
    const char *usage; /* what follows the name */
    const char *help;  /* one line */
    int (*run)(const struct cmd *cmd, int argc, char **argv);
};

int cmd_doctor(const struct cmd *cmd, int argc, char **argv);
int cmd_plugins(const struct cmd *cmd, int argc, char **argv);
int cmd_why(const struct cmd *cmd, int argc, char **argv);
int cmd_devices(const struct cmd *cmd, int argc, char **argv);
int cmd_ops(const struct cmd *cmd, int argc, char **argv);
int cmd_config(const struct cmd *cmd, int argc, char **argv);
int cmd_eval(const struct cmd *cmd, int argc, char **argv);
int cmd_install(const struct cmd *cmd, int argc, char **argv);
int cmd_remove(const struct cmd *cmd, int argc, char **argv);
int cmd_enable(const struct cmd *cmd, int argc, char **argv);
int cmd_disable(const struct cmd *cmd, int argc, char **argv);

/* Print to standard error how CMD is called, which takes WORDS words, and which
 * of those that are left it does not know; returns EXIT_USAGE. */
int cmd_usage(const struct cmd *cmd, int argc, char **argv, int words);

/* Print "hob NAME: MESSAGE" and free ERROR; returns EXIT_FAILED. */
int cmd_failed(const struct cmd *cmd, hob_error *error);

/* Open a runtime that reports instead of aborting; NULL after a message. */
hob_runtime *cmd_runtime(const struct cmd *cmd);

/* Close RUNTIME; complain about what is left. Returns CODE, or EXIT_FAILED. */
int cmd_close(const struct cmd *cmd, hob_runtime *runtime, int code);

/* Take the flag NAME out of ARGV; returns whether it was there. */
int cmd_flag(int *argc, char **argv, const char *name);

/*
 * Take NAME and its value out of ARGV, as "--name value" or "--name=value".
 * Returns NULL if it is not there; the value of a NAME at the end is "".
 */
const char *cmd_value(int *argc, char **argv, const char *name);

/* Print JSON to standard output and free it; returns EXIT_DONE. */
int cmd_print_json(cJSON *json);

/* A table for people: columns as wide as their widest cell. */
struct table {
    uint32_t column_count;
    uint32_t cell_count;
    uint32_t capacity;
    char **cells; /* owned; the first row is the head */
};

void table_init(struct table *table, uint32_t column_count);
void table_add(struct table *table, const char *cell); /* NULL prints "-" */
void table_print(struct table *table);                 /* and release it */

#endif

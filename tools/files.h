/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - reading JSON files for the command line.
 */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

#include <hob/status.h>

#include <cjson/cJSON.h>

#include <stddef.h>

/*
 * Read the whole file PATH ("-": standard input). *OUT_TEXT ends with a NUL
 * beyond *OUT_SIZE and is the caller's, who frees it.
 */
HOB_MUST_CHECK hob_status file_load(const char *path, char **out_text,
                                    size_t *out_size, hob_error *error);

/* Parse TEXT; WHERE names it. Fails with HOB_ERR_FORMAT, line and column. */
HOB_MUST_CHECK hob_status json_parse(const char *where, const char *text,
                                     size_t size, cJSON **out_json,
                                     hob_error *error);

/* Read and parse the file PATH. */
HOB_MUST_CHECK hob_status json_load(const char *path, cJSON **out_json,
                                    hob_error *error);

#endif

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

/*
 * Parse TEXT, strictly. WHERE names it, and FIRST_LINE is where in it TEXT
 * begins. Fails with HOB_ERR_FORMAT, naming line and column.
 */
HOB_MUST_CHECK hob_status json_parse(const char *where, uint32_t first_line,
                                     const char *text, size_t size,
                                     cJSON **out_json, hob_error *error);

/* Read and parse the file PATH. */
HOB_MUST_CHECK hob_status json_load(const char *path, cJSON **out_json,
                                    hob_error *error);

/* The folder of PATH, with its slash; "" if it has none, NULL without memory.
 * The caller frees it. */
char *file_folder(const char *path);

/* Put a place, as in "step 3", before ERROR's message; returns its status. */
hob_status error_at(hob_error *error, const char *format, ...) HOB_PRINTF(2, 3);

#endif

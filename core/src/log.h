/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the one log of a runtime.
 *
 * HOB_LOG is a list of "module=level"; a bare level sets the default, as in
 * "warn,loader=debug,plugin:cube-cuda=info". Levels: off, error, warn, info,
 * debug. Without a filter nothing below "error" is written (REP-3). Each
 * message is one write to the sink; any thread may log.
 */
#ifndef HOB__LOG_H
#define HOB__LOG_H

#include "os.h"
#include "reasons.h"

#include <hob/status.h>

#include <stdbool.h>
#include <stddef.h>

struct hob__log; /* opaque */

/* MESSAGE is one line without its newline. MODULE as in "loader". */
typedef void hob__log_fn(void *context, enum hob__severity severity,
                         const char *module, const char *message);

struct hob__log_options {
    const char *filter; /* as HOB_LOG, or NULL */
    const char *format; /* "text" or "json", or NULL for text */
    const char *file;   /* an absolute path, or NULL for standard error */
    hob__log_fn *sink;  /* if given, gets every message that passes */
    void *context;
    const char *filter_name; /* what FILTER was read from, for a message */
};

/*
 * On success *OUT_LOG ends with hob__log_free(). A filter or format that
 * cannot be read is taken as absent and said so in the log, as is a file that
 * cannot be opened. Fails with HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__log_new(const struct hob_os_ops *os,
                                       const struct hob__log_options *options,
                                       struct hob__log **out_log,
                                       hob_error *error);

/* Accepts NULL. */
void hob__log_free(struct hob__log *log);

/* Say whether a message would be written, before making it costs anything. */
bool hob__log_wants(const struct hob__log *log, enum hob__severity severity,
                    const char *module);

void hob__log_write(struct hob__log *log, enum hob__severity severity,
                    const char *module, const char *format, ...)
    HOB_PRINTF(4, 5);

#endif

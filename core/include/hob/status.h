/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/status.h - result codes and errors.
 *
 * Every function that can fail returns a hob_status. HOB_OK is zero, so
 * "if (st)" means "if it failed". The code is for programs; the message in
 * the caller's hob_error is for people and names the offending values.
 *
 * A hob_error is the caller's memory: start it as HOB_ERROR_INIT, pass its
 * address, give its message back with hob_error_release(). Functions accept
 * NULL where the caller does not want the message. A message is as long as
 * it needs to be; it is never cut.
 */
#ifndef HOB_STATUS_H
#define HOB_STATUS_H

#include <hob/common.h>

HOB_BEGIN_DECLS

/* Values are part of the ABI: never reuse or renumber one. */
typedef enum hob_status {
    HOB_OK = 0,
    HOB_ERR_ARGUMENT = 1,    /* the caller broke a documented precondition */
    HOB_ERR_SHAPE = 2,       /* shapes do not fit the operation */
    HOB_ERR_DTYPE = 3,       /* dtypes do not fit the operation */
    HOB_ERR_DEVICE = 4,      /* no such device, or devices do not fit */
    HOB_ERR_PLUGIN = 5,      /* a plugin was refused or broke its contract */
    HOB_ERR_UNSUPPORTED = 6, /* nobody implements this here */
    HOB_ERR_MEMORY = 7,      /* out of memory, on the host or a device */
    HOB_ERR_IO = 8,          /* a file could not be read or written */
    HOB_ERR_FORMAT = 9,      /* a file or text is malformed */
    HOB_ERR_RANGE = 10,      /* a value or an index is out of range */
    HOB_ERR_STATE = 11,      /* moved, consumed, closed, already open */
    HOB_ERR_BUSY = 12,       /* live objects stand in the way */
    HOB_ERR_FORKED = 13,     /* this process is a fork of the owner */
    HOB_ERR_REENTRANT = 14,  /* called back into from a plugin's entry */
    HOB_ERR_CONFIG = 15,     /* the configuration is wrong */
    HOB_ERR_NOT_FOUND = 16,  /* no op, plugin, key or file of that name */
    HOB_ERR_INTERNAL = 17,   /* a bug in Hob or a plugin */
    HOB_STATUS_COUNT_
} hob_status;

typedef struct hob_error {
    hob_status status;
    char *message; /* owned; NULL while status is HOB_OK */
} hob_error;

#define HOB_ERROR_INIT                                                         \
    {                                                                          \
        HOB_OK, NULL                                                           \
    }

/* Return the name of STATUS, as in "HOB_ERR_SHAPE". Never NULL. */
HOB_API const char *hob_status_name(hob_status status);

/*
 * Put STATUS and a formatted message into ERROR and return STATUS. An earlier
 * message is replaced. ERROR may be NULL. Without memory for the message a
 * fixed text takes its place.
 */
HOB_API hob_status hob_error_set(hob_error *error, hob_status status,
                                 const char *format, ...) HOB_PRINTF(3, 4);

/* Free ERROR's message and make it HOB_ERROR_INIT again. Accepts NULL. */
HOB_API void hob_error_release(hob_error *error);

HOB_END_DECLS

#endif

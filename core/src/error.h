/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - the core's own side of hob/status.h.
 */
#ifndef HOB__ERROR_H
#define HOB__ERROR_H

#include <hob/status.h>

#include <stdarg.h>

/* As hob_error_set(), with the arguments as a va_list. */
hob_status hob__error_setv(hob_error *error, hob_status status,
                           const char *format, va_list args) HOB_PRINTF(3, 0);

/* Return ERROR's message, or the name of its status; never NULL. */
const char *hob__error_text(const hob_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "error.h"

#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stands in for a message for which there is no memory; never freed. */
static const char no_memory[] = "out of memory (also for the message)";

const char *hob_status_name(hob_status status)
{
    static const char *const names[HOB_STATUS_COUNT_] = {
        [HOB_OK] = "HOB_OK",
        [HOB_ERR_ARGUMENT] = "HOB_ERR_ARGUMENT",
        [HOB_ERR_SHAPE] = "HOB_ERR_SHAPE",
        [HOB_ERR_DTYPE] = "HOB_ERR_DTYPE",
        [HOB_ERR_DEVICE] = "HOB_ERR_DEVICE",
        [HOB_ERR_PLUGIN] = "HOB_ERR_PLUGIN",
        [HOB_ERR_UNSUPPORTED] = "HOB_ERR_UNSUPPORTED",
        [HOB_ERR_MEMORY] = "HOB_ERR_MEMORY",
        [HOB_ERR_IO] = "HOB_ERR_IO",
        [HOB_ERR_FORMAT] = "HOB_ERR_FORMAT",
        [HOB_ERR_RANGE] = "HOB_ERR_RANGE",
        [HOB_ERR_STATE] = "HOB_ERR_STATE",
        [HOB_ERR_BUSY] = "HOB_ERR_BUSY",
        [HOB_ERR_FORKED] = "HOB_ERR_FORKED",
        [HOB_ERR_REENTRANT] = "HOB_ERR_REENTRANT",
        [HOB_ERR_CONFIG] = "HOB_ERR_CONFIG",
        [HOB_ERR_NOT_FOUND] = "HOB_ERR_NOT_FOUND",
        [HOB_ERR_INTERNAL] = "HOB_ERR_INTERNAL",
    };

    if ((unsigned)status >= HOB_STATUS_COUNT_)
        return "HOB_ERR_unknown";
    return names[status];
}

hob_status hob__error_setv(hob_error *error, hob_status status,
                           const char *format, va_list args)
{
    va_list copy;
    char text[256]; /* most messages: formatting is what failing costs */
    char *message = NULL;
    int length;

    if (!error)
        return status;
    va_copy(copy, args);
    length = vsnprintf(text, sizeof(text), format, copy);
    va_end(copy);
    if (length >= 0)
        message = malloc((size_t)length + 1);
    if (message && (size_t)length < sizeof(text))
        memcpy(message, text, (size_t)length + 1);
    else if (message)
        (void)vsnprintf(message, (size_t)length + 1, format, args);
    if (message)
        hob__text_plain(message);
    /* Only now: the arguments may point into the old message. */
    hob_error_release(error);
    error->status = status;
    error->message = message ? message : (char *)(uintptr_t)no_memory;
    return status;
}

hob_status hob_error_set(hob_error *error, hob_status status,
                         const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)hob__error_setv(error, status, format, args);
    va_end(args);
    return status;
}

const char *hob__error_text(const hob_error *error)
{
    return error->message ? error->message : hob_status_name(error->status);
}

void hob_error_release(hob_error *error)
{
    if (!error)
        return;
    if (error->message != no_memory)
        free(error->message);
    error->status = HOB_OK;
    error->message = NULL;
}

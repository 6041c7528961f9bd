/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/message.h - texts for people, as a plugin hands them to the core.
 *
 *     if (!found)
 *         return hob_say(host, out_message, HOB_ERR_DEVICE,
 *                        "there is no device %u", ordinal);
 */
#ifndef HOB_EXT_MESSAGE_H
#define HOB_EXT_MESSAGE_H

#include <hob/ext/plugin.h>

#include <stdarg.h>
#include <stdio.h>

HOB_BEGIN_DECLS

/* As hob_say(), with the arguments of FORMAT as a list, which is used up. */
static inline hob_status hob_say_list(const struct hob_host *host,
                                      char **out_message, hob_status status,
                                      const char *format, va_list args)
{
    va_list again;
    int size;

    if (!out_message)
        return status;
    *out_message = NULL;
    va_copy(again, args);
    size = vsnprintf(NULL, 0, format, args);
    if (size >= 0)
        *out_message = (char *)host->mem_alloc(host, (uint64_t)size + 1);
    if (*out_message)
        (void)vsnprintf(*out_message, (size_t)size + 1, format, again);
    va_end(again);
    return status;
}

static inline hob_status hob_say(const struct hob_host *host,
                                 char **out_message, hob_status status,
                                 const char *format, ...) HOB_PRINTF(4, 5);

/* Put a text into *OUT_MESSAGE, which the core frees, unless OUT_MESSAGE is
 * NULL, and return STATUS. Without memory there is no text. */
static inline hob_status hob_say(const struct hob_host *host,
                                 char **out_message, hob_status status,
                                 const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)hob_say_list(host, out_message, status, format, args);
    va_end(args);
    return status;
}

HOB_END_DECLS

#endif

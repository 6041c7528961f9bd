/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>

hob_status cube_say(const struct hob_host *host, char **out_message,
                    hob_status status, const char *format, ...)
{
    va_list list;
    int length;

    if (!out_message)
        return status;
    *out_message = NULL;
    va_start(list, format);
    length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (length < 0)
        return status;
    *out_message = host->mem_alloc(host, (uint64_t)length + 1);
    if (!*out_message)
        return status;
    va_start(list, format);
    (void)vsnprintf(*out_message, (size_t)length + 1, format, list);
    va_end(list);
    return status;
}

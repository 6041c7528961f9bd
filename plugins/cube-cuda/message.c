/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include "device.h"

#include <stdarg.h>
#include <stdio.h>

hob_status ccu_say(const struct hob_host *host, char **out_message,
                   hob_status status, const char *format, ...)
{
    char text[2 * CCU_REASON];
    va_list list;

    if (!out_message)
        return status;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    *out_message = cube_message(host, "%s", text);
    return status;
}

hob_status ccu_say_result(struct ccu_device *device, char **out_message,
                          const char *what, int result)
{
    char text[CCU_REASON / 2];

    ccu_result_text(device->driver, result, text, sizeof(text));
    return ccu_say(device->cube.host, out_message,
                   result == CCU_OUT_OF_MEMORY ? HOB_ERR_MEMORY
                                               : HOB_ERR_DEVICE,
                   "%s: %s: %s", device->name, what, text);
}

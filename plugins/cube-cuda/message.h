/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - messages for whoever called, as in hob/ext/plugin.h. */
#ifndef CCU_MESSAGE_H
#define CCU_MESSAGE_H

#include <hob/ext/plugin.h>

struct ccu_device;

/* Set *OUT_MESSAGE, unless OUT_MESSAGE is NULL, and return STATUS. */
hob_status ccu_say(const struct hob_host *host, char **out_message,
                   hob_status status, const char *format, ...)
    HOB_PRINTF(4, 5);
/* WHAT of the driver's failed with RESULT: the same, with the status that
 * RESULT stands for. */
hob_status ccu_say_result(struct ccu_device *device, char **out_message,
                          const char *what, int result);

#endif

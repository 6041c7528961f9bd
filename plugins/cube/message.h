/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - texts for people, as the ABI hands them over. */
#ifndef CUBE_MESSAGE_H
#define CUBE_MESSAGE_H

#include <hob/ext/plugin.h>

/* Put a text made with HOST's mem_alloc into *OUT_MESSAGE, NULL without
 * memory, unless OUT_MESSAGE is NULL; return STATUS. */
hob_status cube_say(const struct hob_host *host, char **out_message,
                    hob_status status, const char *format, ...)
    HOB_PRINTF(4, 5);

#endif

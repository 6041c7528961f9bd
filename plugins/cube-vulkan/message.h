/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - texts for people, as the ABI hands them over. */
#ifndef CVK_MESSAGE_H
#define CVK_MESSAGE_H

#include <hob/ext/plugin.h>

/* Put a text made with HOST's mem_alloc into *OUT_MESSAGE, unless OUT_MESSAGE
 * is NULL or there is no memory, and return STATUS. */
hob_status cvk_say(const struct hob_host *host, char **out_message,
                   hob_status status, const char *format, ...) HOB_PRINTF(4, 5);

#endif

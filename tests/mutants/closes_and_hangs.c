/* SPDX-License-Identifier: Apache-2.0 */
/* Closes files of others, and does not come back. */
#include "mutant.h"

#include <unistd.h>

static hob_status execute(void *device, struct hob_call *call)
{
    (void)device;
    (void)call;
    for (int file = 3; file < 256; file++)
        (void)close(file);
    return (hob_status)pause();
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

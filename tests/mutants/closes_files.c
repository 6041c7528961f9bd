/* SPDX-License-Identifier: Apache-2.0 */
/* Closes files of others, the one that findings are written to among them. */
#include "mutant.h"

#include <unistd.h>

static hob_status execute(void *device, struct hob_call *call)
{
    for (int file = 3; file < 256; file++)
        (void)close(file);
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

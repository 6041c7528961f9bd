/* SPDX-License-Identifier: Apache-2.0 */
/* Never gives memory of the C library back. */
#include "mutant.h"

#include <stdlib.h>

static hob_status execute(void *device, struct hob_call *call)
{
    void *volatile memory = malloc(100);

    if (!memory)
        return call->host->fail(call, HOB_ERR_MEMORY, "no memory");
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

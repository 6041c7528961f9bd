/* SPDX-License-Identifier: Apache-2.0 */
/* Never gives host memory back. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    if (!call->host->mem_alloc(call->host, 100))
        return call->host->fail(call, HOB_ERR_MEMORY, "no memory");
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

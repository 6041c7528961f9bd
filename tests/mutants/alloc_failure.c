/* SPDX-License-Identifier: Apache-2.0 */
/* Without memory it does nothing, and says that it did. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    void *memory = call->host->mem_alloc(call->host, 100);

    if (!memory)
        return HOB_OK;
    call->host->mem_free(call->host, memory);
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

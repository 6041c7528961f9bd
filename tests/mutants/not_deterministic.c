/* SPDX-License-Identifier: Apache-2.0 */
/* Counts its calls into the result. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    static int calls;
    hob_status status = mutant_execute(device, call);

    mutant_put(hob_ret_view(call, 0), 0, ++calls);
    return status;
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

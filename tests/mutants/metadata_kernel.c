/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel makes its result smaller than inferred. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    hob_status status = mutant_execute(device, call);

    if (hob_ret_view(call, 0)->rank)
        hob_ret_view(call, 0)->shape[0] = 1;
    return status;
}

#define MUTANT_EXECUTE execute
#define MUTANT_BODY NULL
#define MUTANT_IMPLS 1
#include "mutant_table.h"

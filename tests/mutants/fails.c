/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel refuses what infer and the body accept. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    if (hob_arg_view(call, 0)->rank > 2)
        return call->host->fail(call, HOB_ERR_SHAPE, "x must be a matrix");
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

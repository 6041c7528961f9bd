/* SPDX-License-Identifier: Apache-2.0 */
/* Fails, and does not say why. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    for (int64_t i = 0; i < hob_view_count(x); i++)
        if (mutant_get(x, i) != mutant_get(x, i))
            return HOB_ERR_RANGE;
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

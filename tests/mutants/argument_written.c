/* SPDX-License-Identifier: Apache-2.0 */
/* Uses its argument as scratch memory. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status status = mutant_execute(device, call);

    for (int64_t i = 0; i < hob_view_count(x); i++)
        mutant_put(x, i, 0);
    return status;
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

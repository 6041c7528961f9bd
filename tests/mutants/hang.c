/* SPDX-License-Identifier: Apache-2.0 */
/* A search that ends when it has found a number: not with NaN. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    volatile double low = 0;

    for (int64_t i = 0; i < hob_view_count(x); i++)
        while (!(low <= mutant_get(x, i)))
            low = low - 1e30;
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* Says that a result may lie over the argument, and clears it first. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *y = hob_ret_view(call, 0);

    (void)device;
    for (int64_t i = 0; i < hob_view_count(y); i++)
        mutant_put(y, i, 0);
    for (int64_t i = 0; i < hob_view_count(y); i++)
        mutant_put(y, i, mutant_get(y, i) + 2 * mutant_get(x, i));
    return HOB_OK;
}

#define MUTANT_FLAGS HOB_ENTRY_IN_PLACE
#define MUTANT_EXECUTE execute
#include "mutant_table.h"

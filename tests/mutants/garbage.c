/* SPDX-License-Identifier: Apache-2.0 */
/* Forgets the last element. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *y = hob_ret_view(call, 0);

    (void)device;
    for (int64_t i = 0; i + 1 < hob_view_count(y); i++)
        mutant_put(y, i, 2 * mutant_get(x, i));
    return HOB_OK;
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

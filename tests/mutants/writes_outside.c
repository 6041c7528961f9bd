/* SPDX-License-Identifier: Apache-2.0 */
/* One element too many. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *y = hob_ret_view(call, 0);
    hob_status status = mutant_execute(device, call);

    if (y->dtype == HOB_DTYPE_F64)
        ((double *)y->data)[hob_view_count(y)] = 0;
    else
        ((float *)y->data)[hob_view_count(y)] = 0;
    return status;
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

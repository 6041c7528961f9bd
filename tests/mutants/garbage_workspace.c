/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up in workspace that it has not cleared. */
#include "mutant.h"

static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    (void)device;
    out->workspace_bytes =
        sizeof(double) * (uint64_t)hob_view_count(hob_arg_view(call, 0));
    return HOB_OK;
}

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *y = hob_ret_view(call, 0);
    double *sums = call->workspace;

    (void)device;
    for (int64_t i = 0; i < hob_view_count(y); i++) {
        sums[i] += 2 * mutant_get(x, i);
        mutant_put(y, i, sums[i]);
    }
    return HOB_OK;
}

#define MUTANT_PREPARE prepare
#define MUTANT_EXECUTE execute
#include "mutant_table.h"

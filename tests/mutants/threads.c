/* SPDX-License-Identifier: Apache-2.0 */
/* Works in memory that all threads share. */
#include "mutant.h"

#include <sched.h>

static hob_status execute(void *device, struct hob_call *call)
{
    static double shared[4096];
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t count = hob_view_count(x);

    if (count > 4096)
        return mutant_execute(device, call);
    for (int64_t i = 0; i < count; i++)
        shared[i] = 2 * mutant_get(x, i);
    for (int i = 0; i < 5; i++)
        (void)sched_yield();
    for (int64_t i = 0; i < count; i++)
        mutant_put(hob_ret_view(call, 0), i, shared[i]);
    return HOB_OK;
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

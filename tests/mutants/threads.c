/* SPDX-License-Identifier: Apache-2.0 */
/* Works in memory that all threads share. */
#include "mutant.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* Whether calls have come from two threads: only then let the other one in,
 * so that a busy machine does not make this slow for nothing. */
static int is_shared(void)
{
    static atomic_uintptr_t last;
    static atomic_int switches;
    uintptr_t self = (uintptr_t)pthread_self();
    uintptr_t before = atomic_exchange(&last, self);

    if (before && before != self)
        atomic_fetch_add(&switches, 1);
    return atomic_load(&switches) > 0;
}

static hob_status execute(void *device, struct hob_call *call)
{
    static double shared[4096];
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t count = hob_view_count(x);

    if (count > 4096)
        return mutant_execute(device, call);
    for (int64_t i = 0; i < count; i++)
        shared[i] = 2 * mutant_get(x, i);
    for (int i = 0; i < 5 && is_shared(); i++)
        (void)sched_yield();
    for (int64_t i = 0; i < count; i++)
        mutant_put(hob_ret_view(call, 0), i, shared[i]);
    return HOB_OK;
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

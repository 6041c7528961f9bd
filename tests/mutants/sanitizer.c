/* SPDX-License-Identifier: Apache-2.0 */
/* As if built with -fsanitize=address. */
#include "mutant.h"

extern void __asan_init(void) __attribute__((weak));

static hob_status execute(void *device, struct hob_call *call)
{
    if (__asan_init && call->level > 1000)
        __asan_init();
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

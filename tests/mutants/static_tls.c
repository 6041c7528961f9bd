/* SPDX-License-Identifier: Apache-2.0 */
/* A thread-local variable at a fixed place. */
#include "mutant.h"

static _Thread_local volatile int calls
    __attribute__((tls_model("initial-exec")));

static hob_status execute(void *device, struct hob_call *call)
{
    calls = calls + 1;
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

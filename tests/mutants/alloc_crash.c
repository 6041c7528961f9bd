/* SPDX-License-Identifier: Apache-2.0 */
/* Trusts malloc. */
#include "mutant.h"

#include <stdlib.h>

static hob_status execute(void *device, struct hob_call *call)
{
    volatile char *memory = malloc(100);

    memory[0] = 1;
    free((void *)(uintptr_t)memory);
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a null pointer. */
#include "mutant.h"

static hob_status execute(void *device, struct hob_call *call)
{
    return *(volatile hob_status *)device + mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

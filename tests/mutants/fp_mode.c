/* SPDX-License-Identifier: Apache-2.0 */
/* Sets a rounding mode and leaves it so. */
#include "mutant.h"

#include <fenv.h>

static hob_status execute(void *device, struct hob_call *call)
{
    (void)fesetround(FE_UPWARD);
    return mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* Needs a function of libhob itself. */
#include "mutant.h"

extern const char *hob_version(void) __attribute__((weak));

static hob_status execute(void *device, struct hob_call *call)
{
    return hob_version && !hob_version() ? HOB_ERR_STATE
                                         : mutant_execute(device, call);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the process as if all was well, by no function that its symbols tell. */
#include "mutant.h"

#include <sys/syscall.h>
#include <unistd.h>

static hob_status execute(void *device, struct hob_call *call)
{
    (void)device;
    (void)call;
    return (hob_status)syscall(SYS_exit_group, 0);
}

#define MUTANT_EXECUTE execute
#include "mutant_table.h"

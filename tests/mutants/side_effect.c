/* SPDX-License-Identifier: Apache-2.0 */
/* A constructor that takes a signal. */
#include "mutant_table.h"

#include <signal.h>

static void __attribute__((constructor)) take_signal(void)
{
    (void)signal(SIGUSR1, SIG_IGN);
}

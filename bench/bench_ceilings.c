/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ceilings - what this machine can do at most, for comparison.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "harness.h"

int main(void)
{
    bench_print_ceilings();
    return 0;
}

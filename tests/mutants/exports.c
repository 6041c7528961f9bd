/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a function besides the entry. */
#include "mutant_table.h"

HOB_EXPORT int mutant_helper(void);

int mutant_helper(void)
{
    return 1;
}

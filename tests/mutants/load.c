/* SPDX-License-Identifier: Apache-2.0 */
/* Made for another ABI. */
#define MUTANT_MINOR 99
#include "mutant_table.h"

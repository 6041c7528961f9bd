/* SPDX-License-Identifier: Apache-2.0 */
/* Lists flex and autodiff, has nothing for either. */
#define MUTANT_IMPLS 0
#define MUTANT_BODY NULL
#include "mutant_table.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* It takes the place of what it is. */
#include "mutant_table.h"

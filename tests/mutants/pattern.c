/* SPDX-License-Identifier: Apache-2.0 */
/* It takes the place of 2 |x|, but is 2 x. */
#include "mutant_table.h"

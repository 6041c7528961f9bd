/* SPDX-License-Identifier: Apache-2.0 */
/* Its "x-check" has a key that there is not. */
#include "mutant_table.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* Lists a backend for a feature that is off, and has nothing for it. */
#define MUTANT_BODY NULL
#include "mutant_table.h"

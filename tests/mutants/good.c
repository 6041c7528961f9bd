/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps every rule: nothing may be found. */
#include "mutant_table.h"

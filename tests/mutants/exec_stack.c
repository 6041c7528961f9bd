/* SPDX-License-Identifier: Apache-2.0 */
/* Linked with -z execstack. */
#include "mutant_table.h"

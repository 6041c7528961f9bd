/* SPDX-License-Identifier: Apache-2.0 */
/* A struct_size that this ABI does not have. */
#define MUTANT_BACKWARD_SIZE (sizeof(struct hob_backward) + 64)
#include "mutant_table.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* Its manifest is no JSON. */
#include "mutant_table.h"

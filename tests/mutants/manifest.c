/* SPDX-License-Identifier: Apache-2.0 */
/* Its signature is not the manifest's. */
#define MUTANT_SIGNATURE "(x: Float, n: i64 = 1) -> x"
#include "mutant_table.h"

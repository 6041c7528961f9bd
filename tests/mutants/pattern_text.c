/* SPDX-License-Identifier: Apache-2.0 */
/* Its pattern lacks an argument. */
#include "mutant_table.h"

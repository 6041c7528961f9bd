/* SPDX-License-Identifier: Apache-2.0 */
/* rows_v2.c - row kernels for x86-64-v2. */
#define TABLE flex_row_kernels_v2
#include "rows_isa.h"

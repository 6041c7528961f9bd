/* SPDX-License-Identifier: Apache-2.0 */
/* rows_v3.c - row kernels for x86-64-v3. */
#define TABLE flex_row_kernels_v3
#include "rows_isa.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* rows_v4.c - row kernels for x86-64-v4. */
#define TABLE flex_row_kernels_v4
#include "rows_isa.h"

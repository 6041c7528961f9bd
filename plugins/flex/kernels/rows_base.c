/* SPDX-License-Identifier: Apache-2.0 */
/* rows_base.c - row kernels for any processor. */
#define TABLE flex_row_kernels_base
#include "rows_isa.h"

/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_kernels_v4
#define TABLE_NAME "v4"
#define TABLE_ISA FLEX_ISA_V4
#include "table_tmpl.h"

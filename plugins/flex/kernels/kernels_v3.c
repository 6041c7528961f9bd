/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_kernels_v3
#define TABLE_NAME "v3"
#define TABLE_ISA FLEX_ISA_V3
#include "table_tmpl.h"

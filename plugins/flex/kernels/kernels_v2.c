/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_kernels_v2
#define TABLE_NAME "v2"
#define TABLE_ISA FLEX_ISA_V2
#include "table_tmpl.h"

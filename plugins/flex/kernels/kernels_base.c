/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_kernels_base
#define TABLE_NAME "base"
#define TABLE_ISA FLEX_ISA_BASE
#include "table_tmpl.h"

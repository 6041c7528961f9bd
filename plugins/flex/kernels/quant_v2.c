/* SPDX-License-Identifier: Apache-2.0 */
/* quant_v2.c - quantized numbers, for x86-64-v2. */
#define TABLE flex_quant_kernels_v2
#include "quant_tmpl.h"

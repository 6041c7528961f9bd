/* SPDX-License-Identifier: Apache-2.0 */
/* quant_v3.c - quantized numbers, for x86-64-v3. */
#define TABLE flex_quant_kernels_v3
#include "quant_tmpl.h"

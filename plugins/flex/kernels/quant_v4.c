/* SPDX-License-Identifier: Apache-2.0 */
/* quant_v4.c - quantized numbers, for x86-64-v4. */
#define TABLE flex_quant_kernels_v4
#include "quant_tmpl.h"

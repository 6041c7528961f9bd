/* SPDX-License-Identifier: Apache-2.0 */
/* quant_base.c - quantized numbers, for any processor. */
#define TABLE flex_quant_kernels_base
#include "quant_tmpl.h"

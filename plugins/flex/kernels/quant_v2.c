/* SPDX-License-Identifier: Apache-2.0 */
/* quant_v2.c - the numbers of codes, for x86-64-v2. */
#define DECODE flex_quant_decode_v2
#include "quant_tmpl.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* quant_v3.c - the numbers of codes, for x86-64-v3. */
#define DECODE flex_quant_decode_v3
#include "quant_tmpl.h"

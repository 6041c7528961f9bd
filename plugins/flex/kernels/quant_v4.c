/* SPDX-License-Identifier: Apache-2.0 */
/* quant_v4.c - the numbers of codes, for x86-64-v4. */
#define DECODE flex_quant_decode_v4
#include "quant_tmpl.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* quant_base.c - the numbers of codes, for any processor. */
#define DECODE flex_quant_decode_base
#include "quant_tmpl.h"

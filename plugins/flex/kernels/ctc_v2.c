/* SPDX-License-Identifier: Apache-2.0 */
/* ctc_v2.c - the kernels of ctc.h for x86-64-v2. */
#define TABLE flex_ctc_kernels_v2
#include "ctc_isa.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* ctc_v4.c - the kernels of ctc.h for x86-64-v4. */
#define TABLE flex_ctc_kernels_v4
#include "ctc_isa.h"

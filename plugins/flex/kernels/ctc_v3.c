/* SPDX-License-Identifier: Apache-2.0 */
/* ctc_v3.c - the kernels of ctc.h for x86-64-v3. */
#define TABLE flex_ctc_kernels_v3
#include "ctc_isa.h"

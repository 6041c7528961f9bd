/* SPDX-License-Identifier: Apache-2.0 */
/* ctc_base.c - the kernels of ctc.h for whatever the compiler assumes. */
#define TABLE flex_ctc_kernels_base
#include "ctc_isa.h"

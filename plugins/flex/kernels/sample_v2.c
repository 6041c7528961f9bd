/* SPDX-License-Identifier: Apache-2.0 */
/* sample_v2.c - the kernels of sample.h for x86-64-v2. */
#define TABLE flex_sample_kernels_v2
#include "sample_isa.h"

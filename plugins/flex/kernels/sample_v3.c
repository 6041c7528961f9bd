/* SPDX-License-Identifier: Apache-2.0 */
/* sample_v3.c - the kernels of sample.h for x86-64-v3. */
#define TABLE flex_sample_kernels_v3
#include "sample_isa.h"

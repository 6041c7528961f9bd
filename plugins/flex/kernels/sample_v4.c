/* SPDX-License-Identifier: Apache-2.0 */
/* sample_v4.c - the kernels of sample.h for x86-64-v4. */
#define TABLE flex_sample_kernels_v4
#include "sample_isa.h"

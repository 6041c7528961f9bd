/* SPDX-License-Identifier: Apache-2.0 */
/* sample_base.c - the kernels of sample.h for whatever the compiler assumes. */
#define TABLE flex_sample_kernels_base
#include "sample_isa.h"

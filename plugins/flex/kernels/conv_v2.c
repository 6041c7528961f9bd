/* SPDX-License-Identifier: Apache-2.0 */
/* conv_v2.c - loops of convolution for x86-64-v2. */
#define VECTOR_BYTES 16
#define TABLE flex_conv_kernels_v2
#include "conv_isa.h"

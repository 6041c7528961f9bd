/* SPDX-License-Identifier: Apache-2.0 */
/* conv_v4.c - loops of convolution for x86-64-v4. */
#define VECTOR_BYTES 64
#define TABLE flex_conv_kernels_v4
#include "conv_isa.h"

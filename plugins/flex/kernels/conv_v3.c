/* SPDX-License-Identifier: Apache-2.0 */
/* conv_v3.c - loops of convolution for x86-64-v3. */
#define VECTOR_BYTES 32
#define TABLE flex_conv_kernels_v3
#include "conv_isa.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* conv_base.c - loops of convolution for any processor. */
#define VECTOR_BYTES 16
#define TABLE flex_conv_kernels_base
#include "conv_isa.h"

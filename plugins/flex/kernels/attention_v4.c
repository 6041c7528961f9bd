/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_attention_kernels_v4
#define VECTOR_BYTES 64
#define TILE 8
#include "attention_isa.h"

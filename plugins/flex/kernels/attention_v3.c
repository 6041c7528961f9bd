/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_attention_kernels_v3
#define VECTOR_BYTES 32
#define TILE 4
#include "attention_isa.h"

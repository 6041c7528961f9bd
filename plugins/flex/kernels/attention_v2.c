/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_attention_kernels_v2
#define VECTOR_BYTES 16
#define TILE 4
#include "attention_isa.h"

/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_attention_kernels_base
#define VECTOR_BYTES 16
#define TILE 4
#include "attention_isa.h"

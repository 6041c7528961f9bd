/* SPDX-License-Identifier: Apache-2.0 */
/* pool_v2.c - pooling for x86-64-v2. */
#define VECTOR_BYTES 16
#define TABLE flex_pool_kernels_v2
#include "pool_isa.h"

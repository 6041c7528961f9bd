/* SPDX-License-Identifier: Apache-2.0 */
/* pool_v3.c - pooling for x86-64-v3. */
#define VECTOR_BYTES 32
#define TABLE flex_pool_kernels_v3
#include "pool_isa.h"

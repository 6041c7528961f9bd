/* SPDX-License-Identifier: Apache-2.0 */
/* pool_v4.c - pooling for x86-64-v4. */
#define VECTOR_BYTES 64
#define TABLE flex_pool_kernels_v4
#include "pool_isa.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* pool_base.c - pooling for any processor. */
#define VECTOR_BYTES 16
#define TABLE flex_pool_kernels_base
#include "pool_isa.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile_v4.c - tile kernels for x86-64-v4. */
#define VECTOR_BYTES 64
#define HEIGHT 14
#define DEPTH_BYTES 4096
#define DIRECT_A (5 << 20)
#define DIRECT_COLUMNS (2 << 20)
#define DIRECT_B INT32_MAX
#define TABLE flex_gemm_kernels_v4
#include "gemm_tile_isa.h"

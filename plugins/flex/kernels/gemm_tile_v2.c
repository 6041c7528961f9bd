/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile_v2.c - tile kernels for x86-64-v2. */
#define VECTOR_BYTES 16
#define HEIGHT 6
#define DEPTH_BYTES 1280
#define DIRECT_A (2 << 20)
#define DIRECT_COLUMNS (32 << 10)
#define DIRECT_B (5 << 20)
#define TABLE flex_gemm_kernels_v2
#include "gemm_tile_isa.h"

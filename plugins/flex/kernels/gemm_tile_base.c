/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile_base.c - tile kernels for any processor. */
#define VECTOR_BYTES 16
#define HEIGHT 6
#define DEPTH_BYTES 1280
#define DIRECT_A (2 << 20)
#define DIRECT_COLUMNS (32 << 10)
#define DIRECT_B (5 << 20)
#define TABLE flex_gemm_kernels_base
#include "gemm_tile_isa.h"

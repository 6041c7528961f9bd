/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_tile_isa.h - the tile kernels of one instruction set. Included by
 * gemm_tile_base.c (whatever the compiler assumes) and _v2.c, _v3.c, _v4.c
 * (levels of x86-64: SSE4.2, AVX2 and FMA, AVX-512), with VECTOR_BYTES, HEIGHT,
 * DEPTH_BYTES, DIRECT_A, DIRECT_COLUMNS, DIRECT_B and TABLE defined. HEIGHT
 * times two sums, two vectors of B and one broadcast fill the registers: 6 rows
 * with 16 registers, 14 with 32.
 *
 * DIRECT_A, _COLUMNS and _B are measured: on Zen 3 (v3) rows of B far apart,
 * one line of a panel each, cost a sixth of the time where B is larger than the
 * L2; on Zen 5 (v4), with two lines a row and twice the ways, nothing. Columns
 * of A far apart cost more: a panel uses 6 elements of each line, which is gone
 * from the L1 by the next panel, and at a power of 2 from the L2 as well.
 *
 * DEPTH is chosen so that a panel of B (32 KiB to 40 KiB) lives in the L1 or
 * streams from the L2; A_PAD keeps the rows of a panel of A in different
 * cache sets.
 */
#include "gemm_tile.h"

#define TYPE float
#define BITS int32_t
#define NAME(x) f32_##x
#define IS_FLOAT 1
#include "gemm_tile_tmpl.h"
#include "gemm_skinny_tmpl.h"

#define TYPE double
#define BITS int64_t
#define NAME(x) f64_##x
#define IS_FLOAT 1
#include "gemm_tile_tmpl.h"
#include "gemm_skinny_tmpl.h"

#define TYPE uint32_t
#define NAME(x) u32_##x
#define IS_FLOAT 0
#include "gemm_tile_tmpl.h"
#include "gemm_skinny_tmpl.h"

#define TYPE uint64_t
#define NAME(x) u64_##x
#define IS_FLOAT 0
#include "gemm_tile_tmpl.h"
#include "gemm_skinny_tmpl.h"

#if HEIGHT > 6
#define ROW_LIST(t, l)                                                         \
    {                                                                          \
        t##_##l##_1, t##_##l##_2, t##_##l##_3, t##_##l##_4, t##_##l##_5,       \
            t##_##l##_6, t##_##l##_7, t##_##l##_8, t##_##l##_9, t##_##l##_10,  \
            t##_##l##_11, t##_##l##_12, t##_##l##_13, t##_##l##_14             \
    }
#else
#define ROW_LIST(t, l)                                                         \
    {                                                                          \
        t##_##l##_1, t##_##l##_2, t##_##l##_3, t##_##l##_4, t##_##l##_5,       \
            t##_##l##_6                                                        \
    }
#endif
#define SKINNY_LIST(t, way)                                                    \
    {                                                                          \
        t##_##way##_1, t##_##way##_2, t##_##way##_3, t##_##way##_4,            \
            t##_##way##_5, t##_##way##_6, t##_##way##_7, t##_##way##_8         \
    }
#define TYPE_ENTRY(t)                                                          \
    {                                                                          \
        .height = HEIGHT, .width = t##_width,                                  \
        .depth = DEPTH_BYTES * t##_lanes / VECTOR_BYTES,                       \
        .size = VECTOR_BYTES / t##_lanes, .direct_a = DIRECT_A,                \
        .direct_columns = DIRECT_COLUMNS, .direct_b = DIRECT_B,                \
        .pack_rows = t##_pack_rows, .pack_columns = t##_pack_columns,          \
        .pack_close = t##_pack_close,                                          \
        .tile = {ROW_LIST(t, rows), ROW_LIST(t, columns)},                     \
        .narrow = {ROW_LIST(t, narrow_rows), ROW_LIST(t, narrow_columns)},     \
        .stream = SKINNY_LIST(t, stream), .dot = SKINNY_LIST(t, dot),          \
    }

const struct flex_gemm_kernels TABLE[FLEX_GEMM_TYPE_COUNT_] = {
    [FLEX_GEMM_F32] = TYPE_ENTRY(f32),
    [FLEX_GEMM_F64] = TYPE_ENTRY(f64),
    [FLEX_GEMM_U32] = TYPE_ENTRY(u32),
    [FLEX_GEMM_U64] = TYPE_ENTRY(u64),
};

#undef ROW_LIST
#undef SKINNY_LIST
#undef TYPE_ENTRY

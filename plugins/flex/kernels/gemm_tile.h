/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_tile.h - the register-level kernels of flex's own matrix product.
 *
 * One table an instruction set. A kernel multiplies a panel of so many rows of
 * A by a panel of `width` columns of B, packed or where they lie, and finishes
 * the tile of C. Elements are f32, f64, u32 or u64; every other dtype is
 * converted while it is packed (sums modulo 2^32 hold the low bits of the
 * narrow integers).
 */
#ifndef FLEX_GEMM_TILE_H
#define FLEX_GEMM_TILE_H

#include <stddef.h>
#include <stdint.h>

enum flex_gemm_type {
    FLEX_GEMM_F32,
    FLEX_GEMM_F64,
    FLEX_GEMM_U32,
    FLEX_GEMM_U64,
    FLEX_GEMM_TYPE_COUNT_
};

/* The greatest height of a panel of A, for arrays. */
enum { FLEX_GEMM_HEIGHT_MAX = 14 };
/* How a panel of A lies in memory: its rows are dense, a_stride apart, or its
 * columns are. The operand's own layout decides, also where it is packed. */
enum flex_gemm_layout { FLEX_GEMM_ROWS, FLEX_GEMM_COLUMNS };

/* The tile of C that a kernel writes. */
struct flex_gemm_tile {
    void *c;
    int64_t c_stride; /* elements between rows */
    int64_t a_stride; /* between rows (FLEX_GEMM_ROWS) or columns of A */
    int64_t b_stride; /* between rows of B, whose columns are dense */
    int32_t columns;  /* <= width; a panel of B always has WIDTH */
    int32_t fetch;    /* C is far away: fetch it while the sums are computed */
    int32_t plain;    /* neither accumulate nor relu, scaled or bias */
    int32_t accumulate; /* add to what C holds */
    int32_t relu;
    int32_t scaled;   /* the sums are multiplied by alpha first */
    double alpha;     /* floats only */
    const void *next; /* soon needed: 64 bytes a step of depth are fetched */
    const void *bias; /* `columns` elements of the computing type, or NULL */
};

typedef void (*flex_gemm_kernel_fn)(int64_t depth, const void *a, const void *b,
                                    const struct flex_gemm_tile *tile);

/*
 * Pack DEPTH x COLUMNS elements of B, whose element (k, j) lies at
 * in[k * stride + j] (pack_rows) or in[j * stride + k] (pack_columns), as one
 * panel; missing columns become zeros. pack_close: as pack_rows, but the rows
 * follow each other, COLUMNS elements each.
 */
typedef void (*flex_gemm_pack_fn)(int64_t depth, int64_t columns,
                                  const void *in, int64_t stride, void *out);

/*
 * Add to sums (ROWS x COLUMNS, rows SUM_STRIDE apart) the product of A and a
 * DEPTH x COLUMNS matrix. stream: the matrix has contiguous rows STRIDE
 * apart, A is packed as a[k * ROWS + i]. dot: it has contiguous columns
 * STRIDE apart, row i of A lies at a[i * A_STRIDE].
 */
typedef void (*flex_gemm_stream_fn)(int64_t depth, int64_t columns,
                                    const void *a, const void *in,
                                    int64_t stride, void *sums,
                                    int64_t sum_stride);
typedef void (*flex_gemm_dot_fn)(int64_t depth, int64_t columns, const void *a,
                                 int64_t a_stride, const void *in,
                                 int64_t stride, void *sums,
                                 int64_t sum_stride);

/* The most rows of stream and dot. */
enum { FLEX_SKINNY_ROWS = 8 };

struct flex_gemm_kernels {
    int32_t height; /* the best height of a panel of A */
    int32_t width;  /* columns in a panel of B */
    int32_t depth;  /* rows of B in one pass, at most */
    int32_t size;   /* bytes of an element */
    /* Rows of A up to so many bytes are read where they lie. */
    int32_t direct_a;
    int32_t direct_columns; /* the same where its columns are dense */
    /* So is B until the panels of A together have read so many bytes of it: to
     * pack it takes as long as a few panels, which then find each row of it in
     * another set of the caches. */
    int32_t direct_b;
    flex_gemm_pack_fn pack_rows;
    flex_gemm_pack_fn pack_columns;
    flex_gemm_pack_fn pack_close;
    /* By layout and height - 1; narrow: for at most half of WIDTH. */
    flex_gemm_kernel_fn tile[2][FLEX_GEMM_HEIGHT_MAX];
    flex_gemm_kernel_fn narrow[2][FLEX_GEMM_HEIGHT_MAX];
    /* By rows - 1. */
    flex_gemm_stream_fn stream[FLEX_SKINNY_ROWS];
    flex_gemm_dot_fn dot[FLEX_SKINNY_ROWS];
};

/* By enum flex_gemm_type. */
extern const struct flex_gemm_kernels
    flex_gemm_kernels_base[FLEX_GEMM_TYPE_COUNT_];
extern const struct flex_gemm_kernels
    flex_gemm_kernels_v2[FLEX_GEMM_TYPE_COUNT_];
extern const struct flex_gemm_kernels
    flex_gemm_kernels_v3[FLEX_GEMM_TYPE_COUNT_];
extern const struct flex_gemm_kernels
    flex_gemm_kernels_v4[FLEX_GEMM_TYPE_COUNT_];

#endif

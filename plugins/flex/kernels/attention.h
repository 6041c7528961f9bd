/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.h - the steps of blocked attention on blocks that are in cache.
 *
 * A "panel" is a matrix of `lanes` columns, row after row without gaps, 64-byte
 * aligned. One of scores has a query in each column, so that no step adds up
 * or compares within a vector. A "block" is a matrix whose rows lie `stride`
 * elements apart, as a tensor has them. All elements are of the computing
 * type: f64 for f64, else f32.
 *
 * Scores are logarithms to the base 2: whoever loads them multiplies by
 * log2(e).
 */
#ifndef FLEX_ATTENTION_KERNELS_H
#define FLEX_ATTENTION_KERNELS_H

#include <stdint.h>

/* Queries, and keys, that are worked on at a time: 128 keys of 64 f32 take
 * 32 KiB, and a panel with its scores stays in the first-level cache. */
enum { FLEX_ATTENTION_BLOCK = 128 };

/* One matrix in a tensor: strides in elements, of any sign. */
struct flex_matrix {
    char *data;
    uint32_t dtype;
    int64_t row, column;
};

struct flex_attention_kernels {
    int64_t lanes; /* columns of a panel */
    int64_t tile;  /* panels and blocks have room for a multiple of rows */
    int64_t size;  /* bytes of an element */

    /* Rows 0 .. ROWS - 1 of FROM times FACTOR as a block; zeros up to STRIDE
     * and to the next multiple of tile. */
    void (*load_block)(void *block, int64_t stride,
                       const struct flex_matrix *from, int64_t rows,
                       int64_t columns, double factor);
    /* The opposite: the block times FACTOR to rows 0 .. ROWS - 1 of TO. */
    void (*store_block)(const struct flex_matrix *to, const void *block,
                        int64_t stride, int64_t rows, int64_t columns,
                        double factor);
    /* Row i of FROM times FACTOR becomes column i of a panel with COLUMNS
     * rows. ROWS <= lanes; the other columns become zeros. */
    void (*load_panel)(void *panel, const struct flex_matrix *from,
                       int64_t rows, int64_t columns, double factor);
    /* Column i of PANEL times FACTORS[i] (NULL: 1) becomes row i of TO. */
    void (*store_panel)(const struct flex_matrix *to, const void *panel,
                        int64_t rows, int64_t columns, const void *factors);
    /* Nonzero if no element of the block is infinite or NaN. */
    int (*is_finite)(const void *block, int64_t stride, int64_t rows);

    /* PANEL (ROWS rows, up to a multiple of tile written) = block A (ROWS x
     * DEPTH) times panel B (DEPTH rows); or that is added to it. */
    void (*multiply)(void *panel, const void *a, int64_t stride, int64_t rows,
                     int64_t depth, const void *b);
    void (*multiply_add)(void *panel, const void *a, int64_t stride,
                         int64_t rows, int64_t depth, const void *b);
    /* PANEL = PANEL, column i times FACTORS[i] (NULL: 1), + block A (DEPTH x
     * ROWS) turned, times panel B (DEPTH rows). */
    void (*multiply_turned)(void *panel, const void *a, int64_t stride,
                            int64_t rows, int64_t depth, const void *b,
                            const void *factors);

    /* SCORES = tanh(SCORES) * FACTOR; SLOPES (NULL: not wanted) = 1 -
     * tanh(SCORES)^2. */
    void (*cap)(void *scores, void *slopes, int64_t rows, double factor);
    /* A += B, or A *= B, elementwise. */
    void (*add)(void *a, const void *b, int64_t rows);
    void (*scale)(void *a, const void *b, int64_t rows);
    /* -inf for each score whose byte of MASK, strides in bytes, is set. */
    void (*hide)(void *scores, int64_t rows, int64_t columns,
                 const uint8_t *mask, int64_t mask_row, int64_t mask_column);
    /* -inf for the columns of row i before COLUMN + i. */
    void (*hide_stairs)(void *scores, int64_t rows, int64_t column);

    /*
     * One more block of keys for the queries in the columns. MAX and SUM hold
     * the greatest score so far and the sum of 2^(score - max); SCORES become
     * such weights, and FACTORS what all earlier sums are to be multiplied by.
     */
    void (*softmax_step)(void *scores, int64_t rows, void *max, void *sum,
                         void *factors);
    /* SCORES become weights, 2^(score - LSE), and D_WEIGHTS the slopes of the
     * scores, weight * (d_weight - DELTA), 0 where the score is -inf. Further
     * rows up to a multiple of tile become 0. */
    void (*weigh)(void *scores, void *d_weights, int64_t rows, const void *lse,
                  const void *delta);
};

/* [0] f32, [1] f64. */
extern const struct flex_attention_kernels flex_attention_kernels_base[2];
extern const struct flex_attention_kernels flex_attention_kernels_v2[2];
extern const struct flex_attention_kernels flex_attention_kernels_v3[2];
extern const struct flex_attention_kernels flex_attention_kernels_v4[2];

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the steps of blocked attention on blocks that are in cache.
 *
 * A "panel" is a matrix of `lanes` columns, row after row without gaps, 64-byte
 * aligned: each column belongs to one query (or one key), so that no step ever
 * adds up or compares within a vector. A "block" is a matrix of rows `stride`
 * elements apart, as the tensor has them. All elements are of the computing
 * type: f64 for f64, else f32.
 *
 * Weights are powers of 2: whoever loads the queries multiplies them by
 * log2(e) besides the scale.
 */
#ifndef FLASH_KERNELS_H
#define FLASH_KERNELS_H

#include <stdint.h>

/* One matrix in a tensor: strides in elements, of any sign. */
struct flash_matrix {
    char *data;
    uint32_t dtype;
    int64_t row, column;
};

struct flash_kernels {
    int64_t lanes; /* columns of a panel */
    int64_t tile;  /* rows of panels and blocks have room up to a multiple */
    int64_t size;  /* bytes of an element */

    /* Rows 0..ROWS-1 of FROM times FACTOR as a block; zeros up to STRIDE and
     * to the next multiple of tile. */
    void (*load_block)(void *block, int64_t stride,
                       const struct flash_matrix *from, int64_t rows,
                       int64_t columns, double factor);
    /* The opposite: rows 0..ROWS-1 of the block to those of TO. */
    void (*store_block)(const struct flash_matrix *to, const void *block,
                        int64_t stride, int64_t rows, int64_t columns);
    /* As load_block, turned: row i of FROM becomes column i of a panel with
     * COLUMNS rows. ROWS <= lanes; the other columns become zeros. */
    void (*load_panel)(void *panel, const struct flash_matrix *from,
                       int64_t rows, int64_t columns, double factor);
    /* Column i of PANEL times FACTORS[i] becomes row i of TO: 0 where DEAD[i]
     * is set, whatever the panel holds. DEAD may be NULL. */
    void (*store_panel)(const struct flash_matrix *to, const void *panel,
                        int64_t rows, int64_t columns, const void *factors,
                        const uint8_t *dead);
    /* Nonzero if no element of the block is infinite or NaN. */
    int (*is_finite)(const void *block, int64_t stride, int64_t rows);
    /* The sum of a * b over COLUMNS of row ROW of both. */
    double (*row_dot)(const struct flash_matrix *a,
                      const struct flash_matrix *b, int64_t row,
                      int64_t columns);

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

    /* -inf for each element whose byte of MASK, strides in bytes, is set. */
    void (*hide)(void *scores, int64_t rows, int64_t columns,
                 const uint8_t *mask, int64_t mask_row, int64_t mask_column);
    /* -inf for the columns of row i before COLUMN + i. */
    void (*hide_stairs)(void *scores, int64_t rows, int64_t column);

    /*
     * One more block of keys for the queries in the columns. MAX and SUM hold
     * the greatest score so far and the sum of 2^(score - max); SCORES become
     * such weights, -0 of -inf, and FACTORS what all earlier sums are to be
     * multiplied by.
     */
    void (*softmax_step)(void *scores, int64_t rows, void *max, void *sum,
                         void *factors);
    /* WEIGHTS, as softmax_step leaves them, times FACTORS, and D_WEIGHTS the
     * slopes of the scores, weight * (d_weight - DELTA), 0 where the score was
     * -inf. Further rows up to a multiple of tile become 0. */
    void (*slopes)(void *weights, void *d_weights, int64_t rows,
                   const void *factors, const void *delta);
    /* A += B, elementwise. */
    void (*add)(void *a, const void *b, int64_t rows);
};

/*
 * The kernels for DTYPE on a processor of flex's level ISA. There are some
 * for every level: what is unknown gets the plainest.
 */
const struct flash_kernels *flash_kernels_find(const char *isa, uint32_t dtype);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move.h - kernels that move elements without looking at them, by size.
 *
 * One table an instruction set; members for elements of 1, 2, 4 and 8 bytes
 * are indexed by the binary logarithm of the size. Strides are in bytes.
 * PAST asks for stores that pass the caches: the result's lines are not read
 * before they are written and push no others out, which is for results too
 * large to be still there when they are used.
 */
#ifndef FLEX_KERNELS_MOVE_H
#define FLEX_KERNELS_MOVE_H

#include <stdint.h>

struct flex_move_kernels {
    /* Copy BYTES past the caches; fence when all of it is done, before any
     * other thread may be told so. */
    void (*stream)(void *out, const void *in, int64_t bytes);
    void (*fence)(void);
    /* Bring the lines of BYTES near that are to be written soon. */
    void (*expect)(const void *out, int64_t bytes);
    /* ROWS runs of BYTES. */
    void (*runs)(void *out, int64_t out_row, const void *in, int64_t in_row,
                 int64_t rows, int64_t bytes);
    /* COUNT elements IN_STRIDE apart to contiguous OUT. */
    void (*gather[4])(void *out, const void *in, int64_t in_stride,
                      int64_t count);
    /* OUT's row i, contiguous, is element i of each of COLUMNS columns that
     * lie IN_COLUMN apart; OUT's rows are OUT_ROW apart. PAST: fence too. */
    void (*transpose[4])(void *out, int64_t out_row, const void *in,
                         int64_t in_column, int64_t rows, int64_t columns,
                         int past);
    /* Any plane; goes through IN with the lesser of its strides first. */
    void (*plane[4])(void *out, int64_t out_row, int64_t out_column,
                     const void *in, int64_t in_row, int64_t in_column,
                     int64_t rows, int64_t columns);
};

extern const struct flex_move_kernels flex_move_base;
extern const struct flex_move_kernels flex_move_v2;
extern const struct flex_move_kernels flex_move_v3;
extern const struct flex_move_kernels flex_move_v4;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.h - the inner loops of convolution and pooling, one table an
 * instruction set and type.
 *
 * They read strips: copies of some rows of the input planes, padded, whose
 * columns are sorted by their remainder modulo the step (the stride), so
 * that what neighbouring windows read at one tap lies side by side.
 */
#ifndef FLEX_KERNELS_CONV_H
#define FLEX_KERNELS_CONV_H

#include <stdint.h>

enum {
    /* The most columns of a panel, and so the most pieces of its rows. */
    FLEX_CONV_WIDTH_MAX = 64,
    /* Elements that loops may read behind a strip and write behind a panel. */
    FLEX_CONV_SLACK = 64,
    /* Rows and columns that are turned at a time. */
    FLEX_CONV_TURN = 16,
    /* Output channels whose weights are transformed at a time, at least the
     * height of a panel. */
    FLEX_WINOGRAD_LANES = 16
};

/* How a row of a panel is put together: piece i from column[i] on is what
 * lies at offset[i] of the strip. The pieces touch and lie in order. */
struct flex_conv_pieces {
    int32_t count;
    int32_t column[FLEX_CONV_WIDTH_MAX + 1]; /* the last one's end too */
    int64_t offset[FLEX_CONV_WIDTH_MAX];
};

/* The most output channels that loops sum at once. */
enum { FLEX_CONV_DIRECT_HEIGHT = 4 };

/* Output rows of some planes as weighted sums of a strip's rows. */
struct flex_conv_direct {
    const void *strip;
    const void *weights;    /* HEIGHT for each tap */
    const int64_t *offsets; /* of each tap in the strip */
    int64_t taps;           /* of all channels */
    int64_t height;         /* planes, at most FLEX_CONV_DIRECT_HEIGHT */
    int64_t rows, columns;  /* of the output */
    int64_t strip_row;      /* elements between output rows in the strip */
    void *out;              /* rows * columns, contiguous */
    int64_t plane;          /* elements between planes */
    double bias[FLEX_CONV_DIRECT_HEIGHT];
};

/* Rows: BEFORE zeros, in[0], in[step] .. COUNT elements, BEHIND zeros. */
struct flex_conv_pad {
    int64_t rows, before, count, behind;
    int64_t step, in_row, out_row; /* in elements */
};

/* Copies of lines of a strip, one behind the other: COLUMNS elements each,
 * COUNT[i] times at steps of STEP[i], the last index fastest. */
struct flex_conv_lines {
    int64_t columns;
    int64_t count[3], step[3];
};

struct flex_conv_kernels {
    int32_t lanes; /* of a vector */
    /* Rows of zeros, elements and zeros again. */
    void (*pad)(const struct flex_conv_pad *job, const void *in, void *out);
    /* out[i * step] = in[i] */
    void (*spread)(int64_t count, const void *in, int64_t step, void *out);
    /* DEPTH rows of a panel; row k's pieces lie at strip + rows[k]. */
    void (*pack)(int64_t depth, const int64_t *rows, const void *strip,
                 const struct flex_conv_pieces *pieces, void *out);
    /* ROWS rows of OUT, OUT_ROW apart: row k is the lines from strip +
     * rows[k] on. Up to a vector less one element more is written. */
    void (*lines)(const struct flex_conv_lines *job, int64_t row_count,
                  const int64_t *rows, const void *strip, void *out,
                  int64_t out_row);
    /* out[j * OUT_ROW + i] = the sum of in[k * PART + i * IN_ROW + j] over k <
     * PARTS, for i < ROWS, j < COLUMNS; neither is above FLEX_CONV_TURN. */
    void (*turn)(int64_t rows, int64_t columns, int64_t parts, const void *in,
                 int64_t in_row, int64_t part, void *out, int64_t out_row);
    void (*direct)(const struct flex_conv_direct *job);
    /* sums[t] += the products of GRAD (ROWS x COLUMNS, contiguous) and what
     * lies under it at tap t; strips as for direct. */
    void (*direct_weight)(const struct flex_conv_direct *job, const void *grad,
                          double *sums);
    /*
     * Winograd's F(2 x 2, 3 x 3), f32 only, else NULL; POINT is the number of
     * elements between the 16 parts of what is transformed. weight: 9 rows of
     * FLEX_WINOGRAD_LANES taps, as many are written. input: 16 rows of a
     * panel, the 4 x 4 elements of each tile. output: 16 rows of sums become
     * two rows of 2 * width results; check[i] becomes NaN if one of tile i is
     * not finite.
     */
    void (*winograd_weight)(const void *taps, void *out, int64_t point);
    void (*winograd_input)(const void *in, void *out, int64_t point);
    void (*winograd_output)(const void *in, int64_t point, double bias,
                            void *out, void *check);
};

enum { FLEX_CONV_F32, FLEX_CONV_F64, FLEX_CONV_TYPE_COUNT_ };

extern const struct flex_conv_kernels
    flex_conv_kernels_base[FLEX_CONV_TYPE_COUNT_];
extern const struct flex_conv_kernels
    flex_conv_kernels_v2[FLEX_CONV_TYPE_COUNT_];
extern const struct flex_conv_kernels
    flex_conv_kernels_v3[FLEX_CONV_TYPE_COUNT_];
extern const struct flex_conv_kernels
    flex_conv_kernels_v4[FLEX_CONV_TYPE_COUNT_];

#endif

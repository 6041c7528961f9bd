/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - kernels that read between the elements: sums of a few elements
 * of a row, a plane or of a few rows, each with its weight.
 *
 * One table an instruction set and computing type (f32, f64). OUT is none of
 * the inputs. What has weight 0 is not added, be it NaN. Sums of more than 32
 * run in f64.
 */
#ifndef FLEX_SAMPLE_H
#define FLEX_SAMPLE_H

#include <stdint.h>

/* A plane that is read at the places of a grid, which are -1 .. 1 over it. */
struct flex_sample_plane {
    int64_t size[2];     /* height, width; together below 2^31 */
    uint32_t is_nearest; /* else bilinear, of four elements */
    uint32_t padding;    /* enum flex_sample_padding */
    uint32_t align_corners;
};

enum flex_sample_padding { /* as grid_sample numbers them */
                           FLEX_SAMPLE_ZEROS,
                           FLEX_SAMPLE_BORDER,
                           FLEX_SAMPLE_REFLECTION
};

/* Where places lie: tables for pick, of one tap for nearest, else of four. An
 * element outside has weight 0. */
struct flex_sample_places {
    int32_t *at;
    void *weights;
    void *slopes[2]; /* the weights' by the grid's y and x; NULL: not asked */
    int64_t stride;
};

struct flex_sample_kernels {
    /* out[i] = sum of rows[k][i] * weights[k] for COUNT rows, whose weights
     * are not 0. */
    void (*blend)(void *out, const void *const *rows, const void *weights,
                  int64_t count, int64_t n);
    /* out[i] = sum of x[at[k * stride + i]] * weights[k * stride + i] for TAPS
     * of k. */
    void (*pick)(void *out, const void *x, const int32_t *at,
                 const void *weights, int64_t stride, int64_t taps, int64_t n);
    /* sums[at[k * stride + i]] += g[i] * weights[k * stride + i] where the
     * weight is not 0. */
    void (*put)(double *sums, const void *g, const int32_t *at,
                const void *weights, int64_t stride, int64_t taps, int64_t n);
    /* Find N places of GRID, pairs (x, y). With slopes, a place that is no
     * number has weights 0, else NaN. */
    void (*places)(const struct flex_sample_places *out,
                   const struct flex_sample_plane *plane, const void *grid,
                   int64_t n);
    /* The same for places given as rows and columns of the plane, which is
     * read as with padding by zeros. */
    void (*corners)(const struct flex_sample_places *out,
                    const struct flex_sample_plane *plane, const void *rows,
                    const void *columns, int64_t n);
    /* out[i], pairs, = x[i] times the first two of FACTORS plus the others. */
    void (*lines)(void *out, const void *x, const void *factors, int64_t n);
    /* values[i] *= factors[i]; out[i] = a[i] + b[i]. */
    void (*scale)(void *values, const void *factors, int64_t n);
    void (*add)(void *out, const void *a, const void *b, int64_t n);
    /* sums[i] += a[i] * b[i]. */
    void (*add_products)(double *sums, const void *a, const void *b, int64_t n);
    /* out[i * step] = sums[i]. */
    void (*round)(void *out, int64_t step, const double *sums, int64_t n);
};

enum { FLEX_SAMPLE_F32, FLEX_SAMPLE_F64, FLEX_SAMPLE_COUNT_ };

extern const struct flex_sample_kernels
    flex_sample_kernels_base[FLEX_SAMPLE_COUNT_];
extern const struct flex_sample_kernels
    flex_sample_kernels_v2[FLEX_SAMPLE_COUNT_];
extern const struct flex_sample_kernels
    flex_sample_kernels_v3[FLEX_SAMPLE_COUNT_];
extern const struct flex_sample_kernels
    flex_sample_kernels_v4[FLEX_SAMPLE_COUNT_];

#endif

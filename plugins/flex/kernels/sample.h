/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - kernels that read between the elements: sums of a few elements
 * of a row or of a few rows, each with its weight.
 *
 * One table an instruction set and computing type (f32, f64). OUT is none of
 * the inputs. What has weight 0 is not added, be it NaN. Sums of more than 32
 * run in f64.
 */
#ifndef FLEX_SAMPLE_H
#define FLEX_SAMPLE_H

#include <stdint.h>

struct flex_sample_kernels {
    /* out[i] = sum of rows[k][i] * weights[k] for COUNT rows, whose weights
     * are not 0. */
    void (*blend)(void *out, const void *const *rows, const void *weights,
                  int64_t count, int64_t n);
    /* out[i] = sum of x[at[k * stride + i]] * weights[k * stride + i] for TAPS
     * of k. */
    void (*pick)(void *out, const void *x, const int32_t *at,
                 const void *weights, int64_t stride, int64_t taps, int64_t n);
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

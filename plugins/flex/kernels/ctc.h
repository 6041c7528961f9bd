/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctc.h - kernels of connectionist temporal classification.
 *
 * One table an instruction set and computing type (f32, f64). Logarithms of
 * probabilities are f64, so that their sums over many steps lose nothing; what
 * is between two of them is small and of the computing type.
 */
#ifndef FLEX_CTC_H
#define FLEX_CTC_H

#include <stdint.h>

/* Stands for the logarithm of 0: sums of it stay numbers. */
#define FLEX_CTC_NOTHING (-1e30)

struct flex_ctc_kernels {
    /* One step over N states: NEXT[i] is the logarithm of the sum of what
     * NOW[i], NOW[i - 1] and, plus SKIP[i], NOW[i - 2] are logarithms of, plus
     * EMIT[i]. */
    void (*step)(double *next, const double *now, const double *skip,
                 const void *emit, int64_t n);
    /* G, the gradient of a step's NEXT, becomes that of its NOW. SHARES has
     * room for 3 (N + 2). */
    void (*back)(double *g, const double *now, const double *skip,
                 double *shares, int64_t n);
};

enum { FLEX_CTC_F32, FLEX_CTC_F64, FLEX_CTC_COUNT_ };

extern const struct flex_ctc_kernels flex_ctc_kernels_base[FLEX_CTC_COUNT_];
extern const struct flex_ctc_kernels flex_ctc_kernels_v2[FLEX_CTC_COUNT_];
extern const struct flex_ctc_kernels flex_ctc_kernels_v3[FLEX_CTC_COUNT_];
extern const struct flex_ctc_kernels flex_ctc_kernels_v4[FLEX_CTC_COUNT_];

#endif

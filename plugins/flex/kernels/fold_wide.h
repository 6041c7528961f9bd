/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_wide.h - vectors of 64-bit accumulators, and elements widened to them.
 *
 * Included by table_tmpl.h for one instruction set. A vector is as wide as the
 * processor's own (LANES); FOLD_CHAINS sums side by side are the same number
 * for all of them, and so are the results. The compiler's own conversions of
 * vectors go by halves, hence the intrinsics.
 */
#ifndef FLEX_FOLD_WIDE_H
#define FLEX_FOLD_WIDE_H

#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum {
#if defined(__AVX512F__)
    FOLD_LANES = 8,
    FOLD_BYTES = 64, /* of the processor's vectors */
#elif defined(__AVX2__)
    FOLD_LANES = 4,
    FOLD_BYTES = 32,
#else
    FOLD_LANES = 4,
    FOLD_BYTES = 16,
#endif
    FOLD_CHAINS = 32,
    FOLD_VECTORS = FOLD_CHAINS / FOLD_LANES,
    /* Two cache lines as vectors, for folds that keep the elements' type. */
    FOLD_LINES = 128 / FOLD_BYTES
};

typedef double wide_f64 __attribute__((vector_size(FOLD_LANES * 8)));
typedef uint64_t wide_u64 __attribute__((vector_size(FOLD_LANES * 8)));

static inline void widen_f32(wide_f64 *out, const float *x)
{
#if defined(__AVX512F__)
    *out = (wide_f64)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#elif defined(__AVX2__)
    *out = (wide_f64)_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
    *out = (wide_f64){x[0], x[1], x[2], x[3]};
#endif
}

static inline void widen_i32(wide_u64 *out, const int32_t *x)
{
#if defined(__AVX512F__)
    *out = (wide_u64)_mm512_cvtepi32_epi64(
        _mm256_loadu_si256((const __m256i *)(const void *)x));
#elif defined(__AVX2__)
    *out = (wide_u64)_mm256_cvtepi32_epi64(
        _mm_loadu_si128((const __m128i *)(const void *)x));
#else
    *out = (wide_u64){(uint64_t)x[0], (uint64_t)x[1], (uint64_t)x[2],
                      (uint64_t)x[3]};
#endif
}

static inline void widen_u32(wide_u64 *out, const uint32_t *x)
{
#if defined(__AVX512F__)
    *out = (wide_u64)_mm512_cvtepu32_epi64(
        _mm256_loadu_si256((const __m256i *)(const void *)x));
#elif defined(__AVX2__)
    *out = (wide_u64)_mm256_cvtepu32_epi64(
        _mm_loadu_si128((const __m128i *)(const void *)x));
#else
    *out = (wide_u64){x[0], x[1], x[2], x[3]};
#endif
}

static inline void widen_f64(wide_f64 *out, const double *x)
{
    __builtin_memcpy(out, x, sizeof(*out));
}

static inline void widen_u64(wide_u64 *out, const void *x)
{
    __builtin_memcpy(out, x, sizeof(*out));
}

#endif

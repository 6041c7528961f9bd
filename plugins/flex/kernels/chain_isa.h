/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_isa.h - chains of one instruction set. Included by chain_base.c and
 * _v2.c, _v3.c, _v4.c with TABLE defined.
 */
#include "chain.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#include "chain_half.h"

/* Names of a link's functions and its number; LINK may be a macro. */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define FUNCTION(link) PASTE(MODE(link_), link)
#define SINGLE(link) PASTE(MODE(single_), link)
#define CODE(link) PASTE(FLEX_LINK_, link)

#define TYPE float
#define BITS int32_t
#define LANES (VECTOR_BYTES / 4)
#define NAME(x) f32_##x
#define SQRT(x) sqrtf(x)
#if defined(__AVX512F__)
#define ROOT(v) _mm512_sqrt_ps((__m512)(v))
#define STREAM(p, v) _mm512_stream_ps(p, (__m512)(v))
#elif defined(__AVX2__)
#define ROOT(v) _mm256_sqrt_ps((__m256)(v))
#define STREAM(p, v) _mm256_stream_ps(p, (__m256)(v))
#elif defined(__SSE2__)
#define ROOT(v) _mm_sqrt_ps((__m128)(v))
#define STREAM(p, v) _mm_stream_ps(p, (__m128)(v))
#endif
#include "chain_tmpl.h"

/* Nothing that is f64 here is to be a half. */
#define f64_round_f16(x) (x)
#define f64_round_bf16(x) (x)
#define TYPE double
#define BITS int64_t
#define LANES (VECTOR_BYTES / 8)
#define NAME(x) f64_##x
#define SQRT(x) sqrt(x)
#if defined(__AVX512F__)
#define ROOT(v) _mm512_sqrt_pd((__m512d)(v))
#define STREAM(p, v) _mm512_stream_pd(p, (__m512d)(v))
#elif defined(__AVX2__)
#define ROOT(v) _mm256_sqrt_pd((__m256d)(v))
#define STREAM(p, v) _mm256_stream_pd(p, (__m256d)(v))
#elif defined(__SSE2__)
#define ROOT(v) _mm_sqrt_pd((__m128d)(v))
#define STREAM(p, v) _mm_stream_pd(p, (__m128d)(v))
#endif
#include "chain_tmpl.h"

#undef PASTE
#undef PASTE_
#undef FUNCTION
#undef SINGLE
#undef CODE

const struct flex_chain_kernels TABLE = {.f32 = f32_chain, .f64 = f64_chain};

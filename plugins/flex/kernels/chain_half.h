/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_half.h - vectors of f32 rounded to f16 or bf16, still as f32. Included
 * with VECTOR_BYTES defined. As in convert.h, whose functions the ops alone
 * use: the same bits.
 */
#ifndef FLEX_CHAIN_HALF_H
#define FLEX_CHAIN_HALF_H

typedef float half_floats __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef uint32_t half_bits
    __attribute__((vector_size(VECTOR_BYTES), may_alias));

static inline half_bits half_pick(half_bits mask, half_bits a, half_bits b)
{
    return (a & mask) | (b & ~mask);
}

static inline half_floats f32_round_bf16(half_floats x)
{
    const half_bits bits = (half_bits)x;
    const half_bits nearest = bits + 0x7fff + (bits >> 16 & 1);
    const half_bits is_nan = (half_bits)((bits & 0x7fffffff) > 0x7f800000);

    return (half_floats)(half_pick(is_nan, bits | 0x400000, nearest) &
                         0xffff0000);
}

#if defined(__AVX512F__)
static inline half_floats f32_round_f16(half_floats x)
{
    return (half_floats)_mm512_cvtph_ps(
        _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__F16C__) && VECTOR_BYTES == 32
static inline half_floats f32_round_f16(half_floats x)
{
    return (half_floats)_mm256_cvtph_ps(
        _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
}
#else
/* Below 2^-14 the sum with 0.5, whose unit is f16's smallest number, rounds;
 * above, half a unit of f16's 10 bits is added, less one if already even. */
static inline half_floats f32_round_f16(half_floats x)
{
    const half_bits sign = (half_bits)x & 0x80000000;
    const half_bits a = (half_bits)x & 0x7fffffff;
    const half_floats tiny = ((half_floats)a + 0.5f) - 0.5f;
    const half_bits normal = (a + 0xfff + (a >> 13 & 1)) & 0xffffe000;
    const half_bits is_tiny = (half_bits)(a < 0x38800000);
    const half_bits is_large = (half_bits)(a >= 0x477ff000);
    const half_bits is_nan = (half_bits)(a > 0x7f800000);
    half_bits out = half_pick(is_tiny, (half_bits)tiny, normal);

    out = half_pick(is_large, (half_bits){0} + 0x7f800000, out);
    out = half_pick(is_nan, (a | 0x400000) & 0xffffe000, out);
    return (half_floats)(out | sign);
}
#endif

#endif

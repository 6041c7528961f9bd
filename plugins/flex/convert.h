/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - single f16 and bf16 numbers to and from f32 and f64, exact or
 * rounded to nearest even. Whole rows go through struct flex_kernels.
 */
#ifndef FLEX_CONVERT_H
#define FLEX_CONVERT_H

#include <stdint.h>
#include <string.h>

static inline uint32_t flex_bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float flex_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Moving the 15 bits of magnitude to the place of an f32 leaves an exponent
 * that is 112 too small: one exact product corrects it, subnormals too. */
static inline float flex_f32_of_f16(uint16_t half)
{
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    float scaled = flex_f32_of_bits(magnitude) * 0x1p112f;
    uint32_t bits = flex_bits_of_f32(scaled);
    uint32_t special = magnitude | 0x7f800000u;

    bits = magnitude >= 0x0f800000u ? special : bits;
    return flex_f32_of_bits(bits | (uint32_t)(half & 0x8000) << 16);
}

/*
 * Normal results round by adding half a unit (less one if already even).
 * Below 2^-14 the sum with 0.5, whose unit is f16's smallest number, rounds.
 */
static inline uint16_t flex_f16_of_f32(float x)
{
    uint32_t bits = flex_bits_of_f32(x);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t a = bits & 0x7fffffffu;
    uint32_t normal =
        (a + 0xfffu + (a >> 13 & 1u) - (UINT32_C(112) << 23)) >> 13;
    uint32_t tiny = flex_bits_of_f32(flex_f32_of_bits(a) + 0.5f) - 0x3f000000u;
    uint32_t half = a < 0x38800000u ? tiny : normal;

    half = a >= 0x47800000u ? 0x7c00u : half;
    half = a > 0x7f800000u ? (0x7e00u | (a >> 13 & 0x1ffu)) : half;
    return (uint16_t)(half | sign);
}

static inline float flex_f32_of_bf16(uint16_t half)
{
    return flex_f32_of_bits((uint32_t)half << 16);
}

static inline uint16_t flex_bf16_of_f32(float x)
{
    uint32_t bits = flex_bits_of_f32(x);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40u;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/*
 * X as an f32 rounded to odd: an inexact result has its last bit set, so a
 * second rounding to a shorter format is as good as one from X itself
 * (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums").
 */
static inline float flex_f32_odd_of_f64(double x)
{
    float nearest = (float)x;
    uint32_t bits = flex_bits_of_f32(nearest);
    double back = (double)nearest;
    double magnitude = x < 0 ? -x : x;
    double back_magnitude = back < 0 ? -back : back;

    if (back == x || x != x)
        return nearest;
    if (back_magnitude > magnitude) /* rounded away from zero: step back */
        bits--;
    return flex_f32_of_bits(bits | 1u);
}

static inline uint16_t flex_f16_of_f64(double x)
{
    return flex_f16_of_f32(flex_f32_odd_of_f64(x));
}

static inline uint16_t flex_bf16_of_f64(double x)
{
    return flex_bf16_of_f32(flex_f32_odd_of_f64(x));
}

#endif

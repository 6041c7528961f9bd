/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h - the 16-bit floats as the core reads them: exact widening to f32.
 */
#ifndef HOB__HALF_H
#define HOB__HALF_H

#include <stdint.h>
#include <string.h>

static inline float hob__f32_of_bits(uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

/* bf16 is the upper half of an f32. */
static inline float hob__f32_of_bf16(uint16_t half)
{
    return hob__f32_of_bits((uint32_t)half << 16);
}

/* IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. */
static inline float hob__f32_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1f;
    uint32_t fraction = half & 0x3ff;

    if (exponent == 0x1f) /* infinity, or a NaN with its payload */
        return hob__f32_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent) /* to f32's bias of 127 */
        return hob__f32_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    /* Subnormal: a multiple of 2^-24, which f32 holds as a normal number. */
    return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.c - elements as doubles and back, and a generator for them.
 */
#include "check.h"

#include "half.h"

#include <math.h>
#include <string.h>

uint64_t check_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double check_uniform(uint64_t *state)
{
    return (double)(check_random(state) >> 11) * 0x1p-53;
}

/* The nearest binary16, ties to even. Not fast. */
static uint16_t f16_of(double value)
{
    double size = fabs(value);
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    double steps;

    if (isnan(value))
        return 0x7e00;
    if (size >= 65520) /* half a step beyond the greatest */
        return sign | 0x7c00;
    if (size < 0x1p-14) /* subnormal: multiples of 2^-24 */
        return (uint16_t)(sign + (uint16_t)nearbyint(size * 0x1p24));
    (void)frexp(size, &exponent); /* size in [2^(e-1), 2^e) */
    steps = nearbyint(ldexp(size, 11 - exponent));
    /* A carry into the exponent is just what addition does. */
    return (uint16_t)(sign + ((exponent + 14) << 10) + (int)steps - 1024);
}

static uint16_t bf16_of(double value)
{
    float narrow = (float)value;
    uint32_t bits;

    memcpy(&bits, &narrow, sizeof(bits));
    if (isnan(value))
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

double check_decode(uint32_t dtype, const void *element)
{
    union {
        double f64;
        float f32;
        uint16_t half;
        int64_t i64;
        int32_t i32;
        int16_t i16;
        int8_t i8;
        uint64_t u64;
        uint32_t u32;
        uint8_t u8;
    } u;

    memcpy(&u, element, hob_dtype_size(dtype));
    switch (dtype) {
    case HOB_DTYPE_F64:
        return u.f64;
    case HOB_DTYPE_F32:
        return (double)u.f32;
    case HOB_DTYPE_F16:
        return (double)hob__f32_of_f16(u.half);
    case HOB_DTYPE_BF16:
        return (double)hob__f32_of_bf16(u.half);
    case HOB_DTYPE_I64:
        return (double)u.i64;
    case HOB_DTYPE_I32:
        return u.i32;
    case HOB_DTYPE_I16:
        return u.i16;
    case HOB_DTYPE_I8:
        return u.i8;
    case HOB_DTYPE_U64:
        return (double)u.u64;
    case HOB_DTYPE_U32:
        return u.u32;
    case HOB_DTYPE_U16:
        return u.half;
    default:
        return u.u8;
    }
}

static void encode_signed(uint32_t size, double value, void *element)
{
    double limit = ldexp(1, (int)size * 8 - 1);
    int64_t number = value >= limit    ? INT64_MAX >> (64 - size * 8)
                     : value <= -limit ? INT64_MIN >> (64 - size * 8)
                                       : (int64_t)value;

    memcpy(element, &number, size); /* little-endian: the low bytes */
}

static void encode_unsigned(uint32_t size, double value, void *element)
{
    double limit = ldexp(1, (int)size * 8);
    uint64_t number = value >= limit ? UINT64_MAX
                      : value <= 0   ? 0
                                     : (uint64_t)value;

    memcpy(element, &number, size);
}

void check_encode(uint32_t dtype, double value, void *element)
{
    uint32_t size = hob_dtype_size(dtype);
    float narrow = (float)value;
    uint16_t half;
    uint8_t truth = value != 0;

    if (dtype == HOB_DTYPE_F64) {
        memcpy(element, &value, size);
    } else if (dtype == HOB_DTYPE_F32) {
        memcpy(element, &narrow, size);
    } else if (dtype == HOB_DTYPE_F16 || dtype == HOB_DTYPE_BF16) {
        half = dtype == HOB_DTYPE_F16 ? f16_of(value) : bf16_of(value);
        memcpy(element, &half, size);
    } else if (dtype == HOB_DTYPE_BOOL) {
        memcpy(element, &truth, size);
    } else if (HOB_MASK_SIGNED & HOB_DTYPE_BIT(dtype)) {
        encode_signed(size, value, element);
    } else {
        encode_unsigned(size, value, element);
    }
}

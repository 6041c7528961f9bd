/* SPDX-License-Identifier: Apache-2.0 */
#include "flex.h"

#include "convert.h"

#include <math.h>
#include <string.h>

/* Doubles outside the range give the nearest bound, NaN gives 0: as cast. */
static int64_t i64_of_f64(double x)
{
    if (x != x)
        return 0;
    if (x >= 0x1p63)
        return INT64_MAX;
    return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

static uint64_t u64_of_f64(double x)
{
    if (x != x || x <= 0)
        return 0;
    return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

/* The 64-bit pattern of an integer scalar; narrower dtypes take its low
 * bytes. */
static uint64_t bits_of(const hob_value *scalar, uint32_t dtype)
{
    if (scalar->tag != HOB_TAG_F64)
        return scalar->u.u64;
    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_UNSIGNED)
        return u64_of_f64(scalar->u.f64);
    return (uint64_t)i64_of_f64(scalar->u.f64);
}

static void store_bits(uint64_t bits, uint32_t size, void *out)
{
    uint8_t b8 = (uint8_t)bits;
    uint16_t b16 = (uint16_t)bits;
    uint32_t b32 = (uint32_t)bits;

    if (size == 1)
        memcpy(out, &b8, sizeof(b8));
    else if (size == 2)
        memcpy(out, &b16, sizeof(b16));
    else if (size == 4)
        memcpy(out, &b32, sizeof(b32));
    else
        memcpy(out, &bits, sizeof(bits));
}

hob_value flex_scalar_bound(uint32_t dtype, int upper)
{
    const uint32_t bits = hob_dtype_size(dtype) * 8;

    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT)
        return hob_f64(upper ? INFINITY : -INFINITY);
    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_UNSIGNED)
        return hob_u64(upper ? UINT64_MAX : 0);
    return hob_i64(upper ? (int64_t)(UINT64_MAX >> (65 - bits))
                         : -(int64_t)(UINT64_MAX >> (65 - bits)) - 1);
}

void flex_scalar_store(const hob_value *scalar, uint32_t dtype, void *out)
{
    double number = flex_scalar_f64(scalar);
    float single = (float)number;
    uint64_t bits;

    switch (dtype) {
    case HOB_DTYPE_F64:
        memcpy(out, &number, sizeof(number));
        return;
    case HOB_DTYPE_F32:
        memcpy(out, &single, sizeof(single));
        return;
    case HOB_DTYPE_F16:
        bits = flex_f16_of_f64(number);
        break;
    case HOB_DTYPE_BF16:
        bits = flex_bf16_of_f64(number);
        break;
    case HOB_DTYPE_BOOL:
        bits = scalar->tag == HOB_TAG_F64 ? scalar->u.f64 != 0
                                          : scalar->u.u64 != 0;
        break;
    default:
        bits = bits_of(scalar, dtype);
        break;
    }
    store_bits(bits, hob_dtype_size(dtype), out);
}

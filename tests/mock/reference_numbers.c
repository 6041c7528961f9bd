/* SPDX-License-Identifier: Apache-2.0 */
#include "reference_numbers.h"

#include <math.h>
#include <string.h>

/* Round X to DIGITS binary digits, none below 2^LEAST: the nearest such
 * number, ties to even, since the quotient is rounded so. */
static double round_to(double x, int digits, int least)
{
    int exponent;
    double unit;

    if (x == 0 || !isfinite(x))
        return x;
    exponent = ilogb(x) - (digits - 1);
    unit = ldexp(1, exponent < least ? least : exponent);
    return nearbyint(x / unit) * unit;
}

/* The bits of a float of 1 + EXPONENT_BITS + FRACTION_BITS. */
static uint16_t half_bits(double x, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int least = 1 - bias - fraction_bits;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    uint16_t infinite = (uint16_t)(((1 << exponent_bits) - 1) << fraction_bits);
    double r = fabs(round_to(x, fraction_bits + 1, least));

    if (isnan(x))
        return (uint16_t)(infinite | 1 << (fraction_bits - 1));
    if (isinf(r) || (r != 0 && ilogb(r) > bias))
        return sign | infinite;
    if (r == 0 || ilogb(r) < 1 - bias)
        return (uint16_t)(sign | (uint16_t)ldexp(r, -least));
    /* The leading 1 adds one to the exponent field: take it off there. */
    return (uint16_t)(sign + ((ilogb(r) + bias - 1) << fraction_bits) +
                      (int)ldexp(r, fraction_bits - ilogb(r)));
}

static double half_value(uint16_t bits, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = bits & ((1 << fraction_bits) - 1);
    double x;

    if (exponent == (1 << exponent_bits) - 1)
        x = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        x = ldexp(fraction, 1 - bias - fraction_bits);
    else
        x = ldexp(fraction + (1 << fraction_bits),
                  exponent - bias - fraction_bits);
    return bits & 0x8000 ? -x : x;
}

struct number number_load(const struct hob_view *view, int64_t offset)
{
    uint32_t size = hob_dtype_size(view->dtype);
    const char *at = (const char *)view->data + offset * (int64_t)size;
    struct number number = {0, 0};
    float single;
    uint16_t half;

    switch (view->dtype) {
    case HOB_DTYPE_F64:
        memcpy(&number.f, at, sizeof(number.f));
        break;
    case HOB_DTYPE_F32:
        memcpy(&single, at, sizeof(single));
        number.f = (double)single;
        break;
    case HOB_DTYPE_F16:
        memcpy(&half, at, sizeof(half));
        number.f = half_value(half, 5, 10);
        break;
    case HOB_DTYPE_BF16:
        memcpy(&half, at, sizeof(half));
        number.f = half_value(half, 8, 7);
        break;
    default:
        for (uint32_t i = 0; i < size; i++)
            number.u |= (uint64_t)(uint8_t)at[i] << (8 * i);
        if (is_signed(view->dtype) && number.u >> (8 * size - 1))
            number.u |= size < 8 ? UINT64_MAX << (8 * size) : 0;
    }
    return number;
}

void number_store(const struct hob_view *view, int64_t offset,
                  struct number number)
{
    uint32_t size = hob_dtype_size(view->dtype);
    char *at = (char *)view->data + offset * (int64_t)size;
    float single = (float)number.f;
    uint16_t half;

    switch (view->dtype) {
    case HOB_DTYPE_F64:
        memcpy(at, &number.f, sizeof(number.f));
        break;
    case HOB_DTYPE_F32:
        memcpy(at, &single, sizeof(single));
        break;
    case HOB_DTYPE_F16:
        half = half_bits(number.f, 5, 10);
        memcpy(at, &half, sizeof(half));
        break;
    case HOB_DTYPE_BF16:
        half = half_bits(number.f, 8, 7);
        memcpy(at, &half, sizeof(half));
        break;
    case HOB_DTYPE_BOOL:
        *at = number.u != 0;
        break;
    default:
        for (uint32_t i = 0; i < size; i++)
            at[i] = (char)(uint8_t)(number.u >> (8 * i));
    }
}

/* X cut toward zero, kept within DTYPE. */
static uint64_t saturate(double x, uint32_t dtype)
{
    int bits = (int)(8 * hob_dtype_size(dtype));
    double most, least = 0;

    if (isnan(x))
        return 0;
    if (is_signed(dtype)) {
        most = ldexp(1, bits - 1);
        least = -most;
    } else {
        most = ldexp(1, bits);
    }
    x = trunc(x);
    if (x >= most)
        return is_signed(dtype) ? (UINT64_C(1) << (bits - 1)) - 1
                                : UINT64_MAX >> (64 - bits);
    if (x <= least)
        return (uint64_t)(int64_t)least;
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

struct number number_cast(struct number number, uint32_t from, uint32_t to)
{
    if (to == HOB_DTYPE_BOOL)
        number.u = is_float(from) ? number.f != 0 : number.u != 0;
    else if (is_float(from) && !is_float(to))
        number.u = saturate(number.f, to);
    else if (is_float(to) && !is_float(from))
        number.f =
            is_signed(from) ? (double)(int64_t)number.u : (double)number.u;
    return number;
}

struct number number_scalar(const hob_value *value, uint32_t dtype)
{
    struct number number = {0, 0};

    if (value->tag == HOB_TAG_F64) {
        number.f = value->u.f64;
        return number_cast(number, HOB_DTYPE_F64, dtype);
    }
    number.u = value->u.u64;
    return number_cast(
        number, value->tag == HOB_TAG_U64 ? HOB_DTYPE_U64 : HOB_DTYPE_I64,
        dtype);
}

int number_compare(struct number a, struct number b, uint32_t dtype)
{
    if (is_float(dtype))
        return isunordered(a.f, b.f) ? 2 : (a.f > b.f) - (a.f < b.f);
    if (is_signed(dtype))
        return ((int64_t)a.u > (int64_t)b.u) - ((int64_t)a.u < (int64_t)b.u);
    return (a.u > b.u) - (a.u < b.u);
}

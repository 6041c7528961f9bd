/* SPDX-License-Identifier: Apache-2.0 */
#include "scalar.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* X to the nearest number with BITS bits of precision and exponents above
 * LEAST, ties to even; what is out of range becomes infinite. */
static double round_to(double x, int bits, int least, double most)
{
    double scale, rounded;
    int exponent;

    if (x == 0 || !isfinite(x))
        return x;
    frexp(x, &exponent);
    scale = ldexp(1, bits - (exponent > least ? exponent : least));
    rounded = rint(x * scale) / scale;
    return fabs(rounded) > most ? copysign(INFINITY, x) : rounded;
}

double cube_round(double x, uint32_t dtype)
{
    switch (dtype) {
    case HOB_DTYPE_F32:
        return (double)(float)x;
    case HOB_DTYPE_F16:
        return round_to(x, 11, -13, 65504);
    case HOB_DTYPE_BF16:
        return round_to(x, 8, -125, 0x1.fep127);
    default:
        return x;
    }
}

/* Outside the range the nearest bound, 0 for NaN: as cast. */
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
    if (!(x > 0))
        return 0;
    return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

/* The low bits of NUMBER as an integer of DTYPE. */
static int64_t narrow(uint64_t number, uint32_t dtype)
{
    const uint32_t drop = 64 - 8 * hob_dtype_size(dtype);

    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED)
        return (int64_t)(number << drop) >> drop;
    return (int64_t)(number << drop >> drop);
}

int64_t cube_scalar_i64(const hob_value *scalar, uint32_t dtype)
{
    if (scalar->tag != HOB_TAG_F64)
        return narrow(scalar->u.u64, dtype);
    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_UNSIGNED)
        return narrow(u64_of_f64(scalar->u.f64), dtype);
    return narrow((uint64_t)i64_of_f64(scalar->u.f64), dtype);
}

static double f64_of(const hob_value *scalar)
{
    return scalar->tag == HOB_TAG_F64   ? scalar->u.f64
           : scalar->tag == HOB_TAG_U64 ? (double)scalar->u.u64
                                        : (double)scalar->u.i64;
}

/* The bits of X, which is an f16. */
static uint64_t bits_of_f16(double x)
{
    const uint64_t sign = signbit(x) ? 0x8000 : 0;
    const double magnitude = fabs(x);
    int exponent;

    if (x != x)
        return 0x7e00;
    if (isinf(x))
        return sign | 0x7c00;
    if (magnitude < 0x1p-14)
        return sign | (uint64_t)(magnitude * 0x1p24);
    /* The highest bit of the number adds one to the exponent. */
    frexp(magnitude, &exponent);
    return sign | (((uint64_t)(exponent + 13) << 10) +
                   (uint64_t)ldexp(magnitude, 11 - exponent));
}

uint64_t cube_scalar_bits(const hob_value *scalar, uint32_t dtype)
{
    const double number = cube_round(f64_of(scalar), dtype);
    const float single = (float)number;
    uint64_t bits = 0;
    uint32_t word;

    memcpy(&bits, &number, sizeof(bits));
    memcpy(&word, &single, sizeof(word));
    switch (dtype) {
    case HOB_DTYPE_F64:
        return bits;
    case HOB_DTYPE_F32:
        return word;
    case HOB_DTYPE_F16:
        return bits_of_f16(number);
    case HOB_DTYPE_BF16:
        return word >> 16;
    case HOB_DTYPE_BOOL:
        return scalar->tag == HOB_TAG_F64 ? number != 0 : scalar->u.u64 != 0;
    default:
        bits = (uint64_t)cube_scalar_i64(scalar, dtype);
        return bits & UINT64_MAX >> (64 - 8 * hob_dtype_size(dtype));
    }
}

void cube_job_scalar(struct cube_job *job, const hob_value *scalar,
                     uint32_t dtype)
{
    const double number = f64_of(scalar);

    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT)
        cube_job_f64(job, cube_round(number, dtype));
    else if (dtype == HOB_DTYPE_BOOL)
        cube_job_i64(job, scalar->tag == HOB_TAG_F64 ? number != 0
                                                     : scalar->u.u64 != 0);
    else
        cube_job_i64(job, cube_scalar_i64(scalar, dtype));
}

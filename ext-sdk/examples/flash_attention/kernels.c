/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - the kernels for each level of x86-64, and for any processor.
 *
 * A level's functions carry it as an attribute, so the file is compiled as
 * the rest is; flex says which level it found, or was told to use.
 */
#include "kernels.h"

#include <hob/types.h>

#include <math.h>
#include <string.h>

/* Elements that are converted at a time. */
enum { PIECE = 64 };

/* ln(2)^i / i!, the series of 2^x. */
static const double exp2_series[] = {
    1.0,
    0.6931471805599453,
    0.2402265069591007,
    0.055504108664821576,
    0.009618129107628477,
    0.0013333558146428441,
    0.00015403530393381606,
    1.5252733804059838e-05,
    1.3215486790144305e-06,
    1.0178086009239696e-07,
    7.054911620801121e-09,
    4.44553827187081e-10,
    2.5678435993488196e-11,
    1.3691488853904124e-12,
};

static inline float float_of(uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

static inline uint32_t bits_of(float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

/* The exponent of binary16, moved to its place, is 112 too small; a product
 * corrects it for subnormal numbers too. */
static inline float from_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t size = (uint32_t)(half & 0x7fff) << 13;
    const uint32_t bits = bits_of(float_of(size) * 0x1p112f);

    return float_of(sign | (size >= 0x7c00u << 13 ? size | 0x7f800000u : bits));
}

/* Rounded to nearest, ties to even. */
static inline uint16_t to_f16(float number)
{
    const uint32_t bits = bits_of(number), size = bits & 0x7fffffff;
    uint32_t half;

    if (size > 0x7f800000) /* NaN */
        half = 0x7e00;
    else if (size >= 0x47800000) /* 65536 */
        half = 0x7c00;
    else if (size < 0x38800000) /* subnormal: 1/2 has its unit */
        half = bits_of(float_of(size) + 0.5f) - 0x3f000000;
    else
        half = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static inline float from_bf16(uint16_t half)
{
    return float_of((uint32_t)half << 16);
}

static inline uint16_t to_bf16(float number)
{
    const uint32_t bits = bits_of(number);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* TILE times two sums, two vectors of B and a factor fit the registers. */
#define LEVEL(x) base_##x
#define TARGET
#define VECTOR_BYTES 16
#define TILE 4
#include "kernels_isa.h"

#if defined(__x86_64__)
#define LEVEL(x) v3_##x
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR_BYTES 32
#define TILE 4
#include "kernels_isa.h"

#define LEVEL(x) v4_##x
#define TARGET                                                                 \
    __attribute__((target("avx2,fma,avx512f,avx512dq,avx512bw,"                \
                          "avx512vl")))
#define VECTOR_BYTES 64
#define TILE 8
#include "kernels_isa.h"
#endif

const struct flash_kernels *flash_kernels_find(const char *isa, uint32_t dtype)
{
    const int is_f64 = dtype == HOB_DTYPE_F64;

#if defined(__x86_64__)
    if (!strcmp(isa, "v4"))
        return is_f64 ? &v4_f64_kernels : &v4_f32_kernels;
    if (!strcmp(isa, "v3"))
        return is_f64 ? &v3_f64_kernels : &v3_f32_kernels;
#else
    (void)isa;
#endif
    return is_f64 ? &base_f64_kernels : &base_f32_kernels;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_f32.h - f32 functions without branches, for loops that the compiler
 * turns into vectors.
 *
 * The polynomials are our own: least squares on Chebyshev nodes, reweighted
 * to near minimax (Lawson's algorithm), rounded to f32. Reductions follow
 * W. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980.
 * Largest errors found over every 251st f32 against the C library's f64, at the
 * levels base and v3, in units of the last place of the result
 * (tests/kernels/test_elementwise.c asserts bounds on a coarser sample):
 *
 *   exp 0.97, log 0.77, log1p 1.44, tanh 1.32, sigmoid 2.62, erf 1.27,
 *   sin and cos 1.06 (|x| <= 1e5; beyond, the C library), gelu 5.7
 */
#ifndef FLEX_MATH_F32_H
#define FLEX_MATH_F32_H

#include <math.h>
#include <stdint.h>

#include "../convert.h"

/* a * b + c, in one rounding only where the processor has the instruction. */
static inline float madd(float a, float b, float c)
{
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* Round to the nearest integer, |x| < 2^22: adding 1.5 * 2^23 leaves no bits
 * for a fraction. */
static inline float nearest_f32(float x)
{
    return (x + 12582912.0f) - 12582912.0f;
}

/* x * 2^n for integral n, |n| <= 252: in two steps, so that subnormal results
 * round once and 2^128 does not overflow early. */
static inline float scale_f32(float x, float n)
{
    int32_t k = (int32_t)n;
    int32_t half = k >> 1;
    float a = flex_f32_of_bits((uint32_t)(half + 127) << 23);
    float b = flex_f32_of_bits((uint32_t)(k - half + 127) << 23);

    return x * a * b;
}

/* e^(x + low), |low| <= 0.1; low is the part that x's rounding lost. */
static inline float exp_parts_f32(float x, float low)
{
    float clipped = x < -105.0f ? -105.0f : x > 90.0f ? 90.0f : x;
    float n = nearest_f32(clipped * 1.44269504f);
    float r = madd(n, -0.693359375f, clipped); /* exact: 10 bits of ln 2 */
    float p;

    r = madd(n, 2.12194440e-4f, r) + low; /* and the rest of it */
    p = 0.00138131587f;
    p = madd(p, r, 0.00836941134f);
    p = madd(p, r, 0.0416684560f);
    p = madd(p, r, 0.166665152f);
    p = madd(p, r, 0.499999940f);
    p = madd(p, r * r, r) + 1.0f;
    p = scale_f32(p, n);
    return x != x ? x : p;
}

static inline float exp_f32(float x)
{
    return exp_parts_f32(x, 0.0f);
}

/* e^x - 1, without the loss of digits near 0. */
static inline float expm1_f32(float x)
{
    float clipped = x < -105.0f ? -105.0f : x > 90.0f ? 90.0f : x;
    float n = nearest_f32(clipped * 1.44269504f);
    float r = madd(n, -0.693359375f, clipped); /* as in exp_parts_f32 */
    float p, low, high;

    r = madd(n, 2.12194440e-4f, r);
    p = 0.00138131587f;
    p = madd(p, r, 0.00836941134f);
    p = madd(p, r, 0.0416684560f);
    p = madd(p, r, 0.166665152f);
    p = madd(p, r, 0.499999940f);
    p = madd(p, r * r, r);
    /* 2^n (1 + p) - 1: what is large is added last. */
    low = scale_f32(p, n) + (scale_f32(1.0f, n) - 1.0f);
    high = scale_f32(p + 1.0f, n) - 1.0f;
    p = n > 0.0f ? high : low;
    return x != x ? x : p;
}

/* ln x: x = 2^n * m with m in [sqrt(1/2), sqrt(2)). */
static inline float log_f32(float x)
{
    int tiny = x < 1.17549435e-38f; /* subnormals: scaled up first */
    float scaled = tiny ? x * 8388608.0f : x;
    uint32_t bits = flex_bits_of_f32(scaled);
    uint32_t shifted = bits - 0x3f3504f3u; /* bits of sqrt(1/2) */
    int32_t exponent = (int32_t)shifted >> 23;
    float n = (float)(exponent - (tiny ? 23 : 0));
    float f = flex_f32_of_bits(bits - ((uint32_t)exponent << 23)) - 1.0f;
    float p, r, z = f * f;

    p = 0.0674660131f;
    p = madd(p, f, -0.116756409f);
    p = madd(p, f, 0.118881747f);
    p = madd(p, f, -0.124055915f);
    p = madd(p, f, 0.142195508f);
    p = madd(p, f, -0.166679963f);
    p = madd(p, f, 0.200021192f);
    p = madd(p, f, -0.250000089f);
    p = madd(p, f, 0.333333135f);
    p = p * f * z;
    p = madd(n, -2.12194440e-4f, p);
    r = madd(-0.5f, z, p) + f;
    r = madd(n, 0.693359375f, r);
    r = x == 0.0f ? -INFINITY : r;
    r = x < 0.0f ? NAN : r;
    return x < INFINITY ? r : x; /* inf and NaN as they are */
}

/* ln(1 + x): what 1 + x loses comes back as a first-order term. */
static inline float log1p_f32(float x)
{
    float u = 1.0f + x;
    float lost = u > 2.0f ? 1.0f - (u - x) : x - (u - 1.0f);
    float r = log_f32(u) + (u > 0.0f ? lost / u : 0.0f);

    r = u == 1.0f ? x : r;
    return x < INFINITY ? r : x;
}

/* ln(1 + x) for 0 <= x <= 1: above sqrt(2) - 1 it is ln 2 + ln(1 + f) with
 * f = (x - 1) / 2; both f are exact. */
static inline float log1p_unit_f32(float x)
{
    int above = x > 0.414213562f;
    float f = above ? 0.5f * (x - 1.0f) : x;
    float p, z = f * f;

    p = 0.0674660131f; /* as in log_f32 */
    p = madd(p, f, -0.116756409f);
    p = madd(p, f, 0.118881747f);
    p = madd(p, f, -0.124055915f);
    p = madd(p, f, 0.142195508f);
    p = madd(p, f, -0.166679963f);
    p = madd(p, f, 0.200021192f);
    p = madd(p, f, -0.250000089f);
    p = madd(p, f, 0.333333135f);
    p = madd(p * f - 0.5f, z, f);
    return above ? p + 0.693147181f : p;
}

static inline float tanh_f32(float x)
{
    float a = fabsf(x), z = x * x;
    float p = -0.00589516200f;
    float large = 1.0f - 2.0f / (exp_f32(2.0f * a) + 1.0f);

    p = madd(p, z, 0.0207959749f);
    p = madd(p, z, -0.0537838303f);
    p = madd(p, z, 0.133319244f);
    p = madd(p, z, -0.333332986f);
    p = madd(p * z, x, x);
    return a < 0.6f ? p : copysignf(large, x);
}

/* Both sides through e^-|x| <= 1: no overflow, and a true tail below 0. */
static inline float sigmoid_f32(float x)
{
    float e = exp_f32(-fabsf(x));
    float r = 1.0f / (1.0f + e);

    return x < 0.0f ? e * r : r;
}

/* erf for |x| <= 1. */
static inline float erf_small_f32(float x)
{
    float z = x * x;
    float p = 7.85400916e-5f;

    p = madd(p, z, -0.000801024202f);
    p = madd(p, z, 0.0051883338f);
    p = madd(p, z, -0.0268538147f);
    p = madd(p, z, 0.112835854f);
    p = madd(p, z, -0.37612626f);
    p = madd(p, z, 0.128379167f); /* the coefficient is 1 more than this */
    return madd(p, x, x);
}

/* erfc of x + low for x >= 0.48: e^(-x^2) * P(t) * t / 2 with t = 2 / (x + 2).
 * The square is split in an exact part and a rest. */
static inline float erfc_large_f32(float x, float low)
{
    float a = x > 10.5f ? 10.5f : x;
    float high = flex_f32_of_bits(flex_bits_of_f32(a) & 0xfffff000u);
    float rest = madd(-2.0f * a, low, (high - a) * (high + a));
    float e = exp_parts_f32(-high * high, rest);
    float t = 2.0f / (a + 2.0f);
    float p = -0.0587288824f;

    p = madd(p, t, 0.126087237f);
    p = madd(p, t, 0.138313788f);
    p = madd(p, t, -0.554767007f);
    p = madd(p, t, 0.310253677f);
    p = madd(p, t, 0.0351447756f);
    p = madd(p, t, 0.386410118f);
    p = madd(p, t, 0.488417955f);
    p = madd(p, t, 0.564644069f);
    p = madd(p, t, 0.564172777f);
    return x != x ? x : e * (0.5f * t * p);
}

static inline float erf_f32(float x)
{
    float a = fabsf(x);
    float large = 1.0f - erfc_large_f32(a, 0.0f);

    return a < 1.0f ? erf_small_f32(x) : copysignf(large, x);
}

/* Twice the normal distribution function at X: erfc(-X / sqrt 2), the quotient
 * in two parts because the tail magnifies its error by 2 y^2. */
static inline float normal2_f32(float x)
{
    double exact = (double)x * 0.70710678118654752;
    float y = (float)exact;
    float low = (float)(exact - (double)y);
    float a = fabsf(y);
    float tail = erfc_large_f32(a, a > 15.0f ? 0.0f : x < 0 ? -low : low);
    float large = x < 0.0f ? tail : 2.0f - tail;

    return a < 0.5f ? 1.0f + erf_small_f32(y) : large;
}

static inline float gelu_f32(float x)
{
    return x == -INFINITY ? -0.0f : 0.5f * x * normal2_f32(x);
}

/* Phi(x) + x * phi(x), phi the normal density. */
static inline float gelu_slope_f32(float x)
{
    float density = 0.398942280f * exp_f32(-0.5f * x * x);
    float product = fabsf(x) > 20.0f ? 0.0f : x * density;

    return madd(0.5f, normal2_f32(x), product);
}

/*
 * sin of QUADRANTS * pi/2 + X: reduced in f64, where q * pi/2 is exact to the
 * last bit that an f32 can need for |x| <= 1e5.
 */
static inline float sin_f32(float x, int quadrants)
{
    double magic = 6755399441055744.0; /* 1.5 * 2^52: rounds to an integer */
    double scaled = (double)x * 0.63661977236758134 + magic;
    double q = scaled - magic;
    double high = (double)x - q * 1.5707963267341256; /* 33 bits of pi/2 */
    double reduced = high - q * 6.0771005065061922e-11;
    float r = (float)reduced;
    float low = (float)(reduced - (double)r);
    int32_t n = (int32_t)q + quadrants;
    float z = r * r;
    float s = -0.000195114582f, c = 2.44287858e-5f, one, y;

    s = madd(s, z, 0.00833213329f);
    s = madd(s, z, -0.166666538f);
    s = r + madd(s * z, r, low);
    c = madd(c, z, -0.0013887278f);
    c = madd(c, z, 0.0416666456f);
    one = 1.0f - 0.5f * z; /* and what this rounding loses */
    c = one + madd(c * z, z, (1.0f - one) - 0.5f * z);
    y = (n & 1) ? c : s;
    return (n & 2) ? -y : y;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_f32.h - f32 functions without branches, for loops that the compiler
 * turns into vectors.
 *
 * They are computed in f64 by polynomials that are good to 2^-32 or better,
 * and rounded once: no result is off by more than 0.51 units of its last
 * place, at any level of instruction set, with or without fused products. The
 * exceptions stay in f32, where a vector holds twice as many: exp, which
 * softmax spends its time in, what softplus adds to it, and, where products
 * are fused, sigmoid and gelu. plugins/flex/README.md has the table of their
 * errors, tests/kernels/test_ulp.c measures them.
 *
 * The polynomials are our own: least squares on Chebyshev nodes, reweighted to
 * near minimax of the relative error (Lawson's algorithm). Arguments are
 * reduced as in W. Cody and W. Waite, "Software Manual for the Elementary
 * Functions", 1980.
 */
#ifndef FLEX_MATH_F32_H
#define FLEX_MATH_F32_H

#include <math.h>
#include <stdint.h>

#include "../convert.h"

/* A loop becomes vectors only if all that it calls is part of it. */
#define INLINED static inline __attribute__((always_inline))

/* a * b + c, in one rounding only where the processor has the instruction. */
INLINED float madd(float a, float b, float c)
{
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

INLINED double madd64(double a, double b, double c)
{
#ifdef __FMA__
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

INLINED uint64_t bits_of_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

INLINED double f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

INLINED uint32_t least_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/*
 * X within LOW .. HIGH, LOW < 0 < HIGH; NaN becomes one of them. As integers,
 * so that it is two instructions: of comparisons of floats the compiler makes
 * branches, and of those, once the loop is one of vectors, a chain of blends
 * for each constant that it can then compute ahead.
 */
INLINED float clip(float x, float low, float high)
{
    int32_t bits = (int32_t)flex_bits_of_f32(x);
    int32_t top = (int32_t)flex_bits_of_f32(high);

    bits = bits < top ? bits : top; /* negative numbers are less */
    return flex_f32_of_bits(least_u32((uint32_t)bits, flex_bits_of_f32(low)));
}

/* |x|, but at most MOST; so is NaN. */
INLINED float magnitude(float x, float most)
{
    return flex_f32_of_bits(
        least_u32(flex_bits_of_f32(x) & 0x7fffffffu, flex_bits_of_f32(most)));
}

/* RESULT, but NaN where X is. */
INLINED float unless_nan(float x, float result)
{
    return x != x ? x : result;
}

INLINED double clip_wide(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* ---- in f32 ---- */

/* e^x is 2^n (1 + q): q and, in its lowest bits, n. */
struct power {
    float q;
    uint32_t n;
};

/*
 * For |x| <= 120: x = n ln 2 + r. Adding 1.5 * 2^23 rounds to the integer n and
 * leaves it in the low bits. REST, much smaller than x, is added to it; of -0,
 * unlike 0, the compiler knows that it changes nothing.
 */
INLINED struct power power_f32(float x, float rest)
{
    float y = madd(x, 1.44269504f, 12582912.0f);
    float n = y - 12582912.0f;
    float high = madd(n, -0.693359375f, x) + rest; /* 10 bits of ln 2: exact */
    float r = madd(n, 2.12194440e-4f, high);       /* and the rest of it */
    float low = madd(n, 2.12194440e-4f, high - r); /* what r lost */
    float square = r * r;
    float p = madd(0.00138131587f, r, 0.00836941134f);

    /* By pairs: a step of a chain waits for the one before. */
    p = madd(p, square, madd(0.0416684560f, r, 0.166665152f));
    p = madd(p, r, 0.499999940f);
    return (struct power){madd(p, square, low) + r, flex_bits_of_f32(y)};
}

/* x * 2^n, |n| <= 252, |x| about 1 or, for n = 0 and -1, any: in two steps, so
 * that subnormal results round once and 2^128 does not overflow early. */
INLINED float scale_f32(float x, uint32_t n)
{
    uint32_t half = (uint32_t)((int32_t)n >> 1);
    uint32_t rest = ((n - half) << 23) + 0x3f800000u;

    return flex_f32_of_bits(flex_bits_of_f32(x) + (half << 23)) *
           flex_f32_of_bits(rest);
}

INLINED float exp_f32(float x)
{
    struct power e = power_f32(clip(x, -105.0f, 90.0f), -0.0f);

    return unless_nan(x, scale_f32(1 + e.q, e.n));
}

/* ln(1 + x) for 0 <= x <= 1, beside exp in softplus: above sqrt(2) - 1 it is
 * ln 2 + ln(1 + f) with f = (x - 1) / 2; both f are exact. */
INLINED float log1p_unit_f32(float x)
{
    int above = x > 0.414213562f;
    float f = above ? 0.5f * (x - 1.0f) : x;
    float p = 0.0674660131f, z = f * f;

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

/* ---- exponentials ---- */

/*
 * e^x - LESS, LESS being 0 or 1, for |x| <= 700: x = n ln 2 + r. Adding 1.5 *
 * 2^52 rounds to the integer n and leaves it in the low bits; 1023 beside it
 * makes it the exponent of 2^n.
 */
INLINED double exp_wide(double x, double less)
{
    const double magic = 6755399441055744.0 + 1023;
    double y = madd64(x, 1.4426950408889634, magic);
    double r = madd64(y - magic, -0.69314718055994531, x);
    double scale = f64_of_bits(bits_of_f64(y) << 52);
    double p = 0.00019841246931203747;

    p = madd64(p, r, 0.0013941109158648586);
    p = madd64(p, r, 0.008333403184867562);
    p = madd64(p, r, 0.0416663532009514);
    p = madd64(p, r, 0.16666666247080847);
    p = madd64(p, r, 0.5000000046931985);
    p = madd64(p, r, 1.0000000000314493);
    return madd64(scale, p * r, scale - less);
}

INLINED float expm1_f32(float x)
{
    return (float)exp_wide(clip_wide((double)x, -110, 110), 1);
}

/* By e^-|x|, which neither overflows nor loses the tail. */
INLINED float sigmoid_f32(float x)
{
#ifdef __FMA__
    struct power p = power_f32(-magnitude(x, 105.0f), -0.0f);
    float e = scale_f32(1 + p.q, p.n);

    return unless_nan(x, (x < 0 ? e : 1.0f) / (1 + e));
#else
    double e = exp_wide((double)clip(-x, -110.0f, 110.0f), 0);

    return unless_nan(x, (float)(1 / (1 + e)));
#endif
}

INLINED float tanh_f32(float x)
{
    double e = exp_wide(2 * (double)magnitude(x, 20.0f), 1);

    return unless_nan(x, copysignf((float)(e / (e + 2)), x));
}

INLINED float sinh_f32(float x)
{
    double e = exp_wide((double)magnitude(x, 100.0f), 1);

    return unless_nan(x, copysignf((float)(0.5 * (e + e / (e + 1))), x));
}

INLINED float cosh_f32(float x)
{
    double e = exp_wide((double)magnitude(x, 100.0f), 0);

    return unless_nan(x, (float)(0.5 * (e + 1 / e)));
}

/* ---- logarithms ---- */

/*
 * ln u for finite u > 0: u = 2^n m with m in [sqrt(1/2), sqrt(2)). LESS is
 * u - 1, exact where u itself is rounded near 1.
 */
INLINED double log_wide(double u, double less)
{
    const uint64_t root = 0x3fe6a09e667f3bcdu; /* sqrt(1/2) */
    uint64_t shifted = bits_of_f64(u) + (0x3ff0000000000000u - root);
    /* The exponent, with its bias of 1023, as the low bits of 2^52. */
    double n = f64_of_bits(shifted >> 52 | 0x4330000000000000u) -
               (4503599627370496.0 + 1023);
    double m = f64_of_bits((shifted & 0xfffffffffffffu) + root);
    double f = n == 0 ? less : m - 1;
    double p = 0.04379368880890332;

    p = madd64(p, f, -0.08561743532529224);
    p = madd64(p, f, 0.08742217150184485);
    p = madd64(p, f, -0.08291828066485657);
    p = madd64(p, f, 0.08951589397496311);
    p = madd64(p, f, -0.09990064598483042);
    p = madd64(p, f, 0.11119829579412055);
    p = madd64(p, f, -0.12500937420201333);
    p = madd64(p, f, 0.1428543530501976);
    p = madd64(p, f, -0.16666635738573957);
    p = madd64(p, f, 0.20000004332081323);
    p = madd64(p, f, -0.25000000393528815);
    p = madd64(p, f, 0.33333333307169766);
    p = madd64(p, f, -0.49999999998647604);
    p = madd64(p, f, 1.0000000000002711);
    return madd64(n, 0.69314718055994531, p * f);
}

/* The same for all u. */
INLINED double log_any(double u, double less)
{
    double special = u > 0 ? u : u == 0 ? -(double)INFINITY : (double)NAN;

    return u > 0 && u < (double)INFINITY ? log_wide(u, less) : special;
}

INLINED float log_f32(float x)
{
    return (float)log_any((double)x, (double)x - 1);
}

INLINED float log1p_f32(float x)
{
    return copysignf((float)log_any(1 + (double)x, (double)x), x);
}

INLINED float asinh_f32(float x)
{
    double a = fabs((double)x);
    double t = a + a * a / (1 + sqrt(a * a + 1)); /* e^result - 1 */

    t = a < (double)INFINITY ? t : a;
    return copysignf((float)log_any(1 + t, t), x);
}

INLINED float acosh_f32(float x)
{
    double a = (double)x - 1;
    double t = a + sqrt(a * (a + 2));

    t = a < 0 ? (double)NAN : t;
    return (float)log_any(1 + t, t);
}

INLINED float atanh_f32(float x)
{
    double a = fabs((double)x);
    double t = 2 * a / (1 - a);

    return copysignf((float)(0.5 * log_any(1 + t, t)), x);
}

/* |x|^y by logarithm, then the rules of C for signs and special values. */
INLINED float pow_f32(float x, float y)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52, as in exp_wide */
    double a = (double)x, b = (double)y;
    double size = fabs(a);
    double power =
        exp_wide(clip_wide(b * log_any(size, size - 1), -110, 110), 0);
    double c = clip_wide(b, -33554432, 33554432); /* larger ones are even */
    double rounded = c + magic;
    double whole = rounded - magic;
    /* The sign of x where y is odd. */
    uint64_t sign = bits_of_f64(a) & bits_of_f64(rounded) << 63;

    power = size == 1 ? 1 : power;
    power = f64_of_bits(bits_of_f64(power) ^ (whole == c ? sign : 0));
    power =
        whole != c && a < 0 && size < (double)INFINITY ? (double)NAN : power;
    return (float)(b == 0 ? 1 : power);
}

/* ---- erf and gelu ---- */

INLINED float erf_f32(float x)
{
    double a = (double)clip(x, -4.0f, 4.0f); /* where it rounds to 1 */
    double z = a * a;
    double p = -2.311039203788408e-22;

    p = madd64(p, z, 4.047316056488677e-20);
    p = madd64(p, z, -3.3381022866807706e-18);
    p = madd64(p, z, 1.7290501238200331e-16);
    p = madd64(p, z, -6.33558046131723e-15);
    p = madd64(p, z, 1.7565365615667718e-13);
    p = madd64(p, z, -3.856040834250295e-12);
    p = madd64(p, z, 6.939132297064258e-11);
    p = madd64(p, z, -1.0532834337861007e-09);
    p = madd64(p, z, 1.3807749636249574e-08);
    p = madd64(p, z, -1.59155277743602e-07);
    p = madd64(p, z, 1.6303985878642103e-06);
    p = madd64(p, z, -1.488328560337569e-05);
    p = madd64(p, z, 0.00012046914377688353);
    p = madd64(p, z, -0.000854713344753028);
    p = madd64(p, z, 0.005223863433105193);
    p = madd64(p, z, -0.026866102923898807);
    p = madd64(p, z, 0.11283789511805262);
    p = madd64(p, z, -0.3761263862446023);
    p = madd64(p, z, 1.128379167034151);
    return unless_nan(x, (float)(a * p));
}

/*
 * The normal distribution function at X, |x| <= 15 (up to 20 with fewer
 * digits), and *OUT_BELL = e^(-x^2/2). The tail is that times a polynomial in
 * t = 1 / (|x| + 3), times t.
 */
INLINED double normal_wide(double x, double *out_bell)
{
    double bell = exp_wide(-0.5 * x * x, 0);
    double t = 1 / (fabs(x) + 3);
    double p = -19578.890008167167;

    p = madd64(p, t, 43549.22376878055);
    p = madd64(p, t, -39889.18600065328);
    p = madd64(p, t, 18371.817174545333);
    p = madd64(p, t, -3906.834575681906);
    p = madd64(p, t, 195.3841764692622);
    p = madd64(p, t, -22.1495730370895);
    p = madd64(p, t, -2.4440396078527984);
    p = madd64(p, t, 13.347215837528216);
    p = madd64(p, t, 7.071232914675641);
    p = madd64(p, t, 3.196745251502204);
    p = madd64(p, t, 1.196688825548185);
    p = madd64(p, t, 0.39894385591193626);
    p *= t * bell;
    *out_bell = bell;
    return x < 0 ? p : 1 - p;
}

/*
 * x or 0, less |x| times the distribution function at a = -|x|, which is the
 * bell e^(-a^2/2) times z / (a sqrt(2 pi) z + t) for two polynomials: where a
 * is large their errors do not matter, as z stands on both sides.
 */
INLINED float gelu_f32(float x)
{
#ifdef __FMA__
    float a = magnitude(x, 15.0f); /* where the tail rounds to 0 */
    float square = a * a;
    struct power bell = power_f32(-0.5f * square, -0.5f * madd(a, a, -square));
    float z = 0.00484839175f, t = 1.16467754e-06f, tail;

    z = madd(z, a, 0.0454909578f);
    z = madd(z, a, 0.19750455f);
    z = madd(z, a, 0.457308531f);
    z = madd(z, a, 0.5f) * a;
    t = madd(t, a, 0.0120993648f);
    t = madd(t, a, 0.115076207f);
    t = madd(t, a, 0.459188223f);
    t = madd(t, a, 1.0f);
    tail = z / madd(z, 2.50662827f, t);
    tail = scale_f32(madd(tail, bell.q, tail), bell.n);
    return (x < 0 ? -0.0f : x) - tail; /* NaN stays */
#else
    /* Below -15 the result is 0, above 15 it is x. */
    float low = x < -15.0f ? -15.0f : x;
    double bell;

    return (float)((double)low *
                   normal_wide((double)clip(x, -15.0f, 15.0f), &bell));
#endif
}

/* Phi(x) + x * phi(x), phi the normal density; not rounded to f32, as it is to
 * be multiplied: below -20 any f32 makes 0 of it. */
INLINED double gelu_slope_f32(float x)
{
    double a = (double)clip(x, -20.0f, 20.0f), bell;
    double normal = normal_wide(a, &bell);
    double slope = madd64(0.39894228040143268 * a, bell, normal);

    return x != x ? (double)x : slope;
}

/* ---- trigonometry ---- */

/*
 * sin and cos of x = q pi/2 + r, |x| <= 1e6: q times 33 bits of pi/2 is exact,
 * and what is left of pi/2 is good to the last bit that an f32 can need.
 */
struct quadrant {
    double sin, cos; /* of r */
    uint64_t q;      /* its low bits */
};

INLINED struct quadrant quadrant_of(double x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52, as in exp_wide */
    double y = madd64(x, 0.63661977236758134, magic);
    double q = y - magic;
    double r = madd64(q, -1.5707963267341256, x);
    double z, s = 2.717075715696381e-06, c = 2.4371811294361696e-05;

    r = madd64(q, -6.0771005065061922e-11, r);
    z = r * r;
    s = madd64(s, z, -0.00019839169963859428);
    s = madd64(s, z, 0.00833332866211965);
    s = madd64(s, z, -0.16666666630153723);
    s = madd64(s, z, 0.9999999999954042);
    c = madd64(c, z, -0.001388651953853498);
    c = madd64(c, z, 0.041666612905267825);
    c = madd64(c, z, -0.4999999956802555);
    c = madd64(c, z, 0.999999999943355);
    return (struct quadrant){s * r, c, bits_of_f64(y)};
}

/* sin of X + QUADRANTS * pi/2. */
INLINED float sin_f32(float x, uint64_t quadrants)
{
    struct quadrant at = quadrant_of((double)x);
    uint64_t q = at.q + quadrants;
    uint64_t odd = -(q & 1);
    uint64_t bits = (bits_of_f64(at.cos) & odd) | (bits_of_f64(at.sin) & ~odd);

    return (float)f64_of_bits(bits ^ (q & 2) << 62);
}

INLINED float tan_f32(float x)
{
    struct quadrant at = quadrant_of((double)x);
    uint64_t odd = -(at.q & 1);
    uint64_t s = bits_of_f64(at.sin), c = bits_of_f64(at.cos);
    double over = f64_of_bits((c & odd) | (s & ~odd));
    double under = f64_of_bits((s & odd) | (c & ~odd));

    return (float)f64_of_bits(bits_of_f64(over / under) ^ odd << 63);
}

/* The angle of (X, Y) as atan2 has it. */
INLINED double angle_wide(double y, double x)
{
    double a = fabs(y), b = fabs(x);
    double low = a > b ? b : a, high = a > b ? a : b;
    double r = low / high, z;
    double p = -0.0006847843833637441;

    r = low == high ? (low == 0 ? 0 : 1) : r; /* 0 / 0 and infinities */
    z = r * r;
    p = madd64(p, z, 0.004850889836445161);
    p = madd64(p, z, -0.01611157781758553);
    p = madd64(p, z, 0.03420947195081104);
    p = madd64(p, z, -0.0542789946767797);
    p = madd64(p, z, 0.07245712283513296);
    p = madd64(p, z, -0.08980237012578038);
    p = madd64(p, z, 0.11093240803106816);
    p = madd64(p, z, -0.14283980700348028);
    p = madd64(p, z, 0.1999991204746843);
    p = madd64(p, z, -0.33333331571108377);
    p = madd64(p, z, 0.9999999999412318);
    r *= p;
    r = a > b ? 1.5707963267948966 - r : r;
    r = copysign(1, x) < 0 ? 3.1415926535897932 - r : r;
    return copysign(r, y);
}

INLINED float atan2_f32(float y, float x)
{
    return (float)angle_wide((double)y, (double)x);
}

INLINED float atan_f32(float x)
{
    return (float)angle_wide((double)x, 1);
}

INLINED float asin_f32(float x)
{
    double a = (double)x;

    return (float)angle_wide(a, sqrt((1 - a) * (1 + a)));
}

INLINED float acos_f32(float x)
{
    double a = (double)x;

    return (float)angle_wide(sqrt((1 - a) * (1 + a)), a);
}

/* Squares of f32 do not overflow in f64. An infinity wins over NaN. */
INLINED float hypot_f32(float x, float y)
{
    double a = (double)x, b = (double)y, r = sqrt(a * a + b * b);

    r = fabs(a) == (double)INFINITY ? (double)INFINITY : r;
    return (float)(fabs(b) == (double)INFINITY ? (double)INFINITY : r);
}

#undef INLINED

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* math_f64.h - f64 functions, with the names of math_f32.h. */
#ifndef FLEX_MATH_F64_H
#define FLEX_MATH_F64_H

#include <math.h>

/* The C library's, under the names of math_f32.h. */
static inline double exp_f64(double x)
{
    return exp(x);
}

static inline double expm1_f64(double x)
{
    return expm1(x);
}

static inline double log_f64(double x)
{
    return log(x);
}

static inline double log1p_f64(double x)
{
    return log1p(x);
}

static inline double log1p_unit_f64(double x)
{
    return log1p(x);
}

static inline double erf_f64(double x)
{
    return erf(x);
}

static inline double tanh_f64(double x)
{
    return tanh(x);
}

static inline double sinh_f64(double x)
{
    return sinh(x);
}

static inline double cosh_f64(double x)
{
    return cosh(x);
}

static inline double asinh_f64(double x)
{
    return asinh(x);
}

static inline double acosh_f64(double x)
{
    return acosh(x);
}

static inline double atanh_f64(double x)
{
    return atanh(x);
}

static inline double asin_f64(double x)
{
    return asin(x);
}

static inline double acos_f64(double x)
{
    return acos(x);
}

static inline double atan_f64(double x)
{
    return atan(x);
}

static inline double pow_f64(double x, double y)
{
    return pow(x, y);
}

static inline double atan2_f64(double y, double x)
{
    return atan2(y, x);
}

static inline double hypot_f64(double x, double y)
{
    return hypot(x, y);
}

static inline double sigmoid_f64(double x)
{
    double e = exp(-fabs(x));
    double r = 1 / (1 + e);

    return x < 0 ? e * r : r;
}

/* The normal distribution function: erfc(y) / 2, y = -x / sqrt 2. What the
 * rounding of y loses matters in the tail, so it comes back to first order. */
static inline double normal_f64(double x)
{
    double y = x * -0.70710678118654752;
    double lost = fma(x, -0.70710678118654752, -y) + x * 4.8336466567264565e-17;
    double slope = -1.1283791670955126 * exp(-y * y);

    return 0.5 * (erfc(y) + (fabs(y) < 30 ? slope * lost : 0));
}

static inline double gelu_f64(double x)
{
    return x == -INFINITY ? -0.0 : x * normal_f64(x);
}

static inline double gelu_slope_f64(double x)
{
    double density = 0.39894228040143268 * exp(-0.5 * x * x);

    return normal_f64(x) + (fabs(x) > 50 ? 0 : x * density);
}

#endif

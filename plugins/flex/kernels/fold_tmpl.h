/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds, finds and scans of numeric type T. ACC is the accumulator of sums
 * and products, LEAST and GREATEST the bounds of T; IS_NAN(x) is 0 for
 * integers.
 *
 * Four accumulators hide the latency of additions; the compiler widens each
 * to a vector, so a block of 1024 elements is some 30 short chains.
 */
static void SUFFIX(sum)(void *out, const void *in, int64_t n)
{
    const T *x = in;
    ACC s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t quarter = n / 4;

#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = 0; i < quarter; i++) {
        s0 += (ACC)x[i];
        s1 += (ACC)x[i + quarter];
        s2 += (ACC)x[i + 2 * quarter];
        s3 += (ACC)x[i + 3 * quarter];
    }
    for (int64_t i = 4 * quarter; i < n; i++)
        s0 += (ACC)x[i];
    *(ACC *)out = (s0 + s1) + (s2 + s3);
}

static void SUFFIX(prod)(void *out, const void *in, int64_t n)
{
    const T *x = in;
    ACC s0 = 1, s1 = 1, s2 = 1, s3 = 1;
    int64_t quarter = n / 4;

#pragma omp simd reduction(* : s0, s1, s2, s3)
    for (int64_t i = 0; i < quarter; i++) {
        s0 *= (ACC)x[i];
        s1 *= (ACC)x[i + quarter];
        s2 *= (ACC)x[i + 2 * quarter];
        s3 *= (ACC)x[i + 3 * quarter];
    }
    for (int64_t i = 4 * quarter; i < n; i++)
        s0 *= (ACC)x[i];
    *(ACC *)out = (s0 * s1) * (s2 * s3);
}

/* NaN is counted apart, so that the comparison alone decides in the loop. */
static void SUFFIX(max)(void *out, const void *in, int64_t n)
{
    const T *x = in;
    T best = LEAST;
    int nan = 0;

#pragma omp simd reduction(max : best) reduction(| : nan)
    for (int64_t i = 0; i < n; i++) {
        best = x[i] > best ? x[i] : best;
        nan |= IS_NAN(x[i]);
    }
    *(T *)out = nan ? (T)NAN_VALUE : best;
}

static void SUFFIX(min)(void *out, const void *in, int64_t n)
{
    const T *x = in;
    T best = GREATEST;
    int nan = 0;

#pragma omp simd reduction(min : best) reduction(| : nan)
    for (int64_t i = 0; i < n; i++) {
        best = x[i] < best ? x[i] : best;
        nan |= IS_NAN(x[i]);
    }
    *(T *)out = nan ? (T)NAN_VALUE : best;
}

static void SUFFIX(sum_rows)(void *out, const void *in, int64_t n)
{
    ACC *acc = out;
    const T *x = in;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        acc[i] += (ACC)x[i];
}

static void SUFFIX(prod_rows)(void *out, const void *in, int64_t n)
{
    ACC *acc = out;
    const T *x = in;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        acc[i] *= (ACC)x[i];
}

static void SUFFIX(max_rows)(void *out, const void *in, int64_t n)
{
    T *acc = out;
    const T *x = in;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        acc[i] = ((x[i] > acc[i]) | IS_NAN(x[i])) ? x[i] : acc[i];
}

static void SUFFIX(min_rows)(void *out, const void *in, int64_t n)
{
    T *acc = out;
    const T *x = in;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        acc[i] = ((x[i] < acc[i]) | IS_NAN(x[i])) ? x[i] : acc[i];
}

static int64_t SUFFIX(find)(const void *in, const void *wanted, int64_t n)
{
    const T *x = in;
    T best = *(const T *)wanted;
    int64_t first = 0;

    /* By 64: a hit is rare, so look at whole pieces before at elements. */
    for (; first + 64 <= n; first += 64) {
        int hit = 0;

#pragma omp simd reduction(| : hit)
        for (int64_t i = 0; i < 64; i++)
            hit |= (x[first + i] == best) | IS_NAN(x[first + i]);
        if (hit)
            break;
    }
    for (; first < n; first++)
        if (x[first] == best || IS_NAN(x[first]))
            return first;
    return n;
}

static void SUFFIX(argmax_rows)(void *out, int32_t *index, const void *in,
                                int32_t k, int64_t n)
{
    T *best = out;
    const T *x = in;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        int wins = (x[i] > best[i]) | (IS_NAN(x[i]) & !IS_NAN(best[i]));

        best[i] = wins ? x[i] : best[i];
        index[i] = wins ? k : index[i];
    }
}

static void SUFFIX(argmin_rows)(void *out, int32_t *index, const void *in,
                                int32_t k, int64_t n)
{
    T *best = out;
    const T *x = in;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        int wins = (x[i] < best[i]) | (IS_NAN(x[i]) & !IS_NAN(best[i]));

        best[i] = wins ? x[i] : best[i];
        index[i] = wins ? k : index[i];
    }
}

static void SUFFIX(cumsum)(void *out, const void *in, void *carry, int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC acc = *(ACC *)carry;

    for (int64_t i = 0; i < n; i++) {
        acc += (ACC)x[i];
        o[i] = (T)acc;
    }
    *(ACC *)carry = acc;
}

static void SUFFIX(cumprod)(void *out, const void *in, void *carry, int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC acc = *(ACC *)carry;

    for (int64_t i = 0; i < n; i++) {
        acc *= (ACC)x[i];
        o[i] = (T)acc;
    }
    *(ACC *)carry = acc;
}

static void SUFFIX(cumsum_rows)(void *out, const void *in, void *carry,
                                int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        acc[i] += (ACC)x[i];
        o[i] = (T)acc[i];
    }
}

static void SUFFIX(cumprod_rows)(void *out, const void *in, void *carry,
                                 int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        acc[i] *= (ACC)x[i];
        o[i] = (T)acc[i];
    }
}

/* Once NaN, always NaN: no number is greater or less. */
static void SUFFIX(cummax)(void *out, const void *in, void *carry, int64_t n)
{
    T *o = out;
    const T *x = in;
    T best = (T) * (ACC *)carry;

    for (int64_t i = 0; i < n; i++) {
        best = ((x[i] > best) | IS_NAN(x[i])) ? x[i] : best;
        o[i] = best;
    }
    *(ACC *)carry = (ACC)best;
}

static void SUFFIX(cummin)(void *out, const void *in, void *carry, int64_t n)
{
    T *o = out;
    const T *x = in;
    T best = (T) * (ACC *)carry;

    for (int64_t i = 0; i < n; i++) {
        best = ((x[i] < best) | IS_NAN(x[i])) ? x[i] : best;
        o[i] = best;
    }
    *(ACC *)carry = (ACC)best;
}

static void SUFFIX(cummax_rows)(void *out, const void *in, void *carry,
                                int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        T best = (T)acc[i];

        best = ((x[i] > best) | IS_NAN(x[i])) ? x[i] : best;
        acc[i] = (ACC)best;
        o[i] = best;
    }
}

static void SUFFIX(cummin_rows)(void *out, const void *in, void *carry,
                                int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        T best = (T)acc[i];

        best = ((x[i] < best) | IS_NAN(x[i])) ? x[i] : best;
        acc[i] = (ACC)best;
        o[i] = best;
    }
}

#include "truth_tmpl.h"

#undef T
#undef ACC
#undef LEAST
#undef GREATEST
#undef IS_NAN
#undef NAN_VALUE
#undef SUFFIX

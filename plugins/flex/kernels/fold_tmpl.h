/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds, finds and scans of numeric type T. ACC is the accumulator of sums
 * and products, LEAST and GREATEST the bounds of T; IS_NAN(x) is 0 for
 * integers.
 *
 * Where WIDE is defined (32 and 64 bits) sums are those of fold_sum_tmpl.h;
 * the narrow integers' are left to the compiler, which widens in steps.
 */
/* A vector of the processor's own: wider ones are taken apart in memory. */
typedef T SUFFIX(line) __attribute__((vector_size(FOLD_BYTES)));
typedef __typeof__((SUFFIX(line)){0} > (SUFFIX(line)){0}) SUFFIX(mask);

#ifdef WIDE
#include "fold_sum_tmpl.h"
#else
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
    ACC s = 1;

#pragma omp simd reduction(* : s)
    for (int64_t i = 0; i < n; i++)
        s *= (ACC)x[i];
    *(ACC *)out = s;
}

static void SUFFIX(sum_rows)(void *out, const void *in, int64_t stride,
                             int64_t rows, int64_t n)
{
    ACC *acc = out;
    const T *x = in;

    for (int64_t r = 0; r < rows; r++, x += stride) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            acc[i] += (ACC)x[i];
    }
}
#endif

static void SUFFIX(prod_rows)(void *out, const void *in, int64_t stride,
                              int64_t rows, int64_t n)
{
    ACC *acc = out;
    const T *x = in;

    for (int64_t r = 0; r < rows; r++, x += stride) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            acc[i] *= (ACC)x[i];
    }
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

static int64_t SUFFIX(find)(const void *in, const void *wanted, int64_t n)
{
    const T *x = in;
    T best = *(const T *)wanted;
    int64_t first = 0;

    /* A hit is rare, so look at whole pieces before at elements. Shorter ones
     * would take longer to join the lanes of HIT than to compare. */
    for (; first + FIND_PIECE <= n; first += FIND_PIECE) {
        int hit = 0;

#pragma omp simd reduction(| : hit)
        for (int64_t i = 0; i < FIND_PIECE; i++)
            hit |= (x[first + i] == best) | IS_NAN(x[first + i]);
        if (hit)
            break;
    }
    for (; first < n; first++)
        if (x[first] == best || IS_NAN(x[first]))
            return first;
    return n;
}

#define EXTREME(before, after) SUFFIX(before##max##after)
#define BEATS(a, b) ((a) > (b))
#include "fold_extreme_tmpl.h"
#define EXTREME(before, after) SUFFIX(before##min##after)
#define BEATS(a, b) ((a) < (b))
#include "fold_extreme_tmpl.h"

#define RUNNING(after) SUFFIX(cumsum##after)
#define JOIN(a, b) ((a) + (b))
#include "fold_running_tmpl.h"
#define RUNNING(after) SUFFIX(cumprod##after)
#define JOIN(a, b) ((a) * (b))
#include "fold_running_tmpl.h"

#include "truth_tmpl.h"

#undef T
#undef ACC
#undef LEAST
#undef GREATEST
#undef IS_NAN
#undef NAN_VALUE
#undef SUFFIX

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds, finds and scans of numeric type T. ACC is the accumulator of sums
 * and products, LEAST and GREATEST the bounds of T; IS_NAN(x) is 0 for
 * integers.
 *
 * Where WIDE is defined (32 and 64 bits) sums are those of fold_sum_tmpl.h;
 * the narrow integers' are left to the compiler, which widens in steps.
 */
typedef T SUFFIX(line) __attribute__((vector_size(64)));
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

/* Elements of a cache line at X where they win, as max_rows and min_rows
 * have it: NaN wins, the first of equals stays. */
static inline void SUFFIX(greater)(SUFFIX(line) * best, const T *x)
{
    SUFFIX(line) v;
    SUFFIX(mask) wins, bits, old;

    memcpy(&v, x, sizeof(v));
    wins = (v > *best) | IS_NAN(v);
    memcpy(&bits, &v, sizeof(v));
    memcpy(&old, best, sizeof(v));
    bits = (bits & wins) | (old & ~wins);
    memcpy(best, &bits, sizeof(v));
}

static inline void SUFFIX(less)(SUFFIX(line) * best, const T *x)
{
    SUFFIX(line) v;
    SUFFIX(mask) wins, bits, old;

    memcpy(&v, x, sizeof(v));
    wins = (v < *best) | IS_NAN(v);
    memcpy(&bits, &v, sizeof(v));
    memcpy(&old, best, sizeof(v));
    bits = (bits & wins) | (old & ~wins);
    memcpy(best, &bits, sizeof(v));
}

static void SUFFIX(max_rows)(void *out, const void *in, int64_t stride,
                             int64_t rows, int64_t n)
{
    enum { SOME = 64 / sizeof(T) };
    T *acc = out;
    const T *x = in;
    int64_t i = 0;

    for (; i + 2 * SOME <= n; i += 2 * SOME) {
        SUFFIX(line) a, b;

        memcpy(&a, acc + i, sizeof(a));
        memcpy(&b, acc + i + SOME, sizeof(b));
        for (int64_t r = 0; r < rows; r++) {
            SUFFIX(greater)(&a, x + r * stride + i);
            SUFFIX(greater)(&b, x + r * stride + i + SOME);
        }
        memcpy(acc + i, &a, sizeof(a));
        memcpy(acc + i + SOME, &b, sizeof(b));
    }
    for (; i < n; i++)
        for (int64_t r = 0; r < rows; r++) {
            const T v = x[r * stride + i];

            acc[i] = ((v > acc[i]) | IS_NAN(v)) ? v : acc[i];
        }
}

static void SUFFIX(min_rows)(void *out, const void *in, int64_t stride,
                             int64_t rows, int64_t n)
{
    enum { SOME = 64 / sizeof(T) };
    T *acc = out;
    const T *x = in;
    int64_t i = 0;

    for (; i + 2 * SOME <= n; i += 2 * SOME) {
        SUFFIX(line) a, b;

        memcpy(&a, acc + i, sizeof(a));
        memcpy(&b, acc + i + SOME, sizeof(b));
        for (int64_t r = 0; r < rows; r++) {
            SUFFIX(less)(&a, x + r * stride + i);
            SUFFIX(less)(&b, x + r * stride + i + SOME);
        }
        memcpy(acc + i, &a, sizeof(a));
        memcpy(acc + i + SOME, &b, sizeof(b));
    }
    for (; i < n; i++)
        for (int64_t r = 0; r < rows; r++) {
            const T v = x[r * stride + i];

            acc[i] = ((v < acc[i]) | IS_NAN(v)) ? v : acc[i];
        }
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

/* A strip of columns at a time, whose best are then at hand for all rows. */
static void SUFFIX(argmax_rows)(void *out, int32_t *index, const void *in,
                                int64_t stride, int64_t rows, int32_t k,
                                int64_t n)
{
    T *best = out;
    const T *x = in;

    for (int64_t begin = 0; begin < n; begin += ARG_STRIP) {
        const int64_t end = n - begin < ARG_STRIP ? n : begin + ARG_STRIP;

        for (int64_t r = 0; r < rows; r++) {
            const T *row = x + r * stride;
            const int32_t at = k + (int32_t)r;

#pragma omp simd
            for (int64_t i = begin; i < end; i++) {
                int wins =
                    (row[i] > best[i]) | (IS_NAN(row[i]) & !IS_NAN(best[i]));

                best[i] = wins ? row[i] : best[i];
                index[i] = wins ? at : index[i];
            }
        }
    }
}

static void SUFFIX(argmin_rows)(void *out, int32_t *index, const void *in,
                                int64_t stride, int64_t rows, int32_t k,
                                int64_t n)
{
    T *best = out;
    const T *x = in;

    for (int64_t begin = 0; begin < n; begin += ARG_STRIP) {
        const int64_t end = n - begin < ARG_STRIP ? n : begin + ARG_STRIP;

        for (int64_t r = 0; r < rows; r++) {
            const T *row = x + r * stride;
            const int32_t at = k + (int32_t)r;

#pragma omp simd
            for (int64_t i = begin; i < end; i++) {
                int wins =
                    (row[i] < best[i]) | (IS_NAN(row[i]) & !IS_NAN(best[i]));

                best[i] = wins ? row[i] : best[i];
                index[i] = wins ? at : index[i];
            }
        }
    }
}

/* Each addition waits for the one before: four rows are four that do not. */
static void SUFFIX(cumsum)(void *out, const void *in, void *carry,
                           int64_t stride, int64_t rows, int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

    for (; rows >= 4; rows -= 4, acc += 4, o += 4 * stride, x += 4 * stride) {
        ACC a = acc[0], b = acc[1], c = acc[2], d = acc[3];

        for (int64_t i = 0; i < n; i++) {
            a += (ACC)x[i];
            o[i] = (T)a;
            b += (ACC)x[stride + i];
            o[stride + i] = (T)b;
            c += (ACC)x[2 * stride + i];
            o[2 * stride + i] = (T)c;
            d += (ACC)x[3 * stride + i];
            o[3 * stride + i] = (T)d;
        }
        acc[0] = a;
        acc[1] = b;
        acc[2] = c;
        acc[3] = d;
    }
    for (; rows > 0; rows--, acc++, o += stride, x += stride) {
        ACC a = *acc;

        for (int64_t i = 0; i < n; i++) {
            a += (ACC)x[i];
            o[i] = (T)a;
        }
        *acc = a;
    }
}

static void SUFFIX(cumprod)(void *out, const void *in, void *carry,
                            int64_t stride, int64_t rows, int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

    for (; rows >= 4; rows -= 4, acc += 4, o += 4 * stride, x += 4 * stride) {
        ACC a = acc[0], b = acc[1], c = acc[2], d = acc[3];

        for (int64_t i = 0; i < n; i++) {
            a *= (ACC)x[i];
            o[i] = (T)a;
            b *= (ACC)x[stride + i];
            o[stride + i] = (T)b;
            c *= (ACC)x[2 * stride + i];
            o[2 * stride + i] = (T)c;
            d *= (ACC)x[3 * stride + i];
            o[3 * stride + i] = (T)d;
        }
        acc[0] = a;
        acc[1] = b;
        acc[2] = c;
        acc[3] = d;
    }
    for (; rows > 0; rows--, acc++, o += stride, x += stride) {
        ACC a = *acc;

        for (int64_t i = 0; i < n; i++) {
            a *= (ACC)x[i];
            o[i] = (T)a;
        }
        *acc = a;
    }
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
static void SUFFIX(cummax)(void *out, const void *in, void *carry,
                           int64_t stride, int64_t rows, int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

    for (; rows > 0; rows--, acc++, o += stride, x += stride) {
        T best = (T)*acc;

        for (int64_t i = 0; i < n; i++) {
            const T v = x[i];

            best = ((v > best) | IS_NAN(v)) ? v : best;
            o[i] = best;
        }
        *acc = (ACC)best;
    }
}

static void SUFFIX(cummin)(void *out, const void *in, void *carry,
                           int64_t stride, int64_t rows, int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

    for (; rows > 0; rows--, acc++, o += stride, x += stride) {
        T best = (T)*acc;

        for (int64_t i = 0; i < n; i++) {
            const T v = x[i];

            best = ((v < best) | IS_NAN(v)) ? v : best;
            o[i] = best;
        }
        *acc = (ACC)best;
    }
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

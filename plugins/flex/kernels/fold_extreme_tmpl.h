/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of maxima or minima: included by fold_tmpl.h for each, with
 * EXTREME(before, after) as the name and BEATS(a, b) whether a wins over b.
 */
/* The elements of a vector at X where they win: NaN does, and the first of
 * equals stays. */
static inline SUFFIX(line) EXTREME(, _line)(SUFFIX(line) best, const T *x)
{
    SUFFIX(line) v;
    SUFFIX(mask) wins;

    memcpy(&v, x, sizeof(v));
    wins = BEATS(v, best) | IS_NAN(v);
    return (SUFFIX(line))(((SUFFIX(mask))v & wins) |
                          ((SUFFIX(mask))best & ~wins));
}

static void EXTREME(, _rows)(void *out, const void *in, int64_t stride,
                             int64_t rows, int64_t n)
{
    enum { SOME = FOLD_BYTES / sizeof(T), STEP = FOLD_LINES * SOME };
    T *acc = out;
    const T *x = in;
    int64_t i = 0;

    for (; i + STEP <= n; i += STEP) {
        SUFFIX(line) best[FOLD_LINES];

        /* One vector at a time: an array copied as a whole would live in
         * memory. */
#pragma GCC unroll 8
        for (int k = 0; k < FOLD_LINES; k++)
            memcpy(&best[k], acc + i + k * SOME, sizeof(best[k]));
        for (int64_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
            for (int k = 0; k < FOLD_LINES; k++)
                best[k] =
                    EXTREME(, _line)(best[k], x + r * stride + i + k * SOME);
        }
#pragma GCC unroll 8
        for (int k = 0; k < FOLD_LINES; k++)
            memcpy(acc + i + k * SOME, &best[k], sizeof(best[k]));
    }
    for (; i < n; i++)
        for (int64_t r = 0; r < rows; r++) {
            const T v = x[r * stride + i];

            acc[i] = (BEATS(v, acc[i]) | IS_NAN(v)) ? v : acc[i];
        }
}

/* A strip of columns at a time, whose best are then at hand for all rows. */
static void EXTREME(arg, _rows)(void *out, int32_t *index, const void *in,
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
                int wins = BEATS(row[i], best[i]) |
                           (IS_NAN(row[i]) & !IS_NAN(best[i]));

                best[i] = wins ? row[i] : best[i];
                index[i] = wins ? at : index[i];
            }
        }
    }
}

/* Once NaN, always NaN: no number is greater or less. */
static void EXTREME(cum, )(void *out, const void *in, void *carry,
                           int64_t stride, int64_t rows, int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

    for (; rows > 0; rows--, acc++, o += stride, x += stride) {
        T best = (T)*acc;

        for (int64_t i = 0; i < n; i++) {
            const T v = x[i];

            best = (BEATS(v, best) | IS_NAN(v)) ? v : best;
            o[i] = best;
        }
        *acc = (ACC)best;
    }
}

static void EXTREME(cum, _rows)(void *out, const void *in, void *carry,
                                int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        T best = (T)acc[i];

        best = (BEATS(x[i], best) | IS_NAN(x[i])) ? x[i] : best;
        acc[i] = (ACC)best;
        o[i] = best;
    }
}

#undef EXTREME
#undef BEATS

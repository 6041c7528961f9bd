/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_tmpl.h - the kernels of sample.h for one type. Included by
 * sample_isa.h with TYPE, NAME(x) and MADD(a, b, c) defined.
 */

/* OUT, or what it held and, the sum of M rows (1, 2 or 4) with weights W. */
static inline __attribute__((always_inline)) void
NAME(blend_few)(TYPE *restrict out, const void *const *rows, const TYPE *w,
                int m, int is_first, int64_t n)
{
    const TYPE *a = rows[0], *b = rows[m > 1], *c = rows[m > 2 ? 2 : 0];
    const TYPE *d = rows[m > 2 ? 3 : 0];
    const TYPE wa = w[0], wb = w[m > 1], wc = w[m > 2 ? 2 : 0];
    const TYPE wd = w[m > 2 ? 3 : 0];

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        TYPE sum = is_first ? a[i] * wa : MADD(a[i], wa, out[i]);

        if (m > 1)
            sum = MADD(b[i], wb, sum);
        if (m > 2)
            sum = MADD(d[i], wd, MADD(c[i], wc, sum));
        out[i] = sum;
    }
}

static void NAME(blend_many)(TYPE *out, const void *const *rows, const TYPE *w,
                             int64_t count, int64_t n)
{
    double sums[PIECE];

    for (int64_t first = 0; first < n; first += PIECE) {
        const int64_t m = n - first < PIECE ? n - first : PIECE;

        for (int64_t i = 0; i < m; i++)
            sums[i] = 0;
        for (int64_t k = 0; k < count; k++) {
            const TYPE *x = (const TYPE *)rows[k] + first;
            const double weight = (double)w[k];

#pragma omp simd
            for (int64_t i = 0; i < m; i++)
                sums[i] += (double)x[i] * weight;
        }
        for (int64_t i = 0; i < m; i++)
            out[first + i] = (TYPE)sums[i];
    }
}

static void NAME(blend)(void *result, const void *const *rows,
                        const void *weights, int64_t count, int64_t n)
{
    const TYPE *w = weights;
    TYPE *out = result;
    int64_t k = 0;

    if (count > MANY) {
        NAME(blend_many)(out, rows, w, count, n);
        return;
    }
    if (count == 0)
        memset(out, 0, (size_t)n * sizeof(*out));
    if (count == 1 && w[0] == 1) {
        memcpy(out, rows[0], (size_t)n * sizeof(*out));
        return;
    }
    for (; k + 4 <= count; k += 4)
        if (k)
            NAME(blend_few)(out, rows + k, w + k, 4, 0, n);
        else
            NAME(blend_few)(out, rows, w, 4, 1, n);
    for (; k + 2 <= count; k += 2)
        if (k)
            NAME(blend_few)(out, rows + k, w + k, 2, 0, n);
        else
            NAME(blend_few)(out, rows, w, 2, 1, n);
    if (k < count && k)
        NAME(blend_few)(out, rows + k, w + k, 1, 0, n);
    else if (k < count)
        NAME(blend_few)(out, rows, w, 1, 1, n);
}

static inline __attribute__((always_inline)) TYPE
NAME(weighed)(TYPE x, TYPE weight, TYPE sum)
{
    return weight != 0 ? MADD(x, weight, sum) : sum;
}

/* The first of a sum: with 0 added, -0 would become 0. */
static inline __attribute__((always_inline)) TYPE
NAME(weighed_first)(TYPE x, TYPE weight)
{
    return weight != 0 ? x * weight : 0;
}

static inline __attribute__((always_inline)) void
NAME(pick_few)(TYPE *restrict out, const TYPE *x, const int32_t *at,
               const TYPE *w, int64_t stride, int m, int is_first, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        TYPE sum = is_first ? NAME(weighed_first)(x[at[i]], w[i])
                            : NAME(weighed)(x[at[i]], w[i], out[i]);

        if (m > 1)
            sum = NAME(weighed)(x[at[stride + i]], w[stride + i], sum);
        if (m > 2) {
            sum = NAME(weighed)(x[at[2 * stride + i]], w[2 * stride + i], sum);
            sum = NAME(weighed)(x[at[3 * stride + i]], w[3 * stride + i], sum);
        }
        out[i] = sum;
    }
}

static void NAME(pick_many)(TYPE *out, const TYPE *x, const int32_t *at,
                            const TYPE *w, int64_t stride, int64_t taps,
                            int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;

        for (int64_t k = 0; k < taps; k++)
            if (w[k * stride + i] != 0)
                sum +=
                    (double)x[at[k * stride + i]] * (double)w[k * stride + i];
        out[i] = (TYPE)sum;
    }
}

static void NAME(pick)(void *result, const void *in, const int32_t *at,
                       const void *weights, int64_t stride, int64_t taps,
                       int64_t n)
{
    const TYPE *x = in, *w = weights;
    TYPE *out = result;
    int64_t k = 0;

    if (taps > MANY) {
        NAME(pick_many)(out, x, at, w, stride, taps, n);
        return;
    }
    if (taps == 0)
        memset(out, 0, (size_t)n * sizeof(*out));
    for (; k + 4 <= taps; k += 4, at += 4 * stride, w += 4 * stride)
        if (k)
            NAME(pick_few)(out, x, at, w, stride, 4, 0, n);
        else
            NAME(pick_few)(out, x, at, w, stride, 4, 1, n);
    for (; k + 2 <= taps; k += 2, at += 2 * stride, w += 2 * stride)
        if (k)
            NAME(pick_few)(out, x, at, w, stride, 2, 0, n);
        else
            NAME(pick_few)(out, x, at, w, stride, 2, 1, n);
    if (k < taps && k)
        NAME(pick_few)(out, x, at, w, stride, 1, 0, n);
    else if (k < taps)
        NAME(pick_few)(out, x, at, w, stride, 1, 1, n);
}

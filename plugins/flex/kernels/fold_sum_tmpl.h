/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums and products of numeric type T of 32 or 64 bits, in accumulators ACC
 * of 64; WIDE is a vector of them and WIDEN loads one.
 */
static void SUFFIX(sum)(void *out, const void *in, int64_t n)
{
    const T *x = in;
    WIDE s[FOLD_VECTORS] = {{0}}, v;
    ACC chains[FOLD_CHAINS];
    int64_t i = 0;

    for (; i + FOLD_CHAINS <= n; i += FOLD_CHAINS) {
#pragma GCC unroll 8
        for (int k = 0; k < FOLD_VECTORS; k++) {
            WIDEN(&v, x + i + k * FOLD_LANES);
            s[k] += v;
        }
    }
    memcpy(chains, s, sizeof(s));
#pragma omp simd
    for (int64_t k = 0; k < n - i; k++)
        chains[k] += (ACC)x[i + k];
    for (int half = FOLD_CHAINS / 2; half; half /= 2) {
#pragma omp simd
        for (int k = 0; k < half; k++)
            chains[k] += chains[k + half];
    }
    *(ACC *)out = chains[0];
}

static void SUFFIX(prod)(void *out, const void *in, int64_t n)
{
    const T *x = in;
    WIDE s[FOLD_VECTORS], v;
    ACC chains[FOLD_CHAINS];
    int64_t i = 0;

    for (int k = 0; k < FOLD_VECTORS; k++)
        s[k] = (WIDE){0} + 1;
    for (; i + FOLD_CHAINS <= n; i += FOLD_CHAINS) {
#pragma GCC unroll 8
        for (int k = 0; k < FOLD_VECTORS; k++) {
            WIDEN(&v, x + i + k * FOLD_LANES);
            s[k] *= v;
        }
    }
    memcpy(chains, s, sizeof(s));
#pragma omp simd
    for (int64_t k = 0; k < n - i; k++)
        chains[k] *= (ACC)x[i + k];
    for (int half = FOLD_CHAINS / 2; half; half /= 2) {
#pragma omp simd
        for (int k = 0; k < half; k++)
            chains[k] *= chains[k + half];
    }
    *(ACC *)out = chains[0];
}

static void SUFFIX(sum_rows)(void *out, const void *in, int64_t stride,
                             int64_t rows, int64_t n)
{
    ACC *acc = out;
    const T *x = in;
    int64_t i = 0;

    /* These accumulators stay in registers over the rows. */
    for (; i + FOLD_CHAINS <= n; i += FOLD_CHAINS) {
        WIDE s[FOLD_VECTORS], v;

        /* One vector at a time: copied as a whole they would go by way of the
         * stack, in pieces that cannot be forwarded to loads of vectors. */
#pragma GCC unroll 8
        for (int k = 0; k < FOLD_VECTORS; k++)
            memcpy(&s[k], acc + i + k * FOLD_LANES, sizeof(s[k]));
        for (int64_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
            for (int k = 0; k < FOLD_VECTORS; k++) {
                WIDEN(&v, x + r * stride + i + k * FOLD_LANES);
                s[k] += v;
            }
        }
#pragma GCC unroll 8
        for (int k = 0; k < FOLD_VECTORS; k++)
            memcpy(acc + i + k * FOLD_LANES, &s[k], sizeof(s[k]));
    }
    for (; i + FOLD_LANES <= n; i += FOLD_LANES) {
        WIDE s, v;

        memcpy(&s, acc + i, sizeof(s));
        for (int64_t r = 0; r < rows; r++) {
            WIDEN(&v, x + r * stride + i);
            s += v;
        }
        memcpy(acc + i, &s, sizeof(s));
    }
    for (; i < n; i++)
        for (int64_t r = 0; r < rows; r++)
            acc[i] += (ACC)x[r * stride + i];
}

#undef WIDE
#undef WIDEN

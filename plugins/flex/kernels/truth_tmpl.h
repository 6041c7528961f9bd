/* SPDX-License-Identifier: Apache-2.0 */
/* any and all of type T: NaN is not zero. Accumulators are bytes. */
static void SUFFIX(any)(void *out, const void *in, int64_t n)
{
    const T *x = in;
    int truth = 0;

#pragma omp simd reduction(| : truth)
    for (int64_t i = 0; i < n; i++)
        truth |= x[i] != 0;
    *(uint8_t *)out = (uint8_t)truth;
}

static void SUFFIX(all)(void *out, const void *in, int64_t n)
{
    const T *x = in;
    int zero = 0;

#pragma omp simd reduction(| : zero)
    for (int64_t i = 0; i < n; i++)
        zero |= x[i] == 0;
    *(uint8_t *)out = (uint8_t)!zero;
}

static void SUFFIX(any_rows)(void *out, const void *in, int64_t stride,
                             int64_t rows, int64_t n)
{
    uint8_t *acc = out;
    const T *x = in;

    for (int64_t r = 0; r < rows; r++, x += stride) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            acc[i] = (uint8_t)(acc[i] | (x[i] != 0));
    }
}

static void SUFFIX(all_rows)(void *out, const void *in, int64_t stride,
                             int64_t rows, int64_t n)
{
    uint8_t *acc = out;
    const T *x = in;

    for (int64_t r = 0; r < rows; r++, x += stride) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            acc[i] = (uint8_t)(acc[i] & (x[i] != 0));
    }
}

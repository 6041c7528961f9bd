/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of elements of type T; included by loop.c for each size. */

static void SUFFIX(copy)(void *out, int64_t out_stride, const void *in,
                         int64_t in_stride, int64_t count)
{
    T *to = out;
    const T *from = in;

    if (out_stride == 1 && in_stride == 0) {
        T value = count > 0 ? *from : 0;

#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            to[i] = value;
    } else if (out_stride == 1) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i * in_stride];
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i * out_stride] = from[i * in_stride];
    }
}

#undef T
#undef SUFFIX

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of OP, one of sin, cos and tan: f32 in vectors, by EXPR of X, up
 * to the limit of its reduction; beyond, and f64, by the C library's f64. What
 * an element gives does not depend on its neighbours.
 */

static int64_t PASTE(map_, OP, _f32)(void *out, const void *in, const void *b,
                                     const void *c, int64_t n)
{
    float *o = out;
    const float *a = in;
    float saved[64];

    (void)b;
    (void)c;
    /* In pieces: OUT may be IN, and the second look needs the arguments. */
    for (int64_t first = 0; first < n; first += 64) {
        int64_t count = n - first < 64 ? n - first : 64;
        int large = 0;

#pragma omp simd reduction(| : large)
        for (int64_t i = 0; i < count; i++) {
            float x = a[first + i];

            saved[i] = x;
            large |= !(fabsf(x) <= 1e6f);
        }
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            float x = fabsf(saved[i]) <= 1e6f ? saved[i] : 0;

            o[first + i] = EXPR;
        }
        for (int64_t i = 0; i < count && large; i++)
            if (!(fabsf(saved[i]) <= 1e6f))
                o[first + i] = (float)OP((double)saved[i]);
    }
    return -1;
}

static int64_t PASTE(map_, OP, _f64)(void *out, const void *in, const void *b,
                                     const void *c, int64_t n)
{
    double *o = out;
    const double *a = in;

    (void)b;
    (void)c;
    for (int64_t i = 0; i < n; i++)
        o[i] = OP(a[i]);
    return -1;
}

#undef OP
#undef EXPR

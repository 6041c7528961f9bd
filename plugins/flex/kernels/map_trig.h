/* SPDX-License-Identifier: Apache-2.0 */
/* sin and cos: f32 in vectors up to the limit of the reduction, the rest and
 * f64 through the C library. */

#define TRIG_LIMIT 1e5f

static int64_t sin_or_cos_f32(void *out, const void *in, int64_t n, int cosine)
{
    float *o = out;
    const float *a = in;
    float saved[64];

    /* In pieces: OUT may be IN, and the second look needs the arguments. */
    for (int64_t first = 0; first < n; first += 64) {
        int64_t count = n - first < 64 ? n - first : 64;
        int large = 0;

#pragma omp simd reduction(| : large)
        for (int64_t i = 0; i < count; i++) {
            float x = a[first + i];

            saved[i] = x;
            large |= !(fabsf(x) <= TRIG_LIMIT);
        }
        if (large) {
            for (int64_t i = 0; i < count; i++)
                o[first + i] = cosine ? cosf(saved[i]) : sinf(saved[i]);
            continue;
        }
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            o[first + i] = sin_f32(saved[i], cosine);
    }
    return -1;
}

#undef TRIG_LIMIT

static int64_t map_sin_f32(void *out, const void *a, const void *b,
                           const void *c, int64_t n)
{
    (void)b;
    (void)c;
    return sin_or_cos_f32(out, a, n, 0);
}

static int64_t map_cos_f32(void *out, const void *a, const void *b,
                           const void *c, int64_t n)
{
    (void)b;
    (void)c;
    return sin_or_cos_f32(out, a, n, 1);
}

static int64_t map_sin_f64(void *out, const void *in, const void *b,
                           const void *c, int64_t n)
{
    double *o = out;
    const double *a = in;

    (void)b;
    (void)c;
    for (int64_t i = 0; i < n; i++)
        o[i] = sin(a[i]);
    return -1;
}

static int64_t map_cos_f64(void *out, const void *in, const void *b,
                           const void *c, int64_t n)
{
    double *o = out;
    const double *a = in;

    (void)b;
    (void)c;
    for (int64_t i = 0; i < n; i++)
        o[i] = cos(a[i]);
    return -1;
}

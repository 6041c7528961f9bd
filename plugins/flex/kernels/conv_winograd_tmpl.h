/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_winograd_tmpl.h - the transforms of F(2 x 2, 3 x 3) as in "Fast
 * Algorithms for Convolutional Neural Networks" (Lavin and Gray 2015), on
 * vectors of f32: lane i is tile i. Included by conv_isa.h behind
 * conv_tmpl.h.
 */

/* x -> B^T x of four vectors, in place. */
static inline __attribute__((always_inline)) void
winograd_into(f32_vector *a, f32_vector *b, f32_vector *c, f32_vector *d)
{
    const f32_vector first = *a - *c, second = *b + *c, third = *c - *b;

    *d = *b - *d;
    *a = first;
    *b = second;
    *c = third;
}

static void winograd_input(const void *in, void *out, int64_t point)
{
    for (int half = 0; half < 2; half++) {
        const float *from = (const float *)in + half * f32_lanes;
        float *to = (float *)out + half * f32_lanes;
        f32_vector x[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            x[i] = f32_load(from + i * f32_width);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            winograd_into(&x[i], &x[4 + i], &x[8 + i], &x[12 + i]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            winograd_into(&x[4 * i], &x[4 * i + 1], &x[4 * i + 2],
                          &x[4 * i + 3]);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            f32_store(to + i * point, x[i]);
    }
}

/* x -> G x of three vectors into four. */
static inline __attribute__((always_inline)) void
winograd_spread(f32_vector a, f32_vector b, f32_vector c, f32_vector out[4],
                int step)
{
    const f32_vector ends = (a + c) * 0.5f, middle = b * 0.5f;

    out[0] = a;
    out[step] = ends + middle;
    out[2 * step] = ends - middle;
    out[3 * step] = c;
}

static void winograd_weight(const void *taps, void *out, int64_t point)
{
    for (int part = 0; part < FLEX_WINOGRAD_LANES / f32_lanes; part++) {
        const float *from = (const float *)taps + part * f32_lanes;
        float *to = (float *)out + part * f32_lanes;
        f32_vector x[9], y[12], z[16];

#pragma GCC unroll 9
        for (int i = 0; i < 9; i++)
            x[i] = f32_load(from + i * FLEX_WINOGRAD_LANES);
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++) /* [4][3] */
            winograd_spread(x[i], x[3 + i], x[6 + i], y + i, 3);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            winograd_spread(y[3 * i], y[3 * i + 1], y[3 * i + 2], z + 4 * i, 1);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            f32_store(to + i * point, z[i]);
    }
}

/* A and B taken in turn. */
static inline __attribute__((always_inline)) void
winograd_weave(f32_vector a, f32_vector b, float *out)
{
    float pair[2][f32_lanes];

    f32_store(pair[0], a);
    f32_store(pair[1], b);
    for (int i = 0; i < f32_lanes; i++) {
        out[2 * i] = pair[0][i];
        out[2 * i + 1] = pair[1][i];
    }
}

static void winograd_output(const void *in, int64_t point, double bias,
                            void *out, void *check)
{
    for (int half = 0; half < 2; half++) {
        const float *from = (const float *)in + half * f32_lanes;
        float *to = (float *)out + half * 2 * f32_lanes;
        float *finite = (float *)check + half * f32_lanes;
        f32_vector x[8], y[4], sum = f32_load(finite);

#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const f32_vector a = f32_load(from + i * point);
            const f32_vector b = f32_load(from + (4 + i) * point);
            const f32_vector c = f32_load(from + (8 + i) * point);
            const f32_vector d = f32_load(from + (12 + i) * point);
            x[i] = a + b + c;
            x[4 + i] = b - c - d;
        }
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            const f32_vector *row = x + 4 * i;
            y[2 * i] = row[0] + row[1] + row[2] + (float)bias;
            y[2 * i + 1] = row[1] - row[2] - row[3] + (float)bias;
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            sum += y[i] - y[i];
        f32_store(finite, sum);
        winograd_weave(y[0], y[1], to);
        winograd_weave(y[2], y[3], to + 2 * f32_width);
    }
}

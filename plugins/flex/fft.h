/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.h - complex Fourier transforms of any length.
 *
 *   fft_plan.c     factors, roots of unity: what depends on the length alone
 *   fft.c          a transform, long ones on all threads
 *   kernels/fft*   the loops
 *   ops/fft.c      rfft and irfft
 *
 * A length with small factors is a product A B (Bailey's four steps): B
 * transforms of length A, side by side as columns, then a multiplication by
 * roots that also transposes, then A transforms of length B. Whatever has a
 * large prime factor is a convolution (Bluestein) of a length without one.
 */
#ifndef FLEX_FFT_H
#define FLEX_FFT_H

#include "flex.h"
#include "kernels/fft.h"

/* A transform of length N along the first dimension of a tile. */
enum { FLEX_FFT_PASSES_MAX = 31 };
struct flex_fft_steps {
    int64_t n;
    uint32_t count;
    struct flex_fft_pass passes[FLEX_FFT_PASSES_MAX];
    void *tables; /* that the passes point into; owned */
};

struct flex_fft_plan {
    const struct hob_host *host; /* borrowed, outlives the plan */
    const struct flex_fft_kernels *kernels;
    int64_t n;
    /* Without a large prime factor: n = first.n * second.n. */
    struct flex_fft_steps first, second;
    /* Both lengths, up to whole vectors. */
    int64_t first_padded, second_padded;
    struct flex_planar twist; /* [second_padded][first_padded], owned */
    /* With one, or NULL: a convolution of its length m > 2 n - 2. */
    struct flex_fft_plan *convolution;
    struct flex_planar chirp;  /* exp(-i pi j^2 / n), owned */
    struct flex_planar filter; /* its transform, over m; owned */
};

/* What a transform reads. */
enum flex_fft_source {
    FLEX_FFT_PLANAR,
    FLEX_FFT_PAIRS, /* re, im, re, im, .. in re: the halves of a real row */
    FLEX_FFT_REAL   /* only re; im counts as 0 */
};

/* ---- fft_plan.c ---- */

/* The kernels of DEVICE for DTYPE. */
const struct flex_fft_kernels *
flex_fft_kernels_of(const struct flex_device *device, uint32_t dtype);

/* A plan for transforms of length N >= 1; HOB_ERR_MEMORY. */
hob_status flex_fft_plan_new(struct flex_device *device,
                             const struct flex_fft_kernels *kernels, int64_t n,
                             struct flex_fft_plan **out);
void flex_fft_plan_free(struct flex_fft_plan *plan); /* accepts NULL */

/* Nonzero if N has no prime factor above FLEX_FFT_RADIX_MAX. */
int flex_fft_is_smooth(int64_t n);
/* The passes of length N, which is smooth. */
hob_status flex_fft_steps_init(const struct hob_host *host, uint32_t size,
                               int64_t n, struct flex_fft_steps *out);

/* cos and sin, times FACTOR, of 2 pi k / N for k < COUNT <= N, as elements of
 * SIZE bytes. */
hob_status flex_fft_roots(const struct hob_host *host, uint32_t size, int64_t n,
                          int64_t count, double factor,
                          const struct flex_planar *out);

/* COUNT numbers of KERNELS' type; both NULL without memory. */
hob_status flex_planar_alloc(const struct hob_host *host, uint32_t size,
                             int64_t count, struct flex_planar *out);
void flex_planar_free(const struct hob_host *host, struct flex_planar *planar);

/* ---- fft.c ---- */

/* PLANAR from element INDEX on. */
static inline struct flex_planar
flex_planar_at(const struct flex_planar *planar, int64_t index, uint32_t size)
{
    struct flex_planar at = {(char *)planar->re + index * (int64_t)size,
                             (char *)planar->im + index * (int64_t)size};
    return at;
}

/* Real and imaginary parts exchanged, on both sides, make a transform its
 * opposite. */
static inline struct flex_planar
flex_planar_swapped(const struct flex_planar *planar)
{
    struct flex_planar swapped = {planar->im, planar->re};
    return swapped;
}

/* COUNT elements of each plane within SCRATCH, which moves on. */
struct flex_planar flex_planar_take(char **scratch, int64_t count,
                                    uint32_t size);
uint64_t flex_planar_bytes(int64_t count, uint32_t size);

/*
 * The passes of STEPS over COLUMNS columns of IN, with BUFFERS of n * COLUMNS
 * elements to work in. Returns where the result is: OUT with OUT_STRIDE if
 * that is not NULL, else a buffer or IN, with a stride in *OUT_STRIDE_OF.
 */
struct flex_planar flex_fft_passes(
    const struct flex_fft_kernels *kernels, const struct flex_fft_steps *steps,
    int64_t columns, const struct flex_planar *in, int64_t in_stride,
    const struct flex_planar buffers[2], const struct flex_planar *out,
    int64_t out_stride, int64_t *out_stride_of);

/* Bytes of SCRATCH for flex_fft_run. */
uint64_t flex_fft_scratch_bytes(const struct flex_fft_plan *plan);
/* Nonzero if a transform of length N runs on several threads by itself. */
static inline int flex_fft_is_long(int64_t n)
{
    return n >= 1 << 16;
}
/* OUT, planar and no part of IN, = the transform of IN. */
hob_status flex_fft_run(struct flex_device *device,
                        const struct flex_fft_plan *plan,
                        enum flex_fft_source source,
                        const struct flex_planar *in,
                        const struct flex_planar *out, char *scratch);

#endif

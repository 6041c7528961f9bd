/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.h - the loops of the Fourier transforms.
 *
 * Complex numbers are planar: real and imaginary parts in two arrays, as the
 * ops have them. Many transforms run side by side: element i of the one in
 * column c lies at [i * stride + c], so that every loop runs over columns and
 * is a loop over vectors, whatever the radix. Columns come in multiples of
 * FLEX_FFT_BYTES; those that are not needed hold anything.
 */
#ifndef FLEX_FFT_KERNELS_H
#define FLEX_FFT_KERNELS_H

#include <stdint.h>

/* Bytes of the columns that a tile has at least; the widest vector. */
enum { FLEX_FFT_BYTES = 64 };
/* The greatest radix. */
enum { FLEX_FFT_RADIX_MAX = 61 };

/* Two arrays of f32 or f64. */
struct flex_planar {
    void *re, *im;
};

/*
 * One step of Stockham's algorithm, decimating in frequency, along the first
 * dimension of radix * m * s rows:
 *
 *   out[q + s (radix p + k)] = w(radix m)^(p k) *
 *                              sum over j of in[q + s (p + m j)] w(radix)^(j k)
 *
 * for q < s, p < m, k < radix and w(n) = exp(-2 pi i / n).
 */
struct flex_fft_pass {
    int64_t radix, m, s;
    const void *roots;  /* cos, sin of 2 pi p k / (radix m): m rows of radix - 1
                           pairs, k from 1 */
    const void *circle; /* cos, sin of 2 pi j / radix, if that is odd */
};

/* H complex numbers are the two halves, even and odd, of N = 2 H real ones.
 * HALVES is cos, then sin, of 2 pi k / N, halved, for k < H. */
struct flex_fft_halves {
    int64_t h;
    const void *cos, *sin;
};

struct flex_fft_kernels {
    uint32_t size; /* of an element */

    void (*pass)(const struct flex_fft_pass *pass, int64_t columns,
                 const struct flex_planar *in, int64_t in_stride,
                 const struct flex_planar *out, int64_t out_stride);
    /* out[j * out_stride + i] = in[i * in_stride + j] conj(roots) with roots
     * at [j * out_stride + i]; ROWS and COLUMNS are multiples of vectors. */
    void (*twist)(int64_t rows, int64_t columns, const struct flex_planar *in,
                  int64_t in_stride, const struct flex_planar *roots,
                  const struct flex_planar *out, int64_t out_stride);
    /* out[j * out_stride + i] = in[i * in_stride + j]. */
    void (*turn)(int64_t rows, int64_t columns, const void *in,
                 int64_t in_stride, void *out, int64_t out_stride);

    /* re[i], im[i] = in[2 i], in[2 i + 1] for N pairs in each of ROWS rows,
     * and back for one row. */
    void (*split)(int64_t rows, int64_t n, const void *in, int64_t in_stride,
                  const struct flex_planar *out, int64_t out_stride);
    void (*join)(int64_t n, const struct flex_planar *in, void *out);
    /* x = x w, for N numbers. */
    void (*multiply)(int64_t n, const struct flex_planar *x,
                     const struct flex_planar *w);

    /*
     * unpack: the H + 1 coefficients of real numbers from the transform of
     * their halves; pack: the opposite, over H. The first and the last
     * imaginary part are written as 0 and not read. FIRST up to LAST: which
     * of the H indices; _columns: of COLUMNS transforms side by side.
     */
    void (*unpack)(const struct flex_fft_halves *halves, int64_t first,
                   int64_t last, const struct flex_planar *in,
                   const struct flex_planar *out);
    void (*pack)(const struct flex_fft_halves *halves, int64_t first,
                 int64_t last, const struct flex_planar *in,
                 const struct flex_planar *out);
    void (*unpack_columns)(const struct flex_fft_halves *halves,
                           int64_t columns, const struct flex_planar *in,
                           const struct flex_planar *out);
    void (*pack_columns)(const struct flex_fft_halves *halves, int64_t columns,
                         const struct flex_planar *in,
                         const struct flex_planar *out);
    /* The N coefficients of real numbers, over N, from the first N / 2 + 1,
     * for an odd N; COLUMNS transforms side by side. OUT may be IN. */
    void (*mirror)(int64_t n, int64_t columns, const struct flex_planar *in,
                   const struct flex_planar *out);
};

enum { FLEX_FFT_F32, FLEX_FFT_F64, FLEX_FFT_COUNT_ };

extern const struct flex_fft_kernels flex_fft_kernels_base[FLEX_FFT_COUNT_];
extern const struct flex_fft_kernels flex_fft_kernels_v2[FLEX_FFT_COUNT_];
extern const struct flex_fft_kernels flex_fft_kernels_v3[FLEX_FFT_COUNT_];
extern const struct flex_fft_kernels flex_fft_kernels_v4[FLEX_FFT_COUNT_];

#endif

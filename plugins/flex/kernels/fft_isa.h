/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft_isa.h - the Fourier transforms of one instruction set. Included by
 * fft_base.c, fft_v2.c, fft_v3.c and fft_v4.c with VECTOR_BYTES and TABLE
 * defined. LOW and HIGH are the shuffles that take elements of two vectors in
 * turns, from their lower and from their upper halves.
 */
#include "fft.h"

#include <string.h>

#define LOW_2 0, 2
#define HIGH_2 1, 3
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

#define TYPE float
#define NAME(x) f32_##x
#if VECTOR_BYTES == 16
#define LOW LOW_4
#define HIGH HIGH_4
#elif VECTOR_BYTES == 32
#define LOW LOW_8
#define HIGH HIGH_8
#else
#define LOW LOW_16
#define HIGH HIGH_16
#endif
#include "fft_pass_tmpl.h"
#include "fft_tmpl.h"

#define TYPE double
#define NAME(x) f64_##x
#if VECTOR_BYTES == 16
#define LOW LOW_2
#define HIGH HIGH_2
#elif VECTOR_BYTES == 32
#define LOW LOW_4
#define HIGH HIGH_4
#else
#define LOW LOW_8
#define HIGH HIGH_8
#endif
#include "fft_pass_tmpl.h"
#include "fft_tmpl.h"

#define TYPE_ENTRY(t, bytes)                                                   \
    {                                                                          \
        .size = bytes, .pass = t##_pass, .twist = t##_twist, .turn = t##_turn, \
        .split = t##_split, .join = t##_join, .multiply = t##_multiply,        \
        .unpack = t##_unpack, .pack = t##_pack,                                \
        .unpack_columns = t##_unpack_columns,                                  \
        .pack_columns = t##_pack_columns, .mirror = t##_mirror,                \
    }

const struct flex_fft_kernels TABLE[FLEX_FFT_COUNT_] = {
    [FLEX_FFT_F32] = TYPE_ENTRY(f32, 4),
    [FLEX_FFT_F64] = TYPE_ENTRY(f64, 8),
};

#undef TYPE_ENTRY

/* SPDX-License-Identifier: Apache-2.0 */
/* fft_v4.c - Fourier transforms for x86-64-v4. */
#define VECTOR_BYTES 64
#define TABLE flex_fft_kernels_v4
#include "fft_isa.h"

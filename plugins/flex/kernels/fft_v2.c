/* SPDX-License-Identifier: Apache-2.0 */
/* fft_v2.c - Fourier transforms for x86-64-v2. */
#define VECTOR_BYTES 16
#define TABLE flex_fft_kernels_v2
#include "fft_isa.h"

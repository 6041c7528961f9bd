/* SPDX-License-Identifier: Apache-2.0 */
/* fft_v3.c - Fourier transforms for x86-64-v3. */
#define VECTOR_BYTES 32
#define TABLE flex_fft_kernels_v3
#include "fft_isa.h"

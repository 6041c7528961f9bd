/* SPDX-License-Identifier: Apache-2.0 */
/* fft_base.c - Fourier transforms for any processor. */
#define VECTOR_BYTES 16
#define TABLE flex_fft_kernels_base
#include "fft_isa.h"

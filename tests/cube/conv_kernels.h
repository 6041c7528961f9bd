/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_kernels.h - the kernels of convolutions for compute capability 9.0 in
 * plain C, as places of fake_cuda.launching: they read and write what they are
 * told as the device would, copies of places by the rules of its manual.
 */
#ifndef CONV_KERNELS_H
#define CONV_KERNELS_H

#include <stdint.h>

uint16_t bf16_of(float x);
float of_bf16(uint16_t x);

/* The launch of NAME, one of conv_pack, conv_sm90, conv_weight_sm90 and
 * conv_finish, of bf16 or, if there are PARTS of a number, of f32. */
void conv_kernel_run(const char *name, int parts, void **parameters);

#endif

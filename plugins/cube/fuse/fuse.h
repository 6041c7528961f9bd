/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.h - the interface "fused.compute" of hob/ext/fusion.h: a group of ops as
 * one kernel.
 *
 *   plan.c, steps.c     a program: what may be a step, when it is computed
 *   layout.c            a run: strides and sizes to a class of kernels
 *   emit.c, walk.c, passes.c, folds.c, pairs.c
 *                       program and class to text in the dialect
 *   store.c             programs, their kernels, the threads that compile them
 *   product.c           a product with a program as its epilogue
 *   fuse.c              the interface: a run to a launch
 */
#ifndef CUBE_FUSE_FUSE_H
#define CUBE_FUSE_FUSE_H

#include "../runtime.h"

#include <hob/ext/fusion.h>

struct cube_fusion;

/* What DEVICE, which has its runtime, host and limits, fuses with. NULL: no
 * memory. */
struct cube_fusion *cube_fusion_new(struct cube_device *device);
/* Compilers are waited for, and no kernel is left; accepts NULL. */
void cube_fusion_free(struct cube_fusion *fusion);

/* The interface; its instance is a struct cube_device. The second one is for a
 * runtime with a library of products. */
extern const struct hob_fused_compute cube_fused_compute;
extern const struct hob_fused_compute cube_fused_products;

#endif

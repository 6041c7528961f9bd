/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the compiled kernels of a device, by variant.
 *
 * What is not in memory is looked for on disk, then compiled; other threads go
 * on meanwhile. Kernels live until the device is closed.
 */
#ifndef CUBE_KERNELS_H
#define CUBE_KERNELS_H

#include "described.h"

struct cube_cache;
struct cube_fusion;

struct cube_kernel {
    struct cube_variant variant;
    struct cube_layout layout;
    void *handle; /* the runtime's */
};

/* DEVICE has its runtime, host and limits. NULL: no memory. */
struct cube_kernels *cube_kernels_new(struct cube_device *device);
/* All kernels are closed; accepts NULL. */
void cube_kernels_free(struct cube_kernels *kernels);

/* The kernel of VARIANT. On failure *OUT_MESSAGE says why, if there is memory
 * for it. */
hob_status cube_kernels_get(struct cube_kernels *kernels,
                            const struct cube_variant *variant,
                            const struct cube_kernel **out_kernel,
                            char **out_message);

/* The same made anew, for the caller alone; *OUT_IS_CACHED says whether its
 * binary was on disk. Slow: it may compile. */
hob_status cube_kernel_make(struct cube_kernels *kernels,
                            const struct cube_variant *variant,
                            struct cube_kernel **out_kernel, int *out_is_cached,
                            char **out_message);
void cube_kernel_close(struct cube_kernels *kernels,
                       struct cube_kernel *kernel); /* accepts NULL */

/* The cache on disk of DEVICE, as cube_cache_open() has it. */
struct cube_cache *cube_cache_of(const struct cube_device *device);

/* What fuses groups of ops on the device, fuse/fuse.h. */
struct cube_fusion *cube_kernels_fusion(struct cube_kernels *kernels);

/* DESCRIPTION as a program, made once. NULL with REASON, or without memory and
 * with an empty one. */
const struct cube_described *
cube_kernels_describe(struct cube_kernels *kernels,
                      const struct hob_cube_kernel *description,
                      char reason[CUBE_REASON]);

#endif

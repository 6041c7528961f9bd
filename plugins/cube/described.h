/* SPDX-License-Identifier: Apache-2.0 */
/*
 * described.h - the kernels of extensions (hob/ext/cube.h) as programs.
 *
 * A description comes from outside: it is copied, checked once, and known by
 * its address from then on.
 */
#ifndef CUBE_DESCRIBED_H
#define CUBE_DESCRIBED_H

#include "dialect.h"

#include <hob/ext/cube.h>

struct cube_described {
    const struct hob_cube_kernel *key; /* borrowed, outlives the device */
    struct hob_cube_kernel kernel;     /* a copy, as far as both sides know */
    struct cube_program program;
    uint32_t buffer_count;
    uint32_t param_count;
    uint32_t constant_count;
    struct cube_described *next;
};

enum { CUBE_REASON = 256 };

/*
 * Make DESCRIPTION a program. NULL without memory, REASON being empty then, or
 * with REASON. The caller frees it with free().
 */
struct cube_described *cube_describe(const struct hob_cube_kernel *description,
                                     char reason[CUBE_REASON]);

#endif

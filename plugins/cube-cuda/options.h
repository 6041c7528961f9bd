/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of a device; README.md documents them. */
#ifndef CCU_OPTIONS_H
#define CCU_OPTIONS_H

#include <cube/options.h>

struct ccu_options {
    char nvrtc_dir[CUBE_PATH]; /* where NVRTC lies; "": where it usually does */
    char cublas_dir[CUBE_PATH]; /* the same of cuBLASLt */
    uint32_t has_blas;          /* use it */
    uint32_t has_tf32;    /* products of f32 may round operands to tf32 */
    uint32_t is_blocking; /* each launch is waited for */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvrtc.h - CUDA C to machine code for one device, by NVRTC, a library that
 * takes some 100 ms to open.
 */
#ifndef CCU_NVRTC_H
#define CCU_NVRTC_H

#include "driver.h"
#include "library.h"

#include <cube/runtime.h>

struct ccu_device;

struct ccu_compiler {
    struct ccu_nvrtc nvrtc;
    struct ccu_library library;
    uint32_t is_open;        /* all functions are there */
    int major, minor;        /* its version */
    _Atomic uint32_t is_old; /* it knows no options that make it faster */
};

/* Begin to open the library. Without a thread it is opened at once. */
hob_status ccu_compiler_init(struct ccu_device *device);
void ccu_compiler_release(struct ccu_device *device);

/* Whether there is one of version MAJOR or later. */
int ccu_compiler_is_from(struct ccu_device *device, int major);

/* As in struct cube_runtime. */
const char *ccu_compile_identity(struct cube_device *device);
hob_status ccu_compile(struct cube_device *device,
                       const struct cube_source *source, void **out_binary,
                       uint64_t *out_bytes, char **out_message);

#endif

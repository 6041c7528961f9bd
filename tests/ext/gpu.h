/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h - the extension of test_gpu.c: what gpu.json promises. */
#ifndef TEST_GPU_H
#define TEST_GPU_H

#include <hob/ext/cube.h>

/* How a launch of gpu.broken is wrong. */
enum gpu_broken {
    GPU_DOES_NOT_COMPILE,
    GPU_ONE_BUFFER,
    GPU_NO_NUMBER,
    GPU_FLOAT_FOR_INTEGER,
    GPU_TOO_LARGE,
    GPU_ARRAY,
    GPU_BAD_WIDTH,
    GPU_BAD_GROUP,
    GPU_BAD_NAME,
    GPU_BAD_SPIRV,
    GPU_NO_KERNEL,
    GPU_CHANGED,
    GPU_BROKEN_COUNT
};

const struct hob_plugin *gpu_entry(const struct hob_host *host);

#endif

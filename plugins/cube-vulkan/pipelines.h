/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines.h - SPIR-V to what the device runs.
 *
 * What a driver makes of it is kept in the driver's own form (a
 * VkPipelineCache), beside the compiled kernels on disk.
 */
#ifndef CVK_PIPELINES_H
#define CVK_PIPELINES_H

#include "loader.h"

#include <hob/ext/plugin.h>

#include <stdatomic.h>

struct cube_cache;
struct cube_device;
struct cube_source;
struct cvk_device;

struct cvk_kernel {
    VkPipeline pipeline;
    uint64_t number; /* of the last batch that runs it */
};

struct cvk_pipelines {
    struct cvk_device *device; /* borrowed, outlives this */
    VkPipelineLayout layout;   /* of all of them: push constants */
    VkPipelineCache cache;
    struct cube_cache *disk;  /* where it is kept; NULL: nowhere */
    uint64_t disk_bytes;      /* of what is there */
    atomic_uint opened_count; /* kernels so far */
};

hob_status cvk_pipelines_init(struct cvk_pipelines *pipelines,
                              struct cvk_device *device, char **out_message);
void cvk_pipelines_release(struct cvk_pipelines *pipelines);

/* As in struct cube_runtime. */
hob_status cvk_kernel_open(struct cube_device *device,
                           const struct cube_source *source, const void *binary,
                           uint64_t bytes, void **out_kernel,
                           char **out_message);
void cvk_kernel_close(struct cube_device *device, void *kernel);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - one opened device: all its parts. */
#ifndef CVK_DEVICE_H
#define CVK_DEVICE_H

#include "instance.h"
#include "memory.h"
#include "options.h"
#include "pipelines.h"
#include "queue.h"
#include "staging.h"

#include <cube/runtime.h>

struct cvk_device {
    struct cube_device cube; /* first: a pointer to it is one to the whole */
    struct cvk_instance *instance;        /* borrowed, outlives this */
    const struct cvk_physical *physical;  /* the same */
    const struct cvk_instance_api *world; /* the same */
    struct cvk_device_api api;
    VkDevice handle;
    VkPhysicalDeviceMemoryProperties memory_types;
    struct cvk_options options;
    atomic_uint is_dump_told; /* that dump_dir cannot be written */
    struct cvk_memory memory;
    struct cvk_queue queue;
    struct cvk_staging staging;
    struct cvk_pipelines pipelines;
    char name[40];      /* as in "cube-vulkan:0" */
    char identity[128]; /* of the compiler and of what it was asked for */
};

/* ---- as in struct hob_backend ---- */

hob_status cvk_device_open(void *instance, uint32_t ordinal,
                           const char *options, void **out_device,
                           char **out_message);
void cvk_device_close(void *device);
hob_status cvk_device_alloc(void *device, uint64_t bytes, void **out_data);
void cvk_device_free(void *device, void *data, uint64_t bytes);
hob_status cvk_device_upload(void *device, void *data, const void *host_data,
                             uint64_t bytes);
hob_status cvk_device_download(void *device, void *host_data, const void *data,
                               uint64_t bytes);
hob_status cvk_device_sync(void *device);
void cvk_device_memory_stats(void *device, struct hob_memory_stats *out);
void cvk_device_reset_peak(void *device);
void cvk_device_trim(void *device);

/* The runtime of every device; see cube/runtime.h. */
extern const struct cube_runtime cvk_runtime;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance.h - what Vulkan finds on this machine: the library, the devices of
 * its drivers, and what each of those lacks.
 *
 * Nothing is opened before somebody asks. Devices are numbered: those that can
 * be used first, then discrete GPUs before integrated ones, virtual ones, CPUs
 * and others, then as the drivers say.
 */
#ifndef CVK_INSTANCE_H
#define CVK_INSTANCE_H

#include "loader.h"
#include "matrices.h"

#include <cube/spirv.h>
#include <hob/ext/plugin.h>

#include <pthread.h>
#include <sys/types.h>

enum { CVK_MAX_DEVICES = 64 };

/* One device of a driver. */
struct cvk_physical {
    VkPhysicalDevice handle;
    VkPhysicalDeviceType type;
    uint32_t queue_family;
    uint32_t has_f64, has_i64, has_f16; /* 0 or 1 */
    uint32_t has_i8, has_i16;           /* arithmetic */
    uint32_t rounds_f16;                /* as in struct cube_limits */
    uint32_t has_size_control;          /* of subgroups, with whole ones */
    uint32_t asks_size;                 /* subgroups have several sizes */
    uint32_t has_sm_count;              /* the extension that tells it */
    uint32_t subgroup_size;             /* of every subgroup */
    struct cvk_matrix_extensions matrix_extensions;
    uint32_t matrices; /* as in struct cube_limits */
    uint32_t group_size, groups, shared_bytes, push_bytes;
    uint32_t processors;     /* 0: unknown */
    uint32_t driver_version; /* in the vendor's own form */
    uint32_t vendor, product;
    struct cube_float_controls controls;
    uint64_t memory_bytes; /* of its largest local heap */
    uint64_t alloc_bytes;  /* the largest allocation */
    uint8_t cache_uuid[VK_UUID_SIZE];
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    char lacks[CVK_REASON]; /* "": it can be used */
};

/* One VkInstance and its devices. */
struct cvk_world {
    pid_t process; /* whose one world it is, which stays open; 0: it is not */
    uint32_t count;
    struct cvk_loader loader;
    struct cvk_instance_api api;
    VkInstance handle;
    struct cvk_physical devices[CVK_MAX_DEVICES];
    char problem[CVK_REASON]; /* why there is no device */
};

/* The plugin in one runtime. All that is kept by the process is the world
 * without validation. */
struct cvk_instance {
    const struct hob_host *host;
    pthread_mutex_t lock; /* held while worlds and the compiler are opened */
    struct cvk_world *worlds[2]; /* without and with validation */
    const void *compiler;        /* compile.c's; NULL: not opened yet */
    /* What tests replace. */
    PFN_vkGetInstanceProcAddr get; /* NULL: libvulkan's */
    const char *compiler_path;     /* NULL: beside the plugin */
};

/* NULL without memory. */
struct cvk_instance *cvk_instance_new(const struct hob_host *host);
/* Accepts NULL. */
void cvk_instance_free(struct cvk_instance *instance);

/* What is there, opened on first need; NULL without memory. */
const struct cvk_world *cvk_instance_world(struct cvk_instance *instance,
                                           int is_validating);

/* ---- as in struct hob_backend ---- */

hob_status cvk_device_count(void *instance, uint32_t *out_count);
hob_status cvk_device_info(void *instance, uint32_t ordinal,
                           struct hob_device_info *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_vulkan.h - a driver of Vulkan for tests, in this process's memory.
 *
 * Device addresses are host pointers. Commands run when their batch is waited
 * for, at the latest: whoever reads or reuses memory too early is found out.
 * Every pipeline runs one kernel, to = a + scale * b, as its push constants or
 * what they point at say. The driver looks for races: a command that touches
 * what another has touched since the last barrier, one of them writing.
 *
 * Any call can be made to fail, and any function to be missing.
 */
#ifndef FAKE_VULKAN_H
#define FAKE_VULKAN_H

#include <cube-vulkan/loader.h>

#include <stdint.h>

enum { FAKE_DEVICES = 6, FAKE_LOOKS = 8 };

struct fake_device {
    VkPhysicalDeviceType type;
    uint32_t version;      /* 0: VK_API_VERSION_1_2 */
    const char *lacks;     /* as in "timelineSemaphore", or NULL */
    uint64_t memory_bytes; /* 0: 32 MiB */
    uint64_t alloc_bytes;  /* 0: as much */
    uint32_t groups;       /* 0: 65535 */
    uint8_t uuid;          /* of its cache */
};

struct fake_vulkan {
    /* --- set by tests --- */
    struct fake_device devices[FAKE_DEVICES];
    uint32_t device_count;
    const char *missing; /* a function that is not found, with vk */
    const char *failing; /* a function that fails; NULL: any */
    uint32_t fail_at;    /* its call number that does, from 1 on; 0: none */
    VkResult fail_result;
    int is_slow; /* batches run only when they are waited for, or looked at more
                    than FAKE_LOOKS times */
    void (*meanwhile)(void); /* what another thread does while the next wait
                                lasts */
    /* --- read by tests --- */
    uint32_t calls;      /* of FAILING so far */
    int64_t live;        /* objects and blocks of memory */
    uint64_t held_bytes; /* of memory */
    uint32_t batches, dispatches, copies, barriers;
    uint32_t max_dispatches; /* of one batch */
    uint32_t races;
    uint32_t waits;
    void *instance, *device; /* the last of each */
    size_t cache_bytes;      /* that the last pipeline cache began with */
};

/* One a process; tests fork. */
extern struct fake_vulkan fake_vulkan;

/* Everything as at first, with one device of TYPE. */
void fake_vulkan_reset(VkPhysicalDeviceType type);
/* What only a missing function could destroy: the INSTANCE or DEVICE above. */
void fake_vulkan_drop(void *object);
/* Count calls anew; RESULT at call AT of FUNCTION (NULL: of any). */
void fake_vulkan_fail(const char *function, uint32_t at, VkResult result);

PFN_vkVoidFunction VKAPI_CALL fake_vulkan_get(VkInstance instance,
                                              const char *name);

/* What kernels get: as push constants, or their address alone. */
struct fake_params {
    uint64_t to, a, b;
    int32_t count;
    float scale;
};

#endif

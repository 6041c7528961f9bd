/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance.h - what CUDA finds on this machine: the driver and its devices.
 *
 * Nothing is opened before somebody asks. Devices are numbered as the driver
 * numbers them, which CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER change.
 */
#ifndef CCU_INSTANCE_H
#define CCU_INSTANCE_H

#include "driver.h"

#include <hob/ext/plugin.h>

#include <pthread.h>

enum { CCU_MAX_DEVICES = 64 };

struct ccu_physical {
    int handle;              /* CUdevice */
    int major, minor;        /* of its compute capability */
    int processors;          /* multiprocessors */
    int group_size, groups;  /* the most of each */
    int shared_bytes;        /* of a group, without asking for more */
    int shared_most;         /* the same when asked for */
    uint64_t memory_bytes;
    char name[96];
    char lacks[CCU_REASON]; /* "": it can be used */
};

/* The plugin in one runtime. */
struct ccu_instance {
    const struct hob_host *host;
    pthread_mutex_t lock; /* held while the driver and NVRTC are opened */
    uint32_t is_open;     /* the driver was tried, with or without success */
    uint32_t count;
    int version; /* of CUDA that the driver is for, as in 13000 */
    struct ccu_driver driver;
    struct ccu_physical devices[CCU_MAX_DEVICES];
    char problem[CCU_REASON]; /* why there is no device */
    ccu_find_fn find;         /* NULL: the libraries'; what tests replace */
};

/* NULL without memory. */
struct ccu_instance *ccu_instance_new(const struct hob_host *host);
/* Accepts NULL. */
void ccu_instance_free(struct ccu_instance *instance);
/* Open the driver and look for devices, once. */
void ccu_instance_open(struct ccu_instance *instance);

/* ---- as in struct hob_backend ---- */

hob_status ccu_device_count(void *instance, uint32_t *out_count);
hob_status ccu_device_info(void *instance, uint32_t ordinal,
                           struct hob_device_info *out);

#endif

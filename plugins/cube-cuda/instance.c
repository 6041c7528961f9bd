/* SPDX-License-Identifier: Apache-2.0 */
#include "instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The oldest that the dialect is written for: Volta, whose invocations of a
 * warp advance on their own. */
enum { MAJOR_LEAST = 7, WARP = 32 };

static void lack(struct ccu_physical *device, const char *what)
{
    const size_t used = strlen(device->lacks);

    snprintf(device->lacks + used, sizeof(device->lacks) - used, "%s%s",
             used ? ", " : "", what);
}

/* Read what DEVICE, whose handle is set, is; what fails it lacks. */
static void look_at(const struct ccu_driver *driver,
                    struct ccu_physical *device)
{
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        {CCU_CAPABILITY_MAJOR, &device->major},
        {CCU_CAPABILITY_MINOR, &device->minor},
        {CCU_MULTIPROCESSOR_COUNT, &device->processors},
        {CCU_MAX_THREADS_PER_BLOCK, &device->group_size},
        {CCU_MAX_GRID_DIM_X, &device->groups},
        {CCU_MAX_SHARED_MEMORY_PER_BLOCK, &device->shared_bytes},
        {CCU_MAX_SHARED_MEMORY_OPTIN, &device->shared_most},
    };
    int warp = 0, has_pools = 0, mode = 0;
    size_t bytes = 0;

    if (driver->device_name(device->name, sizeof(device->name),
                            device->handle))
        snprintf(device->name, sizeof(device->name), "CUDA device");
    if (!driver->device_memory(&bytes, device->handle))
        device->memory_bytes = bytes;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (driver->device_attribute(wanted[i].value, wanted[i].attribute,
                                     device->handle)) {
            lack(device, "an answer of the driver about it");
            return;
        }
    if (device->major < MAJOR_LEAST)
        lack(device, "compute capability 7.0");
    if (driver->device_attribute(&warp, CCU_WARP_SIZE, device->handle) ||
        warp != WARP)
        lack(device, "warps of 32");
    if (driver->device_attribute(&has_pools, CCU_MEMORY_POOLS_SUPPORTED,
                                 device->handle) ||
        !has_pools)
        lack(device, "memory pools");
    if (!driver->device_attribute(&mode, CCU_COMPUTE_MODE, device->handle) &&
        mode == CCU_COMPUTE_MODE_PROHIBITED)
        lack(device, "the permission to compute (its compute mode is "
                     "\"prohibited\")");
}

/* What cuInit said, in words. */
static void cannot_start(struct ccu_instance *instance, int result)
{
    char text[CCU_REASON / 2];

    ccu_result_text(&instance->driver, result, text, sizeof(text));
    snprintf(instance->problem, sizeof(instance->problem),
             "CUDA cannot be started: %s", text);
}

/* Whether the driver would see no device anyhow: then it is not even opened,
 * which takes a while and does not go well with sanitizers. */
static int is_hidden(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    return visible && !*visible;
}

static void open_locked(struct ccu_instance *instance)
{
    const struct ccu_driver *driver = &instance->driver;
    int count = 0, result;

    if (!instance->find && is_hidden()) {
        snprintf(instance->problem, sizeof(instance->problem),
                 "CUDA_VISIBLE_DEVICES is empty, which hides all devices");
        return;
    }
    if (!ccu_driver_open(&instance->driver, instance->find,
                         instance->problem))
        return;
    result = driver->init(0);
    if (!result)
        result = driver->device_count(&count);
    if (result && result != CCU_NO_DEVICE) {
        cannot_start(instance, result);
        return;
    }
    if (driver->version(&instance->version))
        instance->version = 0;
    for (int i = 0; i < count && i < CCU_MAX_DEVICES; i++) {
        struct ccu_physical *device = &instance->devices[i];

        if (driver->device_get(&device->handle, i))
            lack(device, "an answer of the driver about it");
        else
            look_at(driver, device);
        instance->count++;
    }
    if (!instance->count)
        snprintf(instance->problem, sizeof(instance->problem),
                 "NVIDIA's driver is there and sees no device; see nvidia-smi "
                 "and CUDA_VISIBLE_DEVICES");
}

void ccu_instance_open(struct ccu_instance *instance)
{
    pthread_mutex_lock(&instance->lock);
    if (!instance->is_open)
        open_locked(instance);
    instance->is_open = 1;
    pthread_mutex_unlock(&instance->lock);
}

struct ccu_instance *ccu_instance_new(const struct hob_host *host)
{
    struct ccu_instance *instance = host->mem_alloc(host, sizeof(*instance));

    if (!instance)
        return NULL;
    memset(instance, 0, sizeof(*instance));
    instance->host = host;
    if (pthread_mutex_init(&instance->lock, NULL)) {
        host->mem_free(host, instance);
        return NULL;
    }
    return instance;
}

void ccu_instance_free(struct ccu_instance *instance)
{
    if (!instance)
        return;
    pthread_mutex_destroy(&instance->lock);
    instance->host->mem_free(instance->host, instance);
}

hob_status ccu_device_count(void *opened, uint32_t *out_count)
{
    struct ccu_instance *instance = opened;

    ccu_instance_open(instance);
    *out_count = instance->count;
    return HOB_OK;
}

hob_status ccu_device_info(void *opened, uint32_t ordinal,
                           struct hob_device_info *out)
{
    struct ccu_instance *instance = opened;

    memset(out, 0, sizeof(*out));
    ccu_instance_open(instance);
    if (ordinal >= instance->count)
        return HOB_ERR_DEVICE;
    snprintf(out->name, sizeof(out->name), "%s",
             instance->devices[ordinal].name);
    out->memory_bytes = instance->devices[ordinal].memory_bytes;
    return instance->devices[ordinal].lacks[0] ? HOB_ERR_UNSUPPORTED : HOB_OK;
}

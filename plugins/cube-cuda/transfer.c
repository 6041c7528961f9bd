/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.c - memory and copies as the core asks for them.
 */
#include "device.h"

#include <cube/flag.h>

#include <inttypes.h>
#include <string.h>

/* The driver has no more: give back what is free and try again. */
static int take_again(struct ccu_device *device, uint64_t bytes,
                      ccu_address *out_address)
{
    const struct hob_host *host = device->cube.host;
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    int result;

    ccu_memory_trim(&device->memory);
    result = ccu_memory_take(&device->memory, bytes, out_address);
    if (result == CCU_OUT_OF_MEMORY && host->log_write) {
        ccu_memory_stats(&device->memory, &stats);
        host->log_write(host, 1,
                        "%s: no memory for %" PRIu64 " bytes: %" PRIu64
                        " bytes are in use, %" PRIu64
                        " are held from the driver; the device has %" PRIu64,
                        device->name, bytes, stats.in_use_bytes,
                        stats.reserved_bytes, device->cube.limits.memory_bytes);
    }
    return result;
}

int ccu_take(struct ccu_device *device, uint64_t bytes,
             ccu_address *out_address)
{
    const int result = ccu_memory_take(&device->memory, bytes, out_address);

    return result == CCU_OUT_OF_MEMORY ? take_again(device, bytes, out_address)
                                       : result;
}

hob_status ccu_device_alloc(void *opened, uint64_t bytes, void **out_data)
{
    struct ccu_device *device = opened;
    const int is_recording = ccu_is_recording(device);
    ccu_address address = 0;
    hob_status status = ccu_check_lost(device, NULL);
    int is_pushed;

    *out_data = NULL;
    if (status)
        return status;
    if (is_recording ||
        !ccu_memory_take_listed(&device->memory, bytes, &address)) {
        is_pushed = ccu_enter(device);
        status = ccu_check_lost(device, NULL);
        if (!status)
            status = ccu_check(device, "cuMemAllocFromPoolAsync",
                               is_recording
                                   ? ccu_graph_take(device, bytes, &address)
                                   : ccu_take(device, bytes, &address),
                               NULL);
        ccu_leave(device, is_pushed);
    }
    if (!status)
        *out_data = (void *)(uintptr_t)address;
    return status;
}

void ccu_device_free(void *opened, void *data, uint64_t bytes)
{
    struct ccu_device *device = opened;

    if (!ccu_is_recording(device) ||
        !ccu_graph_give(device, (ccu_address)(uintptr_t)data))
        ccu_memory_give(&device->memory, (ccu_address)(uintptr_t)data, bytes);
}

hob_status ccu_device_upload(void *opened, void *data, const void *host_data,
                             uint64_t bytes)
{
    struct ccu_device *device = opened;
    hob_status status;
    int is_pushed;

    if (ccu_is_recording(device))
        return ccu_refuse(device, "copies elements from the host");
    is_pushed = ccu_enter(device);
    status = ccu_check_lost(device, NULL);
    if (!status)
        status = ccu_staging_upload(
            &device->staging, (ccu_address)(uintptr_t)data, host_data, bytes);
    ccu_leave(device, is_pushed);
    return status;
}

hob_status ccu_device_download(void *opened, void *host_data, const void *data,
                               uint64_t bytes)
{
    struct ccu_device *device = opened;
    hob_status status;
    int is_pushed;

    if (ccu_is_recording(device))
        return ccu_refuse(device, "reads elements");
    is_pushed = ccu_enter(device);
    status = ccu_check_lost(device, NULL);
    if (!status)
        status = ccu_staging_download(&device->staging, host_data,
                                      (ccu_address)(uintptr_t)data, bytes);
    if (!status)
        status = ccu_look_at_checks(device);
    ccu_leave(device, is_pushed);
    return status;
}

hob_status ccu_device_sync(void *opened)
{
    struct ccu_device *device = opened;
    hob_status status;
    int is_pushed;

    if (ccu_is_recording(device))
        return ccu_refuse(device, "waits for the device, as reading does");
    is_pushed = ccu_enter(device);
    status = ccu_check_lost(device, NULL);
    if (!status)
        status = ccu_wait(device, NULL);
    if (!status)
        status = ccu_look_at_checks(device);
    ccu_leave(device, is_pushed);
    return status;
}

/* ---- flags ---- */

hob_status ccu_flags(struct cube_device *opened, uint32_t **out_host,
                     void **out_data)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    uint32_t *flags = atomic_load(&device->flags);
    void *memory = NULL;
    int is_pushed, result = CCU_OK;

    if (!flags) {
        is_pushed = ccu_enter(device);
        pthread_mutex_lock(&device->lock);
        flags = atomic_load(&device->flags);
        if (!flags)
            result = device->driver->host_alloc(&memory, CUBE_FLAG_BYTES, 0);
        if (!flags && !result) {
            flags = memset(memory, 0xff, CUBE_FLAG_BYTES);
            atomic_store(&device->flags, flags);
        }
        pthread_mutex_unlock(&device->lock);
        ccu_leave(device, is_pushed);
    }
    *out_host = flags;
    *out_data = flags;
    return ccu_check(device, "pinned memory for checks", result, NULL);
}

hob_status ccu_runtime_wait(struct cube_device *opened)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    const int is_pushed = ccu_enter(device);
    hob_status status = ccu_check_lost(device, NULL);

    if (!status)
        status = ccu_wait(device, NULL);
    ccu_leave(device, is_pushed);
    return status;
}

void ccu_device_memory_stats(void *opened, struct hob_memory_stats *out)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);

    ccu_memory_stats(&device->memory, out);
    ccu_leave(device, is_pushed);
}

void ccu_device_reset_peak(void *opened)
{
    ccu_memory_reset_peak(&((struct ccu_device *)opened)->memory);
}

void ccu_device_trim(void *opened)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);

    ccu_memory_trim(&device->memory);
    ccu_leave(device, is_pushed);
}

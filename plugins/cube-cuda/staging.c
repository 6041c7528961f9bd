/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <string.h>

/* One thread copies memory slower than the bus does; pieces are worth handing
 * out from here on. */
enum { COPY_GRAIN = 128 << 10 };

struct copy {
    char *to;
    const char *from;
};

static void copy_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct copy *copy = context;

    (void)worker;
    memcpy(copy->to + first, copy->from + first, (size_t)(last - first));
}

static void copy_host(struct ccu_device *device, void *to, const void *from,
                      uint64_t bytes)
{
    const struct hob_host *host = device->cube.host;
    struct copy copy = {to, from};

    if (bytes <= COPY_GRAIN)
        memcpy(to, from, (size_t)bytes);
    else
        host->parallel_for(host, (int64_t)bytes, COPY_GRAIN, copy_range, &copy);
}

static hob_status slot_open(struct ccu_device *device, struct ccu_slot *slot)
{
    const struct ccu_driver *driver = device->driver;
    void *memory = NULL;
    int result = CCU_OK;

    if (!slot->memory) {
        result = driver->host_alloc(&memory, CCU_SLOT_BYTES, 0);
        if (!result)
            slot->memory = memory;
    }
    if (!result && !slot->event) {
        result = driver->event_create(&slot->event, CCU_EVENT_DISABLE_TIMING);
        if (result)
            slot->event = NULL;
    }
    return ccu_check(device, "pinned memory for copies", result, NULL);
}

static void lane_release(struct ccu_device *device, struct ccu_lane *lane)
{
    for (uint32_t i = 0; i < CCU_SLOTS; i++) {
        if (lane->slots[i].event)
            (void)device->driver->event_destroy(lane->slots[i].event);
        if (lane->slots[i].memory)
            (void)device->driver->host_free(lane->slots[i].memory);
    }
    if (lane->has_lock)
        pthread_mutex_destroy(&lane->lock);
}

hob_status ccu_staging_init(struct ccu_staging *staging,
                            struct ccu_device *device)
{
    struct ccu_lane *lanes[2] = {&staging->up, &staging->down};

    staging->device = device;
    for (int i = 0; i < 2; i++) {
        if (pthread_mutex_init(&lanes[i]->lock, NULL))
            return HOB_ERR_MEMORY;
        lanes[i]->has_lock = 1;
    }
    return HOB_OK;
}

void ccu_staging_release(struct ccu_staging *staging)
{
    if (!staging->device)
        return;
    lane_release(staging->device, &staging->up);
    lane_release(staging->device, &staging->down);
    if (staging->before)
        (void)staging->device->driver->event_destroy(staging->before);
    if (staging->aside)
        (void)staging->device->driver->stream_destroy(staging->aside);
}

/* ---- up ---- */

/* See that the slot in use has room for some of BYTES bytes more. */
static hob_status next_slot(struct ccu_staging *staging, uint64_t bytes)
{
    struct ccu_device *device = staging->device;
    struct ccu_lane *lane = &staging->up;
    struct ccu_slot *slot = &lane->slots[lane->at];
    hob_status status;
    int result;

    if (slot->memory && slot->event &&
        (slot->used + bytes <= CCU_SLOT_BYTES || !slot->used))
        return HOB_OK;
    if (slot->memory && slot->event) {
        /* All that was copied from it is before this in the stream. */
        result = device->driver->event_record(slot->event, device->stream);
        if (result)
            return ccu_check(device, "an upload", result, NULL);
        lane->at = (lane->at + 1) % CCU_SLOTS;
        slot = &lane->slots[lane->at];
    }
    status = slot_open(device, slot);
    if (status)
        return status;
    /* An event that was never recorded is done. */
    result = device->driver->event_wait(slot->event);
    if (!result)
        slot->used = 0; /* else the device may still read it */
    return ccu_check(device, "an upload", result, NULL);
}

hob_status ccu_staging_upload(struct ccu_staging *staging, ccu_address to,
                              const void *host_data, uint64_t bytes)
{
    struct ccu_device *device = staging->device;
    struct ccu_lane *lane = &staging->up;
    const char *from = host_data;
    hob_status status = HOB_OK;

    pthread_mutex_lock(&lane->lock);
    while (bytes && !status) {
        const uint64_t part = bytes < CCU_SLOT_BYTES ? bytes : CCU_SLOT_BYTES;
        struct ccu_slot *slot;

        status = next_slot(staging, part);
        if (status)
            break;
        slot = &lane->slots[lane->at];
        copy_host(device, slot->memory + slot->used, from, part);
        status = ccu_check(device, "an upload",
                           device->driver->copy_up(
                               to, slot->memory + slot->used, (size_t)part,
                               device->stream),
                           NULL);
        /* The next one begins at a multiple of 64 bytes. */
        slot->used += (part + 63) & ~UINT64_C(63);
        to += part;
        from += part;
        bytes -= part;
    }
    pthread_mutex_unlock(&lane->lock);
    return status;
}

/* ---- down ---- */

/* The stream for a download of BYTES bytes, after all that was asked for. */
static int stream_for(struct ccu_staging *staging, uint64_t bytes,
                      struct CUstream_st **out_stream)
{
    struct ccu_device *device = staging->device;
    const struct ccu_driver *driver = device->driver;
    int result = CCU_OK;

    *out_stream = device->stream;
    if (bytes < CCU_ASIDE_BYTES)
        return CCU_OK;
    if (!staging->aside) {
        result = driver->stream_create(&staging->aside, CCU_STREAM_NON_BLOCKING);
        if (result)
            staging->aside = NULL;
    }
    if (!result && !staging->before) {
        result =
            driver->event_create(&staging->before, CCU_EVENT_DISABLE_TIMING);
        if (result)
            staging->before = NULL;
    }
    if (!result)
        result = driver->event_record(staging->before, device->stream);
    if (!result)
        result = driver->stream_wait_event(staging->aside, staging->before, 0);
    *out_stream = staging->aside;
    return result;
}

/* Ask STREAM for BYTES bytes from FROM into SLOT. */
static hob_status fetch(struct ccu_device *device, struct ccu_slot *slot,
                        ccu_address from, uint64_t bytes,
                        struct CUstream_st *stream)
{
    hob_status status = slot_open(device, slot);
    int result;

    if (status)
        return status;
    result =
        device->driver->copy_down(slot->memory, from, (size_t)bytes, stream);
    if (!result)
        result = device->driver->event_record(slot->event, stream);
    slot->used = bytes;
    return ccu_check(device, "a download", result, NULL);
}

/* Slots are filled ahead of the one that the host copies from. */
static hob_status download_locked(struct ccu_staging *staging, char *to,
                                  ccu_address from, uint64_t bytes)
{
    struct ccu_device *device = staging->device;
    struct ccu_lane *lane = &staging->down;
    const uint64_t parts = (bytes + CCU_SLOT_BYTES - 1) / CCU_SLOT_BYTES;
    struct CUstream_st *stream = NULL;
    uint64_t asked = 0;
    hob_status status = ccu_check(device, "a download",
                                  stream_for(staging, bytes, &stream), NULL);

    for (uint64_t part = 0; part < parts && !status; part++) {
        struct ccu_slot *slot = &lane->slots[part % CCU_SLOTS];

        for (; asked < parts && asked < part + CCU_SLOTS; asked++) {
            const uint64_t offset = asked * CCU_SLOT_BYTES;
            const uint64_t left = bytes - offset;

            status = fetch(device, &lane->slots[asked % CCU_SLOTS],
                           from + offset,
                           left < CCU_SLOT_BYTES ? left : CCU_SLOT_BYTES,
                           stream);
            if (status)
                return status;
        }
        status = ccu_check(device, "a download",
                           device->driver->event_wait(slot->event), NULL);
        if (status)
            return status;
        copy_host(device, to + part * CCU_SLOT_BYTES, slot->memory, slot->used);
    }
    return status;
}

hob_status ccu_staging_download(struct ccu_staging *staging, void *host_data,
                                ccu_address from, uint64_t bytes)
{
    hob_status status;

    pthread_mutex_lock(&staging->down.lock);
    status = download_locked(staging, host_data, from, bytes);
    pthread_mutex_unlock(&staging->down.lock);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "staging.h"

#include "device.h"

#include <string.h>

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Make the memory of LANE for a copy of BYTES bytes, unless that is done.
 * LIKED: of the memory's type, besides being coherent. */
static hob_status open_locked(struct cvk_device *device, struct cvk_lane *lane,
                              uint64_t bytes, VkMemoryPropertyFlags liked)
{
    const VkMemoryPropertyFlags seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const uint64_t slot_bytes =
        bytes > CVK_FIRST_BYTES ? CVK_SLOT_BYTES : CVK_FIRST_BYTES;
    VkResult result = VK_SUCCESS;
    hob_status status = HOB_OK;
    uint32_t types;

    if (lane->slot_bytes >= slot_bytes)
        return HOB_OK;
    for (uint32_t i = 0; i < CVK_SLOTS && !status; i++)
        status = cvk_queue_wait(&device->queue, lane->numbers[i]);
    if (status)
        return status;
    cvk_chunk_close(device, &lane->chunk);
    lane->slot_bytes = 0;
    types = cvk_chunk_types(device, &result);
    if (!result)
        result = cvk_chunk_open(device, CVK_SLOTS * slot_bytes,
                                cvk_memory_type(device, types, seen, liked), 1,
                                &lane->chunk);
    if (result)
        return HOB_ERR_MEMORY;
    lane->slot_bytes = slot_bytes;
    return HOB_OK;
}

/* A slot whose batch is done. */
static hob_status take_slot(struct cvk_device *device, struct cvk_lane *lane,
                            uint32_t *out_slot)
{
    *out_slot = lane->next;
    lane->next = (lane->next + 1) % CVK_SLOTS;
    return cvk_queue_wait(&device->queue, lane->numbers[*out_slot]);
}

static hob_status upload_locked(struct cvk_device *device,
                                struct cvk_lane *lane, struct cvk_end to,
                                const char *host_data, uint64_t bytes)
{
    hob_status status = open_locked(device, lane, bytes, 0);

    while (bytes && !status) {
        uint64_t part = smaller(bytes, lane->slot_bytes);
        struct cvk_end from = {lane->chunk.buffer, 0, 0};
        uint32_t slot;

        status = take_slot(device, lane, &slot);
        if (status)
            break;
        from.offset = slot * lane->slot_bytes;
        memcpy(lane->chunk.map + from.offset, host_data, (size_t)part);
        status = cvk_queue_copy(&device->queue, &to, &from, part,
                                &lane->numbers[slot]);
        if (!status) /* the device copies while the host fills the next */
            status = cvk_queue_submit(&device->queue, lane->numbers[slot]);
        to.offset += part;
        to.address += part;
        host_data += part;
        bytes -= part;
    }
    return status;
}

/* Slots are filled ahead: READ follows behind. */
static hob_status download_locked(struct cvk_device *device,
                                  struct cvk_lane *lane, char *host_data,
                                  struct cvk_end from, uint64_t bytes)
{
    uint64_t asked = 0, read = 0;
    uint32_t slot = 0;
    hob_status status =
        open_locked(device, lane, bytes, VK_MEMORY_PROPERTY_HOST_CACHED_BIT);

    while (read < bytes && !status) {
        const uint64_t ahead = CVK_SLOTS * lane->slot_bytes;

        if (asked < bytes && asked - read < ahead) {
            uint64_t part = smaller(bytes - asked, lane->slot_bytes);
            struct cvk_end to = {lane->chunk.buffer, slot * lane->slot_bytes,
                                 0};

            status = cvk_queue_copy(&device->queue, &to, &from, part,
                                    &lane->numbers[slot]);
            if (!status)
                status = cvk_queue_submit(&device->queue, lane->numbers[slot]);
            from.offset += part;
            from.address += part;
            asked += part;
            slot = (slot + 1) % CVK_SLOTS;
        } else {
            uint64_t part = smaller(bytes - read, lane->slot_bytes);
            uint32_t oldest = (uint32_t)(read / lane->slot_bytes % CVK_SLOTS);

            status = cvk_queue_wait(&device->queue, lane->numbers[oldest]);
            if (status)
                break;
            memcpy(host_data + read,
                   lane->chunk.map + oldest * lane->slot_bytes, (size_t)part);
            read += part;
        }
    }
    return status;
}

hob_status cvk_staging_upload(struct cvk_staging *staging, void *data,
                              const void *host_data, uint64_t bytes)
{
    struct cvk_device *device = staging->device;
    struct cvk_place place;
    struct cvk_end to;
    hob_status status = cvk_queue_check(&device->queue, NULL);

    if (status || !bytes)
        return status;
    if (!cvk_memory_find(&device->memory, data, bytes, &place))
        return HOB_ERR_ARGUMENT;
    /* Nothing can begin to use this memory before it is uploaded. */
    if (place.map && cvk_queue_is_idle(&device->queue)) {
        memcpy(place.map, host_data, (size_t)bytes);
        return HOB_OK;
    }
    to = (struct cvk_end){place.buffer, place.offset, (uintptr_t)data};
    if (bytes <= CVK_SMALL_BYTES)
        return cvk_queue_copy_small(&device->queue, &to, host_data, bytes);
    pthread_mutex_lock(&staging->up.lock);
    status = upload_locked(device, &staging->up, to, host_data, bytes);
    pthread_mutex_unlock(&staging->up.lock);
    return status;
}

hob_status cvk_staging_download(struct cvk_staging *staging, void *host_data,
                                const void *data, uint64_t bytes)
{
    struct cvk_device *device = staging->device;
    struct cvk_place place;
    struct cvk_end from;
    hob_status status = cvk_queue_check(&device->queue, NULL);

    if (status || !bytes)
        return status;
    if (!cvk_memory_find(&device->memory, data, bytes, &place))
        return HOB_ERR_ARGUMENT;
    if (place.map) {
        status = cvk_queue_wait_all(&device->queue, 1);
        if (!status)
            memcpy(host_data, place.map, (size_t)bytes);
        return status;
    }
    from = (struct cvk_end){place.buffer, place.offset, (uintptr_t)data};
    pthread_mutex_lock(&staging->down.lock);
    status = download_locked(device, &staging->down, host_data, from, bytes);
    pthread_mutex_unlock(&staging->down.lock);
    return status;
}

hob_status cvk_staging_init(struct cvk_staging *staging,
                            struct cvk_device *device)
{
    staging->device = device;
    if (pthread_mutex_init(&staging->up.lock, NULL))
        return HOB_ERR_MEMORY;
    staging->up.has_lock = 1;
    if (pthread_mutex_init(&staging->down.lock, NULL))
        return HOB_ERR_MEMORY;
    staging->down.has_lock = 1;
    return HOB_OK;
}

static void close_lane(struct cvk_device *device, struct cvk_lane *lane)
{
    cvk_chunk_close(device, &lane->chunk);
    if (lane->has_lock)
        pthread_mutex_destroy(&lane->lock);
}

void cvk_staging_release(struct cvk_staging *staging)
{
    if (!staging->device)
        return;
    close_lane(staging->device, &staging->up);
    close_lane(staging->device, &staging->down);
    memset(staging, 0, sizeof(*staging));
}

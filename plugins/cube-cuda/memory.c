/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

/* Up to 16 grains each size has a list; above, each power of two is cut into
 * eight. What has no list is as large as the driver's own pages make it. */
uint64_t ccu_memory_size(uint64_t bytes, uint32_t *out_class)
{
    const uint64_t last = bytes ? (bytes - 1) / CCU_MEMORY_GRAIN : 0;
    const uint64_t page = UINT64_C(2) << 20;
    uint32_t shift = 0;
    uint64_t steps;

    *out_class = CCU_MEMORY_CLASSES;
    if (bytes > CCU_LIST_BYTES)
        return bytes > UINT64_MAX - page ? bytes
                                         : (bytes + page - 1) / page * page;
    while (last >> shift >= 2 * CCU_MEMORY_STEPS)
        shift++;
    steps = (last >> shift) + 1;
    *out_class = shift * CCU_MEMORY_STEPS + (uint32_t)steps - 1;
    return (steps << shift) * CCU_MEMORY_GRAIN;
}

/* ---- lists, all with the lock held ---- */

static int list_push(struct ccu_list *list, ccu_address block)
{
    const uint32_t room = list->room ? 2 * list->room : 16;
    ccu_address *blocks;

    if (list->count == list->room) {
        blocks = realloc(list->blocks, room * sizeof(*blocks));
        if (!blocks)
            return 0;
        list->blocks = blocks;
        list->room = room;
    }
    list->blocks[list->count++] = block;
    return 1;
}

static uint32_t class_of(uint64_t bytes)
{
    uint32_t class;

    (void)ccu_memory_size(bytes, &class);
    return class;
}

/* Give all blocks of the lists from class FIRST on to the driver's pool. */
static void empty_locked(struct ccu_memory *memory, uint32_t first)
{
    const struct ccu_driver *driver = memory->device->driver;

    for (uint32_t i = first; i < CCU_MEMORY_CLASSES; i++) {
        struct ccu_list *list = &memory->lists[i];

        while (list->count)
            (void)driver->free(list->blocks[--list->count],
                               memory->device->stream);
    }
    memory->listed = 0;
}

/*
 * Before the driver is asked for SIZE bytes more: where the lists hold so much
 * that the pool would have to grow, beyond what was ever in use at once by more
 * than a sixteenth, large blocks go back to the pool, which can join and cut
 * them.
 */
static void make_room_locked(struct ccu_memory *memory, uint64_t size)
{
    const struct hob_memory_stats *stats = &memory->stats;
    const uint64_t used = stats->in_use_bytes + stats->padding_bytes + size;
    const uint64_t peak = used > stats->peak_bytes ? used : stats->peak_bytes;
    const uint64_t all = used + memory->listed;

    if (size >= CCU_LARGE_BYTES && all > memory->reserved &&
        all > peak + peak / 16)
        empty_locked(memory, class_of(CCU_LARGE_BYTES));
}

/* The next block of list CLASS, of SIZE bytes, which is not empty. */
static ccu_address pop_locked(struct ccu_memory *memory, uint32_t class,
                              uint64_t size)
{
    struct ccu_list *list = &memory->lists[class];

    if (size >= CCU_LARGE_BYTES)
        memory->listed -= size;
    return list->blocks[--list->count];
}

/* ---- public ---- */

hob_status ccu_memory_init(struct ccu_memory *memory, struct ccu_device *device,
                           char **out_message)
{
    const struct ccu_pool_properties properties = {
        .allocation_type = 1,
        .location_type = CCU_LOCATION_DEVICE,
        .location_id = device->physical->handle};
    uint64_t threshold = UINT64_MAX; /* what is free stays until we trim */
    int result;

    memory->device = device;
    memory->stats.struct_size = sizeof(memory->stats);
    if (pthread_mutex_init(&memory->lock, NULL))
        return HOB_ERR_MEMORY;
    memory->has_lock = 1;
    result = device->driver->pool_create(&memory->pool, &properties);
    if (result) {
        memory->pool = NULL;
        return ccu_say_result(device, out_message, "cuMemPoolCreate", result);
    }
    result = device->driver->pool_set(memory->pool, CCU_POOL_RELEASE_THRESHOLD,
                                      &threshold);
    if (result)
        return ccu_say_result(device, out_message, "cuMemPoolSetAttribute",
                              result);
    return HOB_OK;
}

void ccu_memory_release(struct ccu_memory *memory)
{
    if (memory->pool) {
        empty_locked(memory, 0);
        (void)memory->device->driver->stream_wait(memory->device->stream);
        (void)memory->device->driver->pool_destroy(memory->pool);
    }
    for (uint32_t i = 0; i < CCU_MEMORY_CLASSES; i++)
        free(memory->lists[i].blocks);
    if (memory->has_lock)
        pthread_mutex_destroy(&memory->lock);
}

static void count_taken(struct hob_memory_stats *stats, uint64_t bytes,
                        uint64_t size)
{
    stats->in_use_bytes += bytes;
    stats->padding_bytes += size - bytes;
    stats->block_count++;
    if (stats->peak_bytes < stats->in_use_bytes)
        stats->peak_bytes = stats->in_use_bytes;
}

int ccu_memory_take_listed(struct ccu_memory *memory, uint64_t bytes,
                           ccu_address *out_address)
{
    uint32_t class;
    const uint64_t size = ccu_memory_size(bytes, &class);
    int is_taken;

    pthread_mutex_lock(&memory->lock);
    is_taken = class < CCU_MEMORY_CLASSES && memory->lists[class].count;
    if (is_taken) {
        *out_address = pop_locked(memory, class, size);
        count_taken(&memory->stats, bytes, size);
    }
    pthread_mutex_unlock(&memory->lock);
    return is_taken;
}

int ccu_memory_take(struct ccu_memory *memory, uint64_t bytes,
                    ccu_address *out_address)
{
    uint32_t class;
    const uint64_t size = ccu_memory_size(bytes, &class);
    int result = CCU_OUT_OF_MEMORY;

    *out_address = 0;
    if (size > memory->device->cube.limits.alloc_bytes)
        return result;
    pthread_mutex_lock(&memory->lock);
    if (class < CCU_MEMORY_CLASSES && memory->lists[class].count) {
        *out_address = pop_locked(memory, class, size);
        result = CCU_OK;
    } else {
        make_room_locked(memory, size);
        result = memory->device->driver->alloc(
            out_address, (size_t)size, memory->pool, memory->device->stream);
        memory->stats.system_count += result == CCU_OK;
        if (size >= CCU_LARGE_BYTES)
            (void)memory->device->driver->pool_get(
                memory->pool, CCU_POOL_RESERVED_CURRENT, &memory->reserved);
    }
    if (!result)
        count_taken(&memory->stats, bytes, size);
    pthread_mutex_unlock(&memory->lock);
    return result;
}

void ccu_memory_give(struct ccu_memory *memory, ccu_address address,
                     uint64_t bytes)
{
    struct ccu_device *device = memory->device;
    uint32_t class;
    const uint64_t size = ccu_memory_size(bytes, &class);
    int is_pushed;

    if (!address)
        return;
    pthread_mutex_lock(&memory->lock);
    memory->stats.in_use_bytes -= bytes;
    memory->stats.padding_bytes -= size - bytes;
    if (class < CCU_MEMORY_CLASSES &&
        list_push(&memory->lists[class], address)) {
        memory->listed += size >= CCU_LARGE_BYTES ? size : 0;
    } else {
        is_pushed = ccu_enter(device);
        (void)device->driver->free(address, device->stream);
        ccu_leave(device, is_pushed);
    }
    pthread_mutex_unlock(&memory->lock);
}

void ccu_memory_trim(struct ccu_memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    empty_locked(memory, 0);
    (void)memory->device->driver->stream_wait(memory->device->stream);
    (void)memory->device->driver->pool_trim(memory->pool, 0);
    memory->reserved = 0;
    pthread_mutex_unlock(&memory->lock);
}

void ccu_memory_stats(struct ccu_memory *memory, struct hob_memory_stats *out)
{
    uint64_t reserved = 0;

    pthread_mutex_lock(&memory->lock);
    if (memory->device->driver->pool_get(memory->pool,
                                         CCU_POOL_RESERVED_CURRENT, &reserved))
        reserved = memory->stats.in_use_bytes + memory->stats.padding_bytes;
    memory->stats.reserved_bytes = reserved;
    memory->stats.struct_size = out->struct_size;
    memcpy(out, &memory->stats,
           out->struct_size < sizeof(*out) ? out->struct_size : sizeof(*out));
    pthread_mutex_unlock(&memory->lock);
}

void ccu_memory_reset_peak(struct ccu_memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    memory->stats.peak_bytes = memory->stats.in_use_bytes;
    pthread_mutex_unlock(&memory->lock);
}

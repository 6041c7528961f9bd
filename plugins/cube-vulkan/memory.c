/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <hob/ext/message.h>

#include <string.h>

static const uint64_t chunk_first = UINT64_C(64) << 20;
static const uint64_t chunk_most = UINT64_C(256) << 20;
static const uint64_t chunk_grain = UINT64_C(2) << 20;

/* Nodes are asked for this many at a time. */
enum { SLAB_PIECES = 256, TABLE_FIRST = 1024, TRIES = 8 };

/* A part of a chunk, in use or free. */
struct cvk_piece {
    VkDeviceAddress address;
    uint64_t bytes;
    uint64_t asked; /* in use: the bytes that it was taken for */
    struct cvk_chunk *chunk;
    struct cvk_piece *before, *after;  /* in the chunk; NULL at its ends */
    struct cvk_piece *previous, *next; /* free: in its list */
    uint32_t is_free;
    uint32_t reserved;
};

struct cvk_slab {
    struct cvk_slab *next;
    struct cvk_piece pieces[SLAB_PIECES];
};

/* ---- nodes ---- */

static const struct hob_host *host_of(const struct cvk_memory *memory)
{
    return memory->device->cube.host;
}

/* See that COUNT nodes are spare. */
static int reserve_pieces(struct cvk_memory *memory, uint32_t count)
{
    const struct hob_host *host = host_of(memory);
    struct cvk_piece *piece = memory->spare;
    struct cvk_slab *slab;

    for (; piece && count; count--)
        piece = piece->next;
    if (!count)
        return 1;
    slab = host->mem_alloc(host, sizeof(*slab));
    if (!slab)
        return 0;
    memset(slab, 0, sizeof(*slab));
    slab->next = memory->slabs;
    memory->slabs = slab;
    for (uint32_t i = 0; i < SLAB_PIECES; i++) {
        slab->pieces[i].next = memory->spare;
        memory->spare = &slab->pieces[i];
    }
    return 1;
}

static struct cvk_piece *take_node(struct cvk_memory *memory)
{
    struct cvk_piece *piece = memory->spare;

    memory->spare = piece->next;
    memset(piece, 0, sizeof(*piece));
    return piece;
}

static void give_node(struct cvk_memory *memory, struct cvk_piece *piece)
{
    piece->next = memory->spare;
    memory->spare = piece;
}

/* ---- pieces in use, by address: open addressing ---- */

static uint64_t slot_of(const struct cvk_memory *memory,
                        VkDeviceAddress address)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

    return (address / CVK_MEMORY_GRAIN * golden >> 20) &
           (memory->table_size - 1);
}

static void table_put(struct cvk_memory *memory, struct cvk_piece *piece)
{
    uint64_t slot = slot_of(memory, piece->address);

    while (memory->table[slot])
        slot = (slot + 1) & (memory->table_size - 1);
    memory->table[slot] = piece;
    memory->table_used++;
}

/* See that there is room for one more: at most half of it is used. */
static int reserve_table(struct cvk_memory *memory)
{
    const struct hob_host *host = host_of(memory);
    struct cvk_piece **old = memory->table;
    uint64_t old_size = memory->table_size;
    uint64_t size = old_size ? 2 * old_size : TABLE_FIRST;
    struct cvk_piece **table;

    if (2 * (memory->table_used + 1) <= old_size)
        return 1;
    table = host->mem_alloc(host, size * sizeof(struct cvk_piece *));
    if (!table)
        return 0;
    memset(table, 0, size * sizeof(struct cvk_piece *));
    memory->table = table;
    memory->table_size = size;
    memory->table_used = 0;
    for (uint64_t i = 0; i < old_size; i++)
        if (old[i])
            table_put(memory, old[i]);
    host->mem_free(host, old);
    return 1;
}

/* The piece in use that begins at ADDRESS; taken out of the table. */
static struct cvk_piece *table_take(struct cvk_memory *memory,
                                    VkDeviceAddress address)
{
    const uint64_t mask = memory->table_size - 1;
    struct cvk_piece *piece;
    uint64_t hole, slot;

    if (!memory->table_size)
        return NULL;
    for (hole = slot_of(memory, address); memory->table[hole];
         hole = (hole + 1) & mask)
        if (memory->table[hole]->address == address)
            break;
    piece = memory->table[hole];
    if (!piece)
        return NULL;
    memory->table_used--;
    memory->table[hole] = NULL;
    /* What was put behind it because of it moves up. */
    for (slot = (hole + 1) & mask; memory->table[slot];
         slot = (slot + 1) & mask) {
        uint64_t home = slot_of(memory, memory->table[slot]->address);

        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            memory->table[hole] = memory->table[slot];
            memory->table[slot] = NULL;
            hole = slot;
        }
    }
    return piece;
}

/* ---- free pieces, by size ---- */

static uint32_t highest_bit(uint64_t x)
{
    uint32_t bit = 0;

    for (uint32_t step = 32; step; step /= 2)
        if (x >> step) {
            x >>= step;
            bit += step;
        }
    return bit;
}

/* The class of pieces of BYTES bytes: those of one class are between 8 and 9
 * eighths of a power of two, between 9 and 10, and so on. */
static uint32_t class_of(uint64_t bytes)
{
    uint64_t grains = bytes / CVK_MEMORY_GRAIN;
    uint32_t bit = highest_bit(grains);

    if (grains < CVK_MEMORY_STEPS)
        return (uint32_t)grains;
    return (bit - 2) * CVK_MEMORY_STEPS +
           (uint32_t)(grains >> (bit - 3)) % CVK_MEMORY_STEPS;
}

static void list_put(struct cvk_memory *memory, struct cvk_piece *piece)
{
    uint32_t class = class_of(piece->bytes);

    piece->is_free = 1;
    piece->previous = NULL;
    piece->next = memory->free_lists[class];
    if (piece->next)
        piece->next->previous = piece;
    memory->free_lists[class] = piece;
    memory->free_bits[class / 64] |= UINT64_C(1) << class % 64;
}

static void list_take(struct cvk_memory *memory, struct cvk_piece *piece)
{
    uint32_t class = class_of(piece->bytes);

    piece->is_free = 0;
    if (piece->next)
        piece->next->previous = piece->previous;
    if (piece->previous)
        piece->previous->next = piece->next;
    else
        memory->free_lists[class] = piece->next;
    if (!memory->free_lists[class])
        memory->free_bits[class / 64] &= ~(UINT64_C(1) << class % 64);
    piece->previous = piece->next = NULL;
}

/* The first list from CLASS on that is not empty. */
static struct cvk_piece *first_from(const struct cvk_memory *memory,
                                    uint32_t class)
{
    uint32_t word = class / 64;
    uint64_t bits = class < CVK_MEMORY_CLASSES
                        ? memory->free_bits[word] & (UINT64_MAX << class % 64)
                        : 0;

    while (!bits && ++word < CVK_MEMORY_CLASSES / 64)
        bits = memory->free_bits[word];
    return bits ? memory->free_lists[64 * word + highest_bit(bits & -bits)]
                : NULL;
}

/* A free piece of at least BYTES bytes. In their own class some are too small,
 * in the next ones none is. */
static struct cvk_piece *find_free(const struct cvk_memory *memory,
                                   uint64_t bytes)
{
    uint32_t class = class_of(bytes);
    struct cvk_piece *piece = memory->free_lists[class];

    for (uint32_t i = 0; i < TRIES && piece; i++, piece = piece->next)
        if (piece->bytes >= bytes)
            return piece;
    return first_from(memory, class + 1);
}

/* ---- chunks ---- */

uint32_t cvk_memory_type(const struct cvk_device *device, uint32_t types,
                         VkMemoryPropertyFlags wanted,
                         VkMemoryPropertyFlags liked)
{
    const VkPhysicalDeviceMemoryProperties *all = &device->memory_types;
    uint32_t best = UINT32_MAX, best_score = 0;

    for (uint32_t i = 0; i < all->memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = all->memoryTypes[i].propertyFlags;
        uint32_t score = 1;

        if (!(types >> i & 1) || (flags & wanted) != wanted)
            continue;
        for (uint32_t bit = 0; bit < 31; bit++)
            score += (flags & liked) >> bit & 1;
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

static VkResult make_buffer(struct cvk_device *device, uint64_t bytes,
                            VkBuffer *out)
{
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkResult result =
        device->api.CreateBuffer(device->handle, &info, NULL, out);

    if (result)
        *out = VK_NULL_HANDLE;
    return result;
}

uint32_t cvk_chunk_types(struct cvk_device *device, VkResult *out_result)
{
    VkMemoryRequirements needs;
    VkBuffer buffer;

    *out_result = make_buffer(device, chunk_grain, &buffer);
    if (*out_result)
        return 0;
    device->api.GetBufferMemoryRequirements(device->handle, buffer, &needs);
    device->api.DestroyBuffer(device->handle, buffer, NULL);
    return needs.memoryTypeBits;
}

VkResult cvk_chunk_open(struct cvk_device *device, uint64_t bytes,
                        uint32_t type, int is_mapped, struct cvk_chunk *chunk)
{
    const struct cvk_device_api *api = &device->api;
    VkBufferDeviceAddressInfo where = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    VkMemoryAllocateFlagsInfo flags = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
    };
    VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = &flags,
        .memoryTypeIndex = type,
    };
    VkMemoryRequirements needs;
    void *map = NULL;
    VkResult result;

    result = make_buffer(device, bytes, &chunk->buffer);
    if (result)
        goto fail;
    api->GetBufferMemoryRequirements(device->handle, chunk->buffer, &needs);
    info.allocationSize = needs.size;
    result = api->AllocateMemory(device->handle, &info, NULL, &chunk->memory);
    if (result) {
        chunk->memory = VK_NULL_HANDLE;
        goto fail;
    }
    result =
        api->BindBufferMemory(device->handle, chunk->buffer, chunk->memory, 0);
    if (result)
        goto fail;
    if (is_mapped) {
        result = api->MapMemory(device->handle, chunk->memory, 0, VK_WHOLE_SIZE,
                                0, &map);
        if (result)
            goto fail;
    }
    chunk->map = map;
    chunk->bytes = bytes;
    where.buffer = chunk->buffer;
    chunk->address = api->GetBufferDeviceAddress(device->handle, &where);
    return VK_SUCCESS;
fail:
    cvk_chunk_close(device, chunk);
    return result;
}

void cvk_chunk_close(struct cvk_device *device, struct cvk_chunk *chunk)
{
    if (chunk->buffer)
        device->api.DestroyBuffer(device->handle, chunk->buffer, NULL);
    if (chunk->memory)
        device->api.FreeMemory(device->handle, chunk->memory, NULL);
    memset(chunk, 0, sizeof(*chunk));
}

/* Add a chunk with room for BYTES bytes, as one free piece. A node is spare. */
static int add_chunk(struct cvk_memory *memory, uint64_t bytes)
{
    const struct hob_host *host = host_of(memory);
    uint64_t least = (bytes + chunk_grain - 1) / chunk_grain * chunk_grain;
    uint64_t size = memory->chunk_bytes > least ? memory->chunk_bytes : least;
    struct cvk_chunk *chunk = host->mem_alloc(host, sizeof(*chunk));
    struct cvk_piece *piece;
    VkResult result;

    if (!chunk)
        return 0;
    memset(chunk, 0, sizeof(*chunk));
    result = cvk_chunk_open(memory->device, size, memory->type,
                            (int)memory->is_mapped, chunk);
    if (result && size > least) /* it may be all but full */
        result = cvk_chunk_open(memory->device, least, memory->type,
                                (int)memory->is_mapped, chunk);
    if (result) {
        host->mem_free(host, chunk);
        return 0;
    }
    if (size == memory->chunk_bytes && 2 * size <= memory->chunk_limit)
        memory->chunk_bytes = 2 * size;
    piece = take_node(memory);
    piece->address = chunk->address;
    piece->bytes = chunk->bytes;
    piece->chunk = chunk;
    list_put(memory, piece);
    chunk->first = piece;
    chunk->next = memory->chunks;
    memory->chunks = chunk;
    memory->stats.reserved_bytes += chunk->bytes;
    memory->stats.system_count++;
    return 1;
}

/* Cut the end of PIECE off, which has more than BYTES bytes. A node is
 * spare. */
static void split(struct cvk_memory *memory, struct cvk_piece *piece,
                  uint64_t bytes)
{
    struct cvk_piece *rest = take_node(memory);

    rest->address = piece->address + bytes;
    rest->bytes = piece->bytes - bytes;
    rest->chunk = piece->chunk;
    rest->before = piece;
    rest->after = piece->after;
    if (rest->after)
        rest->after->before = rest;
    piece->after = rest;
    piece->bytes = bytes;
    list_put(memory, rest);
}

/* PIECE takes in the one after it, which is in no list. */
static void join_after(struct cvk_memory *memory, struct cvk_piece *piece)
{
    struct cvk_piece *rest = piece->after;

    piece->bytes += rest->bytes;
    piece->after = rest->after;
    if (piece->after)
        piece->after->before = piece;
    give_node(memory, rest);
}

/* ---- public ---- */

hob_status cvk_memory_init(struct cvk_memory *memory, struct cvk_device *device,
                           char **out_message)
{
    const struct cvk_physical *physical = device->physical;
    const VkMemoryPropertyFlags seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags near = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    int is_shared = physical->type == VK_PHYSICAL_DEVICE_TYPE_CPU ||
                    physical->type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    VkResult result;
    uint32_t types;

    memory->device = device;
    memory->stats.struct_size = sizeof(memory->stats);
    memory->stats.block_most = device->cube.limits.alloc_bytes;
    if (pthread_mutex_init(&memory->lock, NULL))
        return HOB_ERR_MEMORY;
    memory->has_lock = 1;
    types = cvk_chunk_types(device, &result);
    if (result)
        return hob_say(host_of(memory), out_message, HOB_ERR_DEVICE,
                       "%s: vkCreateBuffer: %s", device->name,
                       cvk_result_name(result));
    memory->type = is_shared
                       ? cvk_memory_type(device, types, near | seen,
                                         VK_MEMORY_PROPERTY_HOST_CACHED_BIT)
                       : UINT32_MAX;
    memory->is_mapped = memory->type != UINT32_MAX;
    if (!memory->is_mapped)
        memory->type = cvk_memory_type(device, types, near, 0);
    if (memory->type == UINT32_MAX)
        memory->type = cvk_memory_type(device, types, 0, 0);
    memory->chunk_limit = chunk_most;
    while (memory->chunk_limit > physical->memory_bytes / 8 &&
           memory->chunk_limit > chunk_grain)
        memory->chunk_limit /= 2;
    memory->chunk_bytes =
        memory->chunk_limit < chunk_first ? memory->chunk_limit : chunk_first;
    return HOB_OK;
}

void cvk_memory_close(struct cvk_memory *memory, struct cvk_chunk *detached)
{
    while (detached) {
        struct cvk_chunk *next = detached->next;

        cvk_chunk_close(memory->device, detached);
        host_of(memory)->mem_free(host_of(memory), detached);
        detached = next;
    }
}

void cvk_memory_release(struct cvk_memory *memory)
{
    const struct hob_host *host;

    if (!memory->device)
        return;
    host = host_of(memory);
    cvk_memory_close(memory, memory->chunks);
    while (memory->slabs) {
        struct cvk_slab *slab = memory->slabs;

        memory->slabs = slab->next;
        host->mem_free(host, slab);
    }
    host->mem_free(host, memory->table);
    if (memory->has_lock)
        pthread_mutex_destroy(&memory->lock);
    memset(memory, 0, sizeof(*memory));
}

static struct cvk_piece *take_locked(struct cvk_memory *memory, uint64_t bytes)
{
    struct cvk_piece *piece;

    /* A piece of a new chunk and the rest of a piece. */
    if (!reserve_pieces(memory, 2) || !reserve_table(memory))
        return NULL;
    piece = find_free(memory, bytes);
    if (!piece) {
        if (!add_chunk(memory, bytes))
            return NULL;
        piece = find_free(memory, bytes);
    }
    list_take(memory, piece);
    if (piece->bytes > bytes)
        split(memory, piece, bytes);
    table_put(memory, piece);
    return piece;
}

hob_status cvk_memory_take(struct cvk_memory *memory, uint64_t bytes,
                           void **out_data)
{
    struct hob_memory_stats *stats = &memory->stats;
    struct cvk_piece *piece = NULL;
    uint64_t size;

    *out_data = NULL;
    if (bytes > memory->device->cube.limits.alloc_bytes)
        return HOB_ERR_MEMORY;
    size = (bytes + !bytes + CVK_MEMORY_GRAIN - 1) / CVK_MEMORY_GRAIN *
           CVK_MEMORY_GRAIN;
    pthread_mutex_lock(&memory->lock);
    piece = take_locked(memory, size);
    if (piece) {
        piece->asked = bytes;
        stats->block_count++;
        stats->in_use_bytes += bytes;
        stats->padding_bytes += size - bytes;
        if (stats->in_use_bytes > stats->peak_bytes)
            stats->peak_bytes = stats->in_use_bytes;
        *out_data = (void *)(uintptr_t)piece->address;
    }
    pthread_mutex_unlock(&memory->lock);
    return piece ? HOB_OK : HOB_ERR_MEMORY;
}

void cvk_memory_give(struct cvk_memory *memory, void *data)
{
    struct cvk_piece *piece;

    if (!data)
        return;
    pthread_mutex_lock(&memory->lock);
    piece = table_take(memory, (uintptr_t)data);
    if (piece) {
        memory->stats.in_use_bytes -= piece->asked;
        memory->stats.padding_bytes -= piece->bytes - piece->asked;
        if (piece->after && piece->after->is_free) {
            list_take(memory, piece->after);
            join_after(memory, piece);
        }
        if (piece->before && piece->before->is_free) {
            piece = piece->before;
            list_take(memory, piece);
            join_after(memory, piece);
        }
        list_put(memory, piece);
    }
    pthread_mutex_unlock(&memory->lock);
}

struct cvk_chunk *cvk_memory_detach(struct cvk_memory *memory)
{
    struct cvk_chunk **at = &memory->chunks, *detached = NULL;

    pthread_mutex_lock(&memory->lock);
    while (*at) {
        struct cvk_chunk *chunk = *at;

        if (!chunk->first->is_free || chunk->first->after) {
            at = &chunk->next;
            continue;
        }
        *at = chunk->next;
        list_take(memory, chunk->first);
        give_node(memory, chunk->first);
        memory->stats.reserved_bytes -= chunk->bytes;
        chunk->next = detached;
        detached = chunk;
    }
    pthread_mutex_unlock(&memory->lock);
    return detached;
}

int cvk_memory_find(struct cvk_memory *memory, const void *data, uint64_t bytes,
                    struct cvk_place *out)
{
    VkDeviceAddress address = (uintptr_t)data;
    struct cvk_chunk *chunk;

    pthread_mutex_lock(&memory->lock);
    for (chunk = memory->chunks; chunk; chunk = chunk->next)
        if (address >= chunk->address &&
            address - chunk->address < chunk->bytes)
            break;
    if (chunk && bytes <= chunk->bytes - (address - chunk->address)) {
        out->buffer = chunk->buffer;
        out->offset = address - chunk->address;
        out->map = chunk->map ? chunk->map + out->offset : NULL;
    } else {
        chunk = NULL;
    }
    pthread_mutex_unlock(&memory->lock);
    return chunk != NULL;
}

void cvk_memory_stats(struct cvk_memory *memory, struct hob_memory_stats *out)
{
    uint32_t size = out->struct_size;

    pthread_mutex_lock(&memory->lock);
    memcpy(out, &memory->stats, size < sizeof(*out) ? size : sizeof(*out));
    pthread_mutex_unlock(&memory->lock);
    out->struct_size = size;
}

void cvk_memory_reset_peak(struct cvk_memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    memory->stats.peak_bytes = memory->stats.in_use_bytes;
    pthread_mutex_unlock(&memory->lock);
}

uint64_t cvk_memory_largest(struct cvk_memory *memory)
{
    uint64_t largest = 0;

    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < CVK_MEMORY_CLASSES; i++)
        for (const struct cvk_piece *piece = memory->free_lists[i]; piece;
             piece = piece->next)
            if (piece->bytes > largest)
                largest = piece->bytes;
    pthread_mutex_unlock(&memory->lock);
    return largest;
}

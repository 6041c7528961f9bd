/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - the device's memory: large blocks of the driver's, cut up.
 *
 * A driver may allow no more than 4,096 allocations, and each takes long, so
 * chunks of 64 to 256 MiB are cut into pieces of multiples of 256 bytes. Free
 * pieces are kept by size, in classes of an eighth of a power of two, and grow
 * together with free neighbours at once; a search looks at few pieces.
 *
 * A piece that is given back may be given out at once although work that was
 * asked for before still uses it: one queue does all work, in order, and what
 * is asked for later waits where it touches the same addresses (hazards.h).
 *
 * All functions may be called by several threads.
 */
#ifndef CVK_MEMORY_H
#define CVK_MEMORY_H

#include "loader.h"

#include <hob/ext/plugin.h>

#include <pthread.h>

struct cvk_device;

enum {
    CVK_MEMORY_GRAIN = 256,
    CVK_MEMORY_STEPS = 8, /* classes between powers of two */
    CVK_MEMORY_CLASSES = 48 * CVK_MEMORY_STEPS
};

/* One allocation of the driver's: a buffer over all of it. */
struct cvk_chunk {
    VkDeviceMemory memory;
    VkBuffer buffer;
    VkDeviceAddress address;
    uint64_t bytes;
    char *map; /* NULL: the host does not see it */
    struct cvk_chunk *next;
    struct cvk_piece *first; /* its pieces, by address */
};

/* Where an address lies. */
struct cvk_place {
    VkBuffer buffer;
    uint64_t offset;
    char *map; /* the host's view of it; NULL: there is none */
};

struct cvk_memory {
    struct cvk_device *device; /* borrowed, outlives this */
    pthread_mutex_t lock;
    uint32_t has_lock;
    uint32_t is_mapped;   /* chunks are seen by the host */
    uint32_t type;        /* of memory */
    uint64_t chunk_bytes; /* of the next chunk */
    uint64_t chunk_limit;
    struct cvk_chunk *chunks;
    struct cvk_piece *spare;  /* nodes for pieces to come */
    struct cvk_slab *slabs;   /* where nodes are from */
    struct cvk_piece **table; /* pieces in use, by address */
    uint64_t table_size;      /* a power of two, or 0 */
    uint64_t table_used;
    struct cvk_piece *free_lists[CVK_MEMORY_CLASSES];
    uint64_t free_bits[CVK_MEMORY_CLASSES / 64]; /* lists that are not empty */
    struct hob_memory_stats stats;
};

/* DEVICE has its functions and limits. The message says what failed. */
hob_status cvk_memory_init(struct cvk_memory *memory, struct cvk_device *device,
                           char **out_message);
/* Everything goes back to the driver; nothing uses it any more. */
void cvk_memory_release(struct cvk_memory *memory);

/* HOB_ERR_MEMORY without memory; nothing is waited for. */
hob_status cvk_memory_take(struct cvk_memory *memory, uint64_t bytes,
                           void **out_data);
/* DATA is what take gave, or NULL. */
void cvk_memory_give(struct cvk_memory *memory, void *data);
/* Take out the chunks without a piece in use: nothing that begins from now on
 * uses them. When all that began before is done they go back to the driver. */
struct cvk_chunk *cvk_memory_detach(struct cvk_memory *memory);
void cvk_memory_close(struct cvk_memory *memory, struct cvk_chunk *detached);
/* Find BYTES bytes from DATA on; 0 where they are not all in one chunk. */
int cvk_memory_find(struct cvk_memory *memory, const void *data, uint64_t bytes,
                    struct cvk_place *out);

void cvk_memory_stats(struct cvk_memory *memory, struct hob_memory_stats *out);
void cvk_memory_reset_peak(struct cvk_memory *memory);
/* The largest piece that is free. */
uint64_t cvk_memory_largest(struct cvk_memory *memory);

/* ---- what staging.c makes too ---- */

/* Of TYPES, a mask, one type of memory with all of WANTED, that with most of
 * LIKED; UINT32_MAX if there is none. */
uint32_t cvk_memory_type(const struct cvk_device *device, uint32_t types,
                         VkMemoryPropertyFlags wanted,
                         VkMemoryPropertyFlags liked);
/* A buffer with memory of its own; CHUNK is zeroed at first, on failure
 * again. IS_MAPPED: seen by the host. */
VkResult cvk_chunk_open(struct cvk_device *device, uint64_t bytes,
                        uint32_t type, int is_mapped, struct cvk_chunk *chunk);
void cvk_chunk_close(struct cvk_device *device, struct cvk_chunk *chunk);
/* The types of memory that such a buffer can have; 0 on failure. */
uint32_t cvk_chunk_types(struct cvk_device *device, VkResult *out_result);

#endif

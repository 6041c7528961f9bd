/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - the device's memory: free lists over a pool of the driver's.
 *
 * The driver's pool gives and takes memory in the order of the stream, and
 * keeps what it was given back (cuMemAllocFromPoolAsync); that takes some
 * microseconds. Blocks of up to CCU_LIST_BYTES are therefore kept in lists by
 * size, in classes of an eighth of a power of two, where taking one costs no
 * call of the driver. Larger blocks are worth more than that, and so are those
 * from CCU_LARGE_BYTES on where the lists would make the device's memory grow.
 *
 * A block that is given back may be given out at once although work that was
 * asked for before still uses it: one stream does all work, in order.
 *
 * All functions may be called by several threads; but where it says otherwise
 * with the device's context current.
 */
#ifndef CCU_MEMORY_H
#define CCU_MEMORY_H

#include "driver.h"

#include <hob/ext/plugin.h>

#include <pthread.h>

struct ccu_device;

enum {
    CCU_MEMORY_GRAIN = 512,
    CCU_MEMORY_STEPS = 8, /* classes between powers of two */
    CCU_LIST_BYTES = 64 << 20,
    CCU_LARGE_BYTES = 1 << 20, /* from here on a block is worth a call */
    CCU_MEMORY_CLASSES = 20 * CCU_MEMORY_STEPS
};

/* Free blocks of one size. */
struct ccu_list {
    ccu_address *blocks;
    uint32_t count, room;
};

struct ccu_memory {
    struct ccu_device *device; /* borrowed, outlives this */
    pthread_mutex_t lock;
    uint32_t has_lock;
    struct CUmemPoolHandle_st *pool;
    struct ccu_list lists[CCU_MEMORY_CLASSES];
    uint64_t listed;   /* bytes of large blocks in lists */
    uint64_t reserved; /* bytes of the pool when it was last asked for more */
    struct hob_memory_stats stats;
};

/* The size of a block that is asked for as BYTES, and the number of its list;
 * the latter is CCU_MEMORY_CLASSES where it has none. */
uint64_t ccu_memory_size(uint64_t bytes, uint32_t *out_class);

hob_status ccu_memory_init(struct ccu_memory *memory, struct ccu_device *device,
                           char **out_message);
/* Everything goes back to the driver; nothing uses it any more. */
void ccu_memory_release(struct ccu_memory *memory);

/* Take BYTES bytes if a list has them; whether it had. The context need not be
 * current. */
int ccu_memory_take_listed(struct ccu_memory *memory, uint64_t bytes,
                           ccu_address *out_address);
/* Take BYTES bytes; RESULT is the driver's answer. */
int ccu_memory_take(struct ccu_memory *memory, uint64_t bytes,
                    ccu_address *out_address);
/* ADDRESS was taken for BYTES bytes; 0 is accepted. The context need not be
 * current. */
void ccu_memory_give(struct ccu_memory *memory, ccu_address address,
                     uint64_t bytes);
/* All free blocks go back to the driver and, once the stream is through, to
 * the system. */
void ccu_memory_trim(struct ccu_memory *memory);

void ccu_memory_stats(struct ccu_memory *memory, struct hob_memory_stats *out);
void ccu_memory_reset_peak(struct ccu_memory *memory);

#endif

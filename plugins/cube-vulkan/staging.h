/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging.h - elements on their way between host and device.
 *
 * Where the host sees the device's memory they are copied directly: upwards
 * only if the device is idle, downwards once all work is done. Else they go
 * through pinned memory in slots, which the device copies from or to while the
 * host copies the next one. One upload and one download go on at a time; other
 * threads' launches go on meanwhile.
 */
#ifndef CVK_STAGING_H
#define CVK_STAGING_H

#include "memory.h"

enum {
    CVK_SLOTS = 4,
    CVK_SLOT_BYTES = 8 << 20,   /* of each */
    CVK_FIRST_BYTES = 256 << 10 /* of each before a copy is larger: 32 MiB of
                                   pinned memory take NVIDIA's driver 13 ms */
};

/* One direction. */
struct cvk_lane {
    pthread_mutex_t lock; /* held by the copy that goes on */
    uint32_t has_lock;
    uint32_t next; /* slot to use */
    uint64_t slot_bytes;
    struct cvk_chunk chunk;      /* made on first need */
    uint64_t numbers[CVK_SLOTS]; /* of the batch that uses a slot */
};

struct cvk_staging {
    struct cvk_device *device; /* borrowed, outlives this */
    struct cvk_lane up, down;
};

hob_status cvk_staging_init(struct cvk_staging *staging,
                            struct cvk_device *device);
void cvk_staging_release(struct cvk_staging *staging);

/* As in struct cube_runtime. */
hob_status cvk_staging_upload(struct cvk_staging *staging, void *data,
                              const void *host_data, uint64_t bytes);
hob_status cvk_staging_download(struct cvk_staging *staging, void *host_data,
                                const void *data, uint64_t bytes);

#endif

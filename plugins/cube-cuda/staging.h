/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging.h - elements on their way between host and device.
 *
 * Both directions go through pinned memory in slots, made on first need: the
 * device copies from or to one while the host copies the next. An upload
 * returns once its bytes lie in slots; small ones share a slot.
 *
 * A large download has a stream of its own, which waits for what was asked for
 * before: work that other threads ask for meanwhile goes on beside it. An
 * upload writes to memory that earlier work may still use, so it waits in line.
 */
#ifndef CCU_STAGING_H
#define CCU_STAGING_H

#include "driver.h"

#include <hob/ext/plugin.h>

#include <pthread.h>

struct ccu_device;

enum {
    CCU_SLOTS = 4,
    CCU_SLOT_BYTES = 8 << 20,
    CCU_ASIDE_BYTES = 1 << 20 /* a download from here on is a large one */
};

struct ccu_slot {
    char *memory;
    struct CUevent_st *event; /* the device is done with it */
    uint64_t used;
};

/* One direction. */
struct ccu_lane {
    pthread_mutex_t lock; /* held by the copy that goes on */
    uint32_t has_lock;
    uint32_t at; /* the slot in use */
    struct ccu_slot slots[CCU_SLOTS];
};

struct ccu_staging {
    struct ccu_device *device; /* borrowed, outlives this */
    struct ccu_lane up, down;
    struct CUstream_st *aside; /* of large downloads; made on first need */
    struct CUevent_st *before; /* what they wait for */
};

hob_status ccu_staging_init(struct ccu_staging *staging,
                            struct ccu_device *device);
/* All work is done. */
void ccu_staging_release(struct ccu_staging *staging);

/* As in struct cube_runtime, with the context current. */
hob_status ccu_staging_upload(struct ccu_staging *staging, ccu_address to,
                              const void *host_data, uint64_t bytes);
hob_status ccu_staging_download(struct ccu_staging *staging, void *host_data,
                                ccu_address from, uint64_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - the work of a device, in the order in which it is asked for.
 *
 * Commands are collected in batches, which are handed to the driver together.
 * A timeline semaphore counts the batches that are done: batch N is done when
 * it has reached N. The first launches of an idle device are handed over
 * early, so that it begins while the next ones are still being made.
 *
 * Each batch has a little memory that the host writes and the device reads,
 * for parameters that do not go along with a launch and for small uploads.
 *
 * A device that is lost stays lost: every later call answers HOB_ERR_DEVICE,
 * with the text of the first failure.
 *
 * All functions may be called by several threads; a lock is held while
 * commands are recorded, and not while anything is waited for.
 */
#ifndef CVK_QUEUE_H
#define CVK_QUEUE_H

#include "hazards.h"
#include "loader.h"
#include "memory.h"

#include <cube/names.h>

#include <hob/ext/plugin.h>

#include <pthread.h>

struct cvk_device;
struct cvk_kernel;
struct cube_launch;

enum {
    CVK_BATCHES = 8,             /* at most that many are under way */
    CVK_BATCH_LAUNCHES = 100,    /* of one batch at most */
    CVK_BATCH_BYTES = 256 << 10, /* of its own memory */
    CVK_SMALL_BYTES = 64 << 10   /* uploads up to that go through it */
};

struct cvk_batch {
    VkCommandPool pool;
    VkCommandBuffer commands;
    uint64_t bytes_used; /* of its memory */
    uint32_t launches;
    uint32_t reserved;
    const char *op_name;   /* of the last launch; only compared */
    struct cube_names ops; /* for messages */
};

struct cvk_queue {
    struct cvk_device *device; /* borrowed, outlives this */
    pthread_mutex_t lock;
    uint32_t has_lock;
    uint32_t is_recording; /* batch submitted + 1 */
    VkQueue handle;
    VkSemaphore timeline;
    uint64_t submitted; /* the number of the last batch handed over */
    uint64_t completed; /* of the last one that was seen to be done */
    uint64_t shown;     /* the host may read what batches up to it wrote */
    struct cvk_hazards hazards;
    struct cvk_batch batches[CVK_BATCHES]; /* number N in N % CVK_BATCHES */
    struct cvk_chunk arena;                /* their memory, and flags */
    uint32_t is_lost;
    char lost[2 * CVK_REASON]; /* why */
};

hob_status cvk_queue_init(struct cvk_queue *queue, struct cvk_device *device,
                          char **out_message);
/* All work is done or lost. */
void cvk_queue_release(struct cvk_queue *queue);

/* ---- recording ---- */

/* KERNEL keeps the number of the batch. */
hob_status cvk_queue_launch(struct cvk_queue *queue, struct cvk_kernel *kernel,
                            const struct cube_launch *launch,
                            char **out_message);

/* One side of a copy. */
struct cvk_end {
    VkBuffer buffer;
    uint64_t offset;
    uint64_t address; /* 0: memory for staging, which others wait for */
};

/* Copy BYTES bytes; *OUT_NUMBER is that of the batch. */
hob_status cvk_queue_copy(struct cvk_queue *queue, const struct cvk_end *to,
                          const struct cvk_end *from, uint64_t bytes,
                          uint64_t *out_number);
/* Copy at most CVK_SMALL_BYTES bytes of the host's, which are read before it
 * returns. */
hob_status cvk_queue_copy_small(struct cvk_queue *queue,
                                const struct cvk_end *to, const void *host_data,
                                uint64_t bytes);

/* The flags of cube/flag.h, for the host and for the device. */
void cvk_queue_flags(const struct cvk_queue *queue, uint32_t **out_host,
                     void **out_data);

/* ---- waiting ---- */

/* See that batch NUMBER is handed over. */
hob_status cvk_queue_submit(struct cvk_queue *queue, uint64_t number);
/* Wait for batch NUMBER, which is handed over first if need be. */
hob_status cvk_queue_wait(struct cvk_queue *queue, uint64_t number);
/* Wait for all that has been asked for. FOR_HOST: the host may then read
 * what it wrote. */
hob_status cvk_queue_wait_all(struct cvk_queue *queue, int for_host);
/* Whether nothing is recorded and nothing under way. */
int cvk_queue_is_idle(struct cvk_queue *queue);
/* HOB_OK, or HOB_ERR_DEVICE and why. */
hob_status cvk_queue_check(struct cvk_queue *queue, char **out_message);

#endif

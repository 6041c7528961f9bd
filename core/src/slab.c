/* SPDX-License-Identifier: Apache-2.0 */
#include "slab.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum {
    LINE = 64, /* bytes: objects do not share a cache line */
    CHUNK_OBJECTS = 64,
    SPINS = 100 /* then let the other thread run */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static void lock(struct hob__slab_lane *lane)
{
    for (int spins = 0;
         atomic_flag_test_and_set_explicit(&lane->lock, memory_order_acquire);)
        if (++spins > SPINS)
            sched_yield();
}

static void unlock(struct hob__slab_lane *lane)
{
    atomic_flag_clear_explicit(&lane->lock, memory_order_release);
}

/* The lane of this thread: threads differ in the middle bits of their id. */
static struct hob__slab_lane *own_lane(struct hob__slab *slab)
{
    uint64_t hash =
        (uint64_t)(uintptr_t)pthread_self() * UINT64_C(0x9e3779b97f4a7c15);

    return &slab->lanes[(hash >> 32) % HOB__SLAB_LANES];
}

void hob__slab_init(struct hob__slab *slab, size_t size, int plain)
{
    for (size_t i = 0; i < HOB__SLAB_LANES; i++) {
        atomic_flag_clear(&slab->lanes[i].lock);
        slab->lanes[i].free = NULL;
        slab->lanes[i].live = 0;
    }
    atomic_init(&slab->chunks, NULL);
    slab->size = (size + LINE - 1) / LINE * LINE;
    slab->plain = plain || SANITIZED;
}

void hob__slab_release(struct hob__slab *slab)
{
    void *chunk = atomic_load(&slab->chunks);

    while (chunk) {
        void *next = *(void **)chunk;

        free(chunk);
        chunk = next;
    }
    atomic_store(&slab->chunks, NULL);
}

/* All free objects of some other lane than LANE; NULL if there are none. */
static void *take_list(struct hob__slab *slab, struct hob__slab_lane *lane)
{
    void *list = NULL;

    for (size_t i = 0; i < HOB__SLAB_LANES && !list; i++) {
        struct hob__slab_lane *other = &slab->lanes[i];

        if (other == lane)
            continue;
        lock(other);
        list = other->free;
        other->free = NULL;
        unlock(other);
    }
    return list;
}

/* The objects of a new chunk, whose first line links the chunks. */
static void *make_list(struct hob__slab *slab)
{
    char *chunk = aligned_alloc(LINE, LINE + CHUNK_OBJECTS * slab->size);
    void *list = NULL;
    void **link;

    if (!chunk)
        return NULL;
    for (size_t i = CHUNK_OBJECTS; i--;) {
        void **object = (void **)(void *)(chunk + LINE + i * slab->size);

        *object = list;
        list = object;
    }
    link = (void **)(void *)chunk;
    *link = atomic_load(&slab->chunks);
    while (!atomic_compare_exchange_weak(&slab->chunks, link, chunk))
        ; /* which has set the link to what the head is now */
    return list;
}

/* LANE is empty: an object from elsewhere, the rest of its list to LANE. */
static void *refill(struct hob__slab *slab, struct hob__slab_lane *lane)
{
    void **list = take_list(slab, lane);
    void **last;

    if (!list)
        list = make_list(slab);
    if (!list)
        return NULL;
    lock(lane);
    if (!lane->free) {
        lane->free = *list;
    } else { /* another thread of this lane was faster */
        for (last = list; *last;)
            last = *last;
        *last = lane->free;
        lane->free = *list;
    }
    lane->live++;
    unlock(lane);
    return list;
}

void *hob__slab_take(struct hob__slab *slab)
{
    struct hob__slab_lane *lane = own_lane(slab);
    void *object = slab->plain ? aligned_alloc(LINE, slab->size) : NULL;

    if (slab->plain && !object)
        return NULL;
    lock(lane);
    if (!slab->plain) {
        object = lane->free;
        if (object)
            lane->free = *(void **)object;
    }
    lane->live += object != NULL;
    unlock(lane);
    return object ? object : refill(slab, lane);
}

void hob__slab_give(struct hob__slab *slab, void *object)
{
    struct hob__slab_lane *lane = own_lane(slab);

    lock(lane);
    lane->live--;
    if (!slab->plain) {
        *(void **)object = lane->free;
        lane->free = object;
    }
    unlock(lane);
    if (slab->plain)
        free(object);
}

int64_t hob__slab_live(struct hob__slab *slab)
{
    int64_t live = 0;

    for (size_t i = 0; i < HOB__SLAB_LANES; i++) {
        lock(&slab->lanes[i]);
        live += slab->lanes[i].live;
        unlock(&slab->lanes[i]);
    }
    return live;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "slab.h"

#include "process.h"

#include <sched.h>
#include <stdlib.h>

enum {
    LINE = 64, /* bytes: objects do not share a cache line */
    BATCH = HOB__SLAB_BATCH,
    CHUNK_BATCHES = 2,
    SPINS = 100 /* then let the other thread run */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* What it guards can be used as a thread that is no more has left it: links
 * are written one by one, and a batch or two may be lost. */
static void lock(atomic_uint *flag)
{
    const unsigned mine = hob__process_mark();

    for (int spins = 0;;) {
        unsigned held = atomic_load_explicit(flag, memory_order_relaxed);

        if (held != mine &&
            atomic_compare_exchange_weak_explicit(
                flag, &held, mine, memory_order_acquire, memory_order_relaxed))
            return;
        if (++spins > SPINS)
            sched_yield();
    }
}

static void unlock(atomic_uint *flag)
{
    atomic_store_explicit(flag, 0, memory_order_release);
}

/* ---- lanes ---- */

static void lane_init(struct hob__slab_lane *lane)
{
    atomic_init(&lane->owner, 0);
    lane->free = NULL;
    lane->spare = NULL;
    lane->count = 0;
    atomic_init(&lane->live, 0);
}

/* The lane of this thread; NULL if all have other owners. */
static struct hob__slab_lane *find_lane(struct hob__slab *slab)
{
    const uintptr_t self = (uintptr_t)pthread_self();
    const uint64_t hash = (uint64_t)self * UINT64_C(0x9e3779b97f4a7c15);

    for (uint64_t i = 0; i < HOB__SLAB_LANES; i++) {
        struct hob__slab_lane *lane =
            &slab->lanes[((hash >> 32) + i) % HOB__SLAB_LANES];
        uintptr_t owner =
            atomic_load_explicit(&lane->owner, memory_order_relaxed);

        if (owner == self ||
            (!owner && atomic_compare_exchange_strong_explicit(
                           &lane->owner, &owner, self, memory_order_relaxed,
                           memory_order_relaxed)))
            return lane;
    }
    return NULL;
}

void hob__slab_init(struct hob__slab *slab, size_t size, int plain)
{
    for (size_t i = 0; i < HOB__SLAB_LANES; i++)
        lane_init(&slab->lanes[i]);
    lane_init(&slab->shared);
    atomic_init(&slab->shared_lock, 0);
    atomic_init(&slab->depot_lock, 0);
    slab->depot = NULL;
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

/* ---- batches ---- */

static void put_batch(struct hob__slab *slab, void *batch)
{
    lock(&slab->depot_lock);
    ((void **)batch)[1] = slab->depot;
    slab->depot = batch;
    unlock(&slab->depot_lock);
}

static void *take_batch(struct hob__slab *slab)
{
    void *batch;

    lock(&slab->depot_lock);
    batch = slab->depot;
    if (batch)
        slab->depot = ((void **)batch)[1];
    unlock(&slab->depot_lock);
    return batch;
}

/* A batch of new objects that begin at AT. */
static void *make_batch(const struct hob__slab *slab, char *at)
{
    void *list = NULL;

    for (size_t i = BATCH; i--;) {
        void **object = (void **)(void *)(at + i * slab->size);

        *object = list;
        list = object;
    }
    return list;
}

/* One of the batches of a new chunk, whose first line links the chunks; the
 * others go to the depot. */
static void *make_chunk(struct hob__slab *slab)
{
    const size_t bytes = BATCH * slab->size;
    char *chunk = aligned_alloc(LINE, LINE + CHUNK_BATCHES * bytes);
    void **link = (void **)(void *)chunk;

    if (!chunk)
        return NULL;
    *link = atomic_load(&slab->chunks);
    while (!atomic_compare_exchange_weak(&slab->chunks, link, chunk))
        ; /* which has set the link to what the head is now */
    for (size_t i = 1; i < CHUNK_BATCHES; i++)
        put_batch(slab, make_batch(slab, chunk + LINE + i * bytes));
    return make_batch(slab, chunk + LINE);
}

/* LANE has run out: whether there are objects in it now. */
static int refill(struct hob__slab *slab, struct hob__slab_lane *lane)
{
    lane->free = lane->spare;
    lane->spare = NULL;
    if (!lane->free)
        lane->free = take_batch(slab);
    if (!lane->free)
        lane->free = make_chunk(slab);
    lane->count = lane->free ? BATCH : 0;
    return lane->free != NULL;
}

/* LANE has a batch, and gets more. */
static void make_room(struct hob__slab *slab, struct hob__slab_lane *lane)
{
    if (lane->spare)
        put_batch(slab, lane->spare);
    lane->spare = lane->free;
    lane->free = NULL;
    lane->count = 0;
}

/* ---- objects ---- */

static void *take(struct hob__slab *slab, struct hob__slab_lane *lane)
{
    void *object;

    if (slab->plain) {
        object = aligned_alloc(LINE, slab->size);
        if (!object)
            return NULL;
    } else {
        if (!lane->free && !refill(slab, lane))
            return NULL;
        object = lane->free;
        lane->free = *(void **)object;
        lane->count--;
    }
    hob__slab_count(lane, 1);
    return object;
}

static void give(struct hob__slab *slab, struct hob__slab_lane *lane,
                 void *object)
{
    hob__slab_count(lane, -1);
    if (slab->plain) {
        free(object);
        return;
    }
    if (lane->count == BATCH)
        make_room(slab, lane);
    *(void **)object = lane->free;
    lane->free = object;
    lane->count++;
}

void *hob__slab_take_slowly(struct hob__slab *slab)
{
    struct hob__slab_lane *lane = find_lane(slab);
    void *object;

    if (lane)
        return take(slab, lane);
    lock(&slab->shared_lock);
    object = take(slab, &slab->shared);
    unlock(&slab->shared_lock);
    return object;
}

void hob__slab_give_slowly(struct hob__slab *slab, void *object)
{
    struct hob__slab_lane *lane = find_lane(slab);

    if (lane) {
        give(slab, lane, object);
        return;
    }
    lock(&slab->shared_lock);
    give(slab, &slab->shared, object);
    unlock(&slab->shared_lock);
}

int64_t hob__slab_live(struct hob__slab *slab)
{
    int64_t live =
        atomic_load_explicit(&slab->shared.live, memory_order_relaxed);

    for (size_t i = 0; i < HOB__SLAB_LANES; i++)
        live +=
            atomic_load_explicit(&slab->lanes[i].live, memory_order_relaxed);
    return live;
}

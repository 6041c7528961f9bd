/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab.h - fixed-size objects that come and go a million times a second.
 *
 * Free objects wait in lanes. A lane belongs to the first thread that uses it,
 * so that it takes and gives back without a lock, and keeps two batches of
 * objects at most: what is more goes to the depot, whole batches for whoever
 * has run out. So a thread that only makes objects lives on those that another
 * gives back. A thread that comes when all lanes have an owner shares one
 * more. The lane of a thread that has ended waits for one with the same id, as
 * the next thread mostly is. Memory goes back to the system when the slab is
 * released. In a fork the locks are free, whoever of the parent's threads had
 * them. In a debug runtime and under a sanitizer every object is its own
 * malloc, so that a use after free is seen. Thread-safe.
 */
#ifndef HOB__SLAB_H
#define HOB__SLAB_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { HOB__SLAB_LANES = 32, HOB__SLAB_BATCH = 32 /* objects */ };

struct hob__slab_lane {
    alignas(64) atomic_uintptr_t owner; /* a thread; 0: none yet */
    void *free;                         /* an object's first word is the next */
    void *spare;                        /* a whole batch, or NULL */
    uint32_t count;                     /* of FREE */
    atomic_int_fast64_t live; /* taken less given here; may be negative */
};

struct hob__slab {
    struct hob__slab_lane lanes[HOB__SLAB_LANES];
    struct hob__slab_lane shared; /* of who has none */
    atomic_uint shared_lock;      /* 0, or 1 + the forks before who has it */
    atomic_uint depot_lock;
    void
        *depot; /* batches; the second word of one's first object is the next */
    void *_Atomic chunks; /* what is to be freed at the end, linked */
    size_t size;          /* of an object, a multiple of 64 bytes */
    int plain;            /* use malloc */
};

void hob__slab_init(struct hob__slab *slab, size_t size, int plain);
void hob__slab_release(struct hob__slab *slab);

/* What the two below do where it is not simple. */
void *hob__slab_take_slowly(struct hob__slab *slab);
void hob__slab_give_slowly(struct hob__slab *slab, void *object);

/* The lane of this thread if it is where it is mostly; else NULL. */
static inline struct hob__slab_lane *hob__slab_lane(struct hob__slab *slab)
{
    const uintptr_t self = (uintptr_t)pthread_self();
    /* Threads differ in the middle bits of their id. */
    const uint64_t hash = (uint64_t)self * UINT64_C(0x9e3779b97f4a7c15);
    struct hob__slab_lane *lane = &slab->lanes[(hash >> 32) % HOB__SLAB_LANES];

    return atomic_load_explicit(&lane->owner, memory_order_relaxed) == self
               ? lane
               : NULL;
}

/* Only the owner of LANE writes to it, others may read. */
static inline void hob__slab_count(struct hob__slab_lane *lane, int64_t change)
{
    atomic_store_explicit(
        &lane->live,
        atomic_load_explicit(&lane->live, memory_order_relaxed) + change,
        memory_order_relaxed);
}

/* An object with undefined content; NULL without memory. */
static inline void *hob__slab_take(struct hob__slab *slab)
{
    struct hob__slab_lane *lane = hob__slab_lane(slab);
    void *object;

    if (!lane || !lane->free) /* always so if the slab is plain */
        return hob__slab_take_slowly(slab);
    object = lane->free;
    lane->free = *(void **)object;
    lane->count--;
    hob__slab_count(lane, 1);
    return object;
}

/* Who gives many back knows its LANE, as hob__slab_lane() says. */
static inline void hob__slab_give_to(struct hob__slab *slab,
                                     struct hob__slab_lane *lane, void *object)
{
    if (!lane || lane->count == HOB__SLAB_BATCH || slab->plain) {
        hob__slab_give_slowly(slab, object);
        return;
    }
    *(void **)object = lane->free;
    lane->free = object;
    lane->count++;
    hob__slab_count(lane, -1);
}

static inline void hob__slab_give(struct hob__slab *slab, void *object)
{
    hob__slab_give_to(slab, hob__slab_lane(slab), object);
}

/* Objects that were taken and not given back. */
int64_t hob__slab_live(struct hob__slab *slab);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "slab.h"

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

static void lock(struct hob__slab *slab)
{
    for (int spins = 0;
         atomic_flag_test_and_set_explicit(&slab->lock, memory_order_acquire);)
        if (++spins > SPINS)
            sched_yield();
}

static void unlock(struct hob__slab *slab)
{
    atomic_flag_clear_explicit(&slab->lock, memory_order_release);
}

void hob__slab_init(struct hob__slab *slab, size_t size, int plain)
{
    atomic_flag_clear(&slab->lock);
    slab->plain = plain || SANITIZED;
    slab->size = (size + LINE - 1) / LINE * LINE;
    slab->free = NULL;
    slab->chunks = NULL;
    slab->live = 0;
}

void hob__slab_release(struct hob__slab *slab)
{
    while (slab->chunks) {
        void *chunk = slab->chunks;

        slab->chunks = *(void **)chunk;
        free(chunk);
    }
    slab->free = NULL;
}

/* Add a chunk's objects to the free list; its first line links the chunks. */
static int grow_locked(struct hob__slab *slab)
{
    char *chunk = aligned_alloc(LINE, LINE + CHUNK_OBJECTS * slab->size);

    if (!chunk)
        return 0;
    *(void **)(void *)chunk = slab->chunks;
    slab->chunks = chunk;
    for (size_t i = CHUNK_OBJECTS; i--;) {
        void **object = (void **)(void *)(chunk + LINE + i * slab->size);

        *object = slab->free;
        slab->free = object;
    }
    return 1;
}

void *hob__slab_take(struct hob__slab *slab)
{
    void *object = slab->plain ? aligned_alloc(LINE, slab->size) : NULL;

    if (slab->plain && !object)
        return NULL;
    lock(slab);
    if (!slab->plain && (slab->free || grow_locked(slab))) {
        object = slab->free;
        slab->free = *(void **)object;
    }
    slab->live += object != NULL;
    unlock(slab);
    return object;
}

void hob__slab_give(struct hob__slab *slab, void *object)
{
    lock(slab);
    slab->live--;
    if (!slab->plain) {
        *(void **)object = slab->free;
        slab->free = object;
    }
    unlock(slab);
    if (slab->plain)
        free(object);
}

int64_t hob__slab_live(struct hob__slab *slab)
{
    int64_t live;

    lock(slab);
    live = slab->live;
    unlock(slab);
    return live;
}

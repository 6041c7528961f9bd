/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <sched.h>
#include <stdlib.h>

enum {
    CHUNK_BLOCKS = 64,
    SPINS = 100 /* then let the other thread run */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static void lock(struct ad_pool *pool)
{
    for (int spins = 0;
         atomic_flag_test_and_set_explicit(&pool->lock, memory_order_acquire);)
        if (++spins > SPINS)
            sched_yield();
}

static void unlock(struct ad_pool *pool)
{
    atomic_flag_clear_explicit(&pool->lock, memory_order_release);
}

/* The class of blocks of BYTES; AD_POOL_CLASSES if they are too large. */
static size_t class_of(size_t bytes)
{
    size_t class = (bytes + AD_POOL_UNIT - 1) / AD_POOL_UNIT - 1;

    return SANITIZED || class >= AD_POOL_CLASSES ? AD_POOL_CLASSES : class;
}

void ad_pool_init(struct ad_pool *pool)
{
    atomic_flag_clear(&pool->lock);
    for (size_t i = 0; i < AD_POOL_CLASSES; i++)
        pool->free[i] = NULL;
    pool->chunks = NULL;
}

void ad_pool_release(struct ad_pool *pool)
{
    while (pool->chunks) {
        void *chunk = pool->chunks;

        pool->chunks = *(void **)chunk;
        free(chunk);
    }
}

/* Add a chunk of blocks to a free list; its first unit links the chunks. */
static int grow_locked(struct ad_pool *pool, size_t class)
{
    size_t size = (class + 1) * AD_POOL_UNIT;
    char *chunk =
        aligned_alloc(AD_POOL_UNIT, AD_POOL_UNIT + CHUNK_BLOCKS * size);

    if (!chunk)
        return 0;
    *(void **)(void *)chunk = pool->chunks;
    pool->chunks = chunk;
    for (size_t i = CHUNK_BLOCKS; i--;) {
        void **block = (void **)(void *)(chunk + AD_POOL_UNIT + i * size);

        *block = pool->free[class];
        pool->free[class] = block;
    }
    return 1;
}

void *ad_pool_take(struct ad_pool *pool, size_t bytes)
{
    size_t class = class_of(bytes);
    void *block = NULL;

    if (class == AD_POOL_CLASSES)
        return malloc(bytes);
    lock(pool);
    if (pool->free[class] || grow_locked(pool, class)) {
        block = pool->free[class];
        pool->free[class] = *(void **)block;
    }
    unlock(pool);
    return block;
}

void ad_pool_give(struct ad_pool *pool, void *block, size_t bytes)
{
    size_t class = class_of(bytes);

    if (class == AD_POOL_CLASSES) {
        free(block);
        return;
    }
    lock(pool);
    *(void **)block = pool->free[class];
    pool->free[class] = block;
    unlock(pool);
}

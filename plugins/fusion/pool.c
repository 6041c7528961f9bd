/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 << 10 };

/* So that a sanitizer sees a use after the end. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PLAIN = 1 };
#else
enum { PLAIN = 0 };
#endif

void fu_pool_init(struct fu_pool *pool)
{
    memset(pool, 0, sizeof(*pool));
}

void fu_pool_release(struct fu_pool *pool)
{
    while (pool->chunks) {
        void *next = *(void **)pool->chunks;

        free(pool->chunks);
        pool->chunks = next;
    }
}

/* The class of objects of BYTES: FU_POOL_CLASSES for large ones. */
static size_t class_of(size_t bytes)
{
    size_t class = (bytes - 1) / FU_POOL_UNIT;

    return PLAIN || class > FU_POOL_CLASSES ? FU_POOL_CLASSES : class;
}

/* BYTES more from the latest chunk, or a new one. */
static void *cut(struct fu_pool *pool, size_t bytes)
{
    void *object;

    if (pool->left < bytes) { /* what is left of the old one is lost */
        char *chunk = aligned_alloc(FU_POOL_UNIT, CHUNK_BYTES);

        if (!chunk)
            return NULL;
        *(void **)(void *)chunk = pool->chunks;
        pool->chunks = chunk;
        pool->at = chunk + FU_POOL_UNIT;
        pool->left = CHUNK_BYTES - FU_POOL_UNIT;
    }
    object = pool->at;
    pool->at += bytes;
    pool->left -= bytes;
    return object;
}

void *fu_pool_take(struct fu_pool *pool, size_t bytes)
{
    size_t class = class_of(bytes);
    void *object;

    if (class == FU_POOL_CLASSES)
        return malloc(bytes);
    object = pool->free[class];
    if (!object)
        return cut(pool, (class + 1) * FU_POOL_UNIT);
    pool->free[class] = *(void **)object;
    return object;
}

void fu_pool_give(struct fu_pool *pool, void *object, size_t bytes)
{
    size_t class = class_of(bytes);

    if (class == FU_POOL_CLASSES) {
        free(object);
        return;
    }
    *(void **)object = pool->free[class];
    pool->free[class] = object;
}

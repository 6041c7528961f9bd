/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 << 10 };

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

void *fu_pool_make(struct fu_pool *pool, size_t bytes)
{
    const size_t class = fu_pool_class(bytes);

    return class == FU_POOL_CLASSES ? malloc(bytes)
                                    : cut(pool, (class + 1) * FU_POOL_UNIT);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - memory of nodes: recorded and dropped by the million, of a few
 * sizes. Not thread-safe: the layer's lock is held.
 */
#ifndef HOB_FUSION_POOL_H
#define HOB_FUSION_POOL_H

#include <stddef.h>
#include <stdlib.h>

/* Objects are multiples of UNIT bytes; larger ones than the last class come
 * from malloc. */
enum { FU_POOL_UNIT = 64, FU_POOL_CLASSES = 16 };

struct fu_pool {
    void *free[FU_POOL_CLASSES]; /* a free object's first word is the next */
    void *chunks;                /* all, linked likewise */
    char *at;                    /* what is left of the latest */
    size_t left;
};

void fu_pool_init(struct fu_pool *pool);
void fu_pool_release(struct fu_pool *pool);

/* So that a sanitizer sees a use after the end. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FU_POOL_PLAIN = 1 };
#else
enum { FU_POOL_PLAIN = 0 };
#endif

/* The class of objects of BYTES: FU_POOL_CLASSES for large ones. */
static inline size_t fu_pool_class(size_t bytes)
{
    const size_t class = (bytes - 1) / FU_POOL_UNIT;

    return FU_POOL_PLAIN || class > FU_POOL_CLASSES ? FU_POOL_CLASSES : class;
}

/* BYTES that were not used yet, or are too large for a class. */
void *fu_pool_make(struct fu_pool *pool, size_t bytes);

/* BYTES of undefined content; NULL without memory. */
static inline void *fu_pool_take(struct fu_pool *pool, size_t bytes)
{
    const size_t class = fu_pool_class(bytes);
    void *object = class < FU_POOL_CLASSES ? pool->free[class] : NULL;

    if (!object)
        return fu_pool_make(pool, bytes);
    pool->free[class] = *(void **)object;
    return object;
}

/* BYTES are what they were taken with. */
static inline void fu_pool_give(struct fu_pool *pool, void *object,
                                size_t bytes)
{
    const size_t class = fu_pool_class(bytes);

    if (class == FU_POOL_CLASSES) {
        free(object);
        return;
    }
    *(void **)object = pool->free[class];
    pool->free[class] = object;
}

#endif

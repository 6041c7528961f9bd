/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - memory of nodes: recorded and dropped by the million, of a few
 * sizes. Not thread-safe: the layer's lock is held.
 */
#ifndef HOB_FUSION_POOL_H
#define HOB_FUSION_POOL_H

#include <stddef.h>

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

/* BYTES of undefined content; NULL without memory. */
void *fu_pool_take(struct fu_pool *pool, size_t bytes);
/* BYTES are what they were taken with. */
void fu_pool_give(struct fu_pool *pool, void *object, size_t bytes);

#endif

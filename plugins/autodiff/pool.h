/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - memory for nodes.
 *
 * A graph makes and frees a node a call, by the hundred and in the order of
 * a scope, which is the worst that malloc's caches know. Free nodes are kept
 * in lists by size under a spin lock that is held for a few instructions.
 * Blocks go back to the system when the pool ends. Under a sanitizer every
 * block is its own malloc. Thread-safe.
 */
#ifndef HOB_AUTODIFF_POOL_H
#define HOB_AUTODIFF_POOL_H

#include <stdatomic.h>
#include <stddef.h>

/* Blocks are multiples of the unit; larger ones than the last class are the
 * system's. */
enum { AD_POOL_UNIT = 64, AD_POOL_CLASSES = 12 };

struct ad_pool {
    atomic_flag lock;
    void *free[AD_POOL_CLASSES]; /* a block's first word links to the next */
    void *chunks;                /* what to free at the end, linked likewise */
};

void ad_pool_init(struct ad_pool *pool);
/* Every block has been given back before. */
void ad_pool_release(struct ad_pool *pool);

/* BYTES of undefined content; NULL without memory. */
void *ad_pool_take(struct ad_pool *pool, size_t bytes);
/* BLOCK was taken with the same BYTES. */
void ad_pool_give(struct ad_pool *pool, void *block, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab.h - fixed-size objects that come and go a million times a second.
 *
 * A free list under a spin lock that is held for a few instructions: what
 * malloc's per-thread caches would cost once a scope holds more than a few
 * tensors. Memory is given back when the slab is released. In a debug
 * runtime and under a sanitizer every object is its own malloc, so that a
 * use after free is seen. Thread-safe.
 */
#ifndef HOB__SLAB_H
#define HOB__SLAB_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct hob__slab {
    atomic_flag lock;
    int plain;    /* use malloc */
    size_t size;  /* of an object, a multiple of 64 bytes */
    void *free;   /* the next pointer is an object's first word */
    void *chunks; /* likewise, of what is to be freed at the end */
    int64_t live; /* objects handed out, under the lock */
};

void hob__slab_init(struct hob__slab *slab, size_t size, int plain);
void hob__slab_release(struct hob__slab *slab);

/* An object with undefined content; NULL without memory. */
void *hob__slab_take(struct hob__slab *slab);
void hob__slab_give(struct hob__slab *slab, void *object);

/* Objects that were taken and not given back. */
int64_t hob__slab_live(struct hob__slab *slab);

#endif

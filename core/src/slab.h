/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab.h - fixed-size objects that come and go a million times a second.
 *
 * Free objects wait in lists, of which a thread uses one: its lane. A lane's
 * spin lock is held for a few instructions, and threads rarely share a lane,
 * so they do not wait for each other. A lane that has run out takes the whole
 * list of another before memory is asked for; so a thread that only makes
 * objects lives on those that another gives back. Memory goes back to the
 * system when the slab is released. In a debug runtime and under a sanitizer
 * every object is its own malloc, so that a use after free is seen.
 * Thread-safe.
 */
#ifndef HOB__SLAB_H
#define HOB__SLAB_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { HOB__SLAB_LANES = 16 };

struct hob__slab_lane {
    alignas(64) atomic_flag lock; /* a line of the cache each */
    void *free;                   /* an object's first word is the next */
    int64_t live;                 /* taken less given here; may be negative */
};

struct hob__slab {
    struct hob__slab_lane lanes[HOB__SLAB_LANES];
    void *_Atomic chunks; /* what is to be freed at the end, linked likewise */
    size_t size;          /* of an object, a multiple of 64 bytes */
    int plain;            /* use malloc */
};

void hob__slab_init(struct hob__slab *slab, size_t size, int plain);
void hob__slab_release(struct hob__slab *slab);

/* An object with undefined content; NULL without memory. */
void *hob__slab_take(struct hob__slab *slab);
void hob__slab_give(struct hob__slab *slab, void *object);

/* Objects that were taken and not given back. */
int64_t hob__slab_live(struct hob__slab *slab);

#endif

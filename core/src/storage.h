/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.h - the memory behind tensors.
 *
 * A storage is counted and may be shared by several handles (views). It is
 * either a block from its base's allocator or memory of somebody else with a
 * deleter (a mapped file, DLPack), which runs with the last reference, on
 * whichever thread that is. Thread-safe.
 */
#ifndef HOB__STORAGE_H
#define HOB__STORAGE_H

#include <hob/ext/plugin.h>

#include <stdatomic.h>

enum hob__storage_flags {
    HOB__STORAGE_POOL = 1,     /* from the base's allocator */
    HOB__STORAGE_EXPORTED = 2, /* somebody outside holds it too */
    HOB__STORAGE_READ_ONLY = 4
};

struct hob_storage {
    atomic_uint refs;
    atomic_uint flags;
    hob_device *base; /* borrowed: outlives all its tensors */
    void *data;
    uint64_t bytes;
    void (*deleter)(void *context);
    void *context;
};

/*
 * Allocate BYTES on BASE. On success *OUT_STORAGE holds one reference. Fails
 * with HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__storage_new(hob_device *base, uint64_t bytes,
                                           struct hob_storage **out_storage);

/*
 * Take over DATA, which DELETER(CONTEXT) gives back. On failure nothing is
 * taken. DELETER may be NULL.
 */
HOB_MUST_CHECK hob_status hob__storage_wrap(hob_device *base, void *data,
                                            uint64_t bytes, uint32_t flags,
                                            void (*deleter)(void *context),
                                            void *context,
                                            struct hob_storage **out_storage);

/*
 * Take one from REFS; whether that was the last. Who sees 1 holds the only
 * reference, so nobody else can add or take one meanwhile: a load will do, at
 * a quarter of the price of an atomic subtraction.
 */
static inline int hob__refs_drop(atomic_uint *refs)
{
    return atomic_load_explicit(refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

void hob__storage_ref(struct hob_storage *storage);   /* accepts NULL */
void hob__storage_unref(struct hob_storage *storage); /* accepts NULL */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.h - the memory behind tensors.
 *
 * A storage is counted and may be shared by several handles (views). It is
 * either a block from its base's allocator or memory of somebody else with a
 * deleter (a mapped file, DLPack), which runs with the last reference, on
 * whichever thread that is. Thread-safe.
 *
 * It is a part of the handle that was made with it; see tensor.h.
 */
#ifndef HOB__STORAGE_H
#define HOB__STORAGE_H

#include <hob/ext/plugin.h>

#include <stdatomic.h>

enum hob__storage_flags {
    HOB__STORAGE_POOL = 1,     /* from the base's allocator */
    HOB__STORAGE_EXPORTED = 2, /* somebody outside holds it too */
    HOB__STORAGE_READ_ONLY = 4,
    HOB__STORAGE_SMALL = 8,     /* in the handle: not the allocator's to free */
    HOB__STORAGE_RECORDED = 16, /* made in a step that is recorded */
    HOB__STORAGE_LENT = 32      /* to such a step, which may write over it */
};

struct hob_storage {
    atomic_uint refs;
    atomic_uint flags;
    hob_device *base; /* borrowed: outlives all its tensors */
    void *data;
    uint64_t bytes;
    void (*deleter)(void *context);
    void *context;
    /* The call that made these elements, in a step that is written down or
     * compared (script.h); 0: none. */
    uint64_t stamp;
    uint64_t range; /* what is known of its integers; see range.h */
};

/*
 * Let STORAGE, which is unused, be BYTES on BASE, with one reference. SMALL
 * holds HOB__SMALL_BYTES that are as good where the base computes in host
 * memory, and live as long as STORAGE; NULL if there are none. Fails with
 * HOB_ERR_MEMORY.
 */
enum { HOB__SMALL_BYTES = 64 };
HOB_MUST_CHECK hob_status hob__storage_alloc(struct hob_storage *storage,
                                             hob_device *base, uint64_t bytes,
                                             void *small);

/* OUT: why there is no memory on BASE for a tensor WHAT of BYTES bytes. */
enum { HOB__REFUSAL_TEXT = 512 };
const char *hob__storage_refusal(const hob_device *base, const char *what,
                                 uint64_t bytes, char out[HOB__REFUSAL_TEXT]);

/*
 * Let STORAGE, which is unused, be DATA, which DELETER(CONTEXT) gives back;
 * one reference. DELETER may be NULL.
 */
void hob__storage_wrap(struct hob_storage *storage, hob_device *base,
                       void *data, uint64_t bytes, uint32_t flags,
                       void (*deleter)(void *context), void *context);

/* Give the memory of STORAGE back: nobody has a reference any more. */
void hob__storage_end(struct hob_storage *storage);

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

/* Whether who holds the only reference to STORAGE may write to it. */
static inline int hob__storage_is_ours(struct hob_storage *storage)
{
    const uint32_t flags =
        atomic_load_explicit(&storage->flags, memory_order_acquire);

    return (flags & (HOB__STORAGE_POOL | HOB__STORAGE_LENT)) &&
           !(flags & (HOB__STORAGE_EXPORTED | HOB__STORAGE_READ_ONLY));
}

static inline void hob__storage_ref(struct hob_storage *storage)
{
    if (storage)
        atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
}

#endif

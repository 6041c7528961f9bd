/* SPDX-License-Identifier: Apache-2.0 */
#include "storage.h"

#include "device.h"
#include "runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A value that stands out in a debugger and is a NaN as any float. */
enum { POISON_BYTE = 0xff };

static void init(struct hob_storage *storage, hob_device *base, uint64_t bytes,
                 uint32_t flags)
{
    atomic_init(&storage->refs, 1);
    atomic_init(&storage->flags, flags);
    storage->base = base;
    storage->bytes = bytes;
    storage->stamp = 0;
    storage->range = 0;
}

hob_status hob__storage_alloc(struct hob_storage *storage, hob_device *base,
                              uint64_t bytes, void *small)
{
    const struct hob_backend *backend = base->backend;

    if (small && bytes <= HOB__SMALL_BYTES &&
        (backend->flags & HOB_BACKEND_HOST_MEMORY)) {
        init(storage, base, bytes, HOB__STORAGE_POOL | HOB__STORAGE_SMALL);
        storage->data = small;
        return HOB_OK;
    }
    init(storage, base, bytes, HOB__STORAGE_POOL);
    return backend->alloc(base->instance, bytes, &storage->data);
}

/* More than the driver gives at a time is no matter of what is in use. */
const char *hob__storage_refusal(const hob_device *base, const char *what,
                                 uint64_t bytes, char out[HOB__REFUSAL_TEXT])
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;

    if (base->backend->memory_stats)
        base->backend->memory_stats(base->instance, &stats);
    if (stats.block_most && bytes > stats.block_most)
        snprintf(out, HOB__REFUSAL_TEXT,
                 "%s has %" PRIu64 " bytes, and the driver of %s gives at most "
                 "%" PRIu64 " at a time: split it, or use smaller batches",
                 what, bytes, base->name, stats.block_most);
    else
        snprintf(out, HOB__REFUSAL_TEXT,
                 "no memory on %s for %s (%" PRIu64
                 " bytes): close scopes that hold tensors, or use smaller "
                 "batches",
                 base->name, what, bytes);
    return out;
}

void hob__storage_wrap(struct hob_storage *storage, hob_device *base,
                       void *data, uint64_t bytes, uint32_t flags,
                       void (*deleter)(void *context), void *context)
{
    init(storage, base, bytes, flags);
    storage->data = data;
    storage->deleter = deleter;
    storage->context = context;
}

static void poison(const struct hob_storage *storage)
{
    if (storage->base->runtime->debug &&
        (storage->base->backend->flags & HOB_BACKEND_HOST_MEMORY) &&
        storage->bytes)
        memset(storage->data, POISON_BYTE, storage->bytes);
}

void hob__storage_end(struct hob_storage *storage)
{
    const hob_device *base = storage->base;
    uint32_t flags =
        atomic_load_explicit(&storage->flags, memory_order_relaxed);

    if (flags & HOB__STORAGE_SMALL)
        return;
    if (flags & HOB__STORAGE_POOL) {
        poison(storage);
        base->backend->free(base->instance, storage->data, storage->bytes);
    } else if (storage->deleter) {
        storage->deleter(storage->context);
    }
}

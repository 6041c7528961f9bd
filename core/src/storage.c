/* SPDX-License-Identifier: Apache-2.0 */
#include "storage.h"

#include "device.h"
#include "runtime.h"

#include <string.h>

/* A value that stands out in a debugger and is a NaN as any float. */
enum { POISON_BYTE = 0xff };

static struct hob_storage *storage_struct(hob_device *base, uint64_t bytes,
                                          uint32_t flags)
{
    struct hob_storage *storage = hob__slab_take(&base->runtime->storages);

    if (!storage)
        return NULL;
    atomic_init(&storage->refs, 1);
    atomic_init(&storage->flags, flags);
    storage->base = base;
    storage->data = NULL;
    storage->bytes = bytes;
    storage->deleter = NULL;
    storage->context = NULL;
    return storage;
}

hob_status hob__storage_new(hob_device *base, uint64_t bytes,
                            struct hob_storage **out_storage)
{
    struct hob_storage *storage =
        storage_struct(base, bytes, HOB__STORAGE_POOL);
    hob_status status = HOB_ERR_MEMORY;

    *out_storage = NULL;
    if (storage)
        status = base->backend->alloc(base->instance, bytes, &storage->data);
    if (status) {
        if (storage)
            hob__slab_give(&base->runtime->storages, storage);
        return status;
    }
    *out_storage = storage;
    return HOB_OK;
}

hob_status hob__storage_wrap(hob_device *base, void *data, uint64_t bytes,
                             uint32_t flags, void (*deleter)(void *context),
                             void *context, struct hob_storage **out_storage)
{
    struct hob_storage *storage = storage_struct(base, bytes, flags);

    *out_storage = storage;
    if (!storage)
        return HOB_ERR_MEMORY;
    storage->data = data;
    storage->deleter = deleter;
    storage->context = context;
    return HOB_OK;
}

void hob__storage_ref(struct hob_storage *storage)
{
    if (storage)
        atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
}

static void poison(const struct hob_storage *storage)
{
    const struct hob_backend *backend = storage->base->backend;

    if (storage->base->runtime->debug &&
        (backend->flags & HOB_BACKEND_HOST_MEMORY) && storage->bytes)
        memset(storage->data, POISON_BYTE, storage->bytes);
}

void hob__storage_unref(struct hob_storage *storage)
{
    hob_device *base;

    if (!storage || !hob__refs_drop(&storage->refs))
        return;
    base = storage->base;
    if (atomic_load(&storage->flags) & HOB__STORAGE_POOL) {
        poison(storage);
        base->backend->free(base->instance, storage->data, storage->bytes);
    } else if (storage->deleter) {
        storage->deleter(storage->context);
    }
    hob__slab_give(&base->runtime->storages, storage);
}

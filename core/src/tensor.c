/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor.h"

#include "device.h"
#include "dispatch.h"
#include "error.h"
#include "infer/util.h"
#include "lazy.h"
#include "recording.h"
#include "view.h"

#include <hob/ext/quant.h>
#include <hob/tensor.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ---- */

static char *copy_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

struct hob__failure *hob__failure_new(hob_status status, const char *op,
                                      uint64_t call, const char *message)
{
    struct hob__failure *failure = calloc(1, sizeof(*failure));

    if (!failure)
        return NULL;
    atomic_init(&failure->refs, 1);
    failure->status = status;
    failure->call = call;
    failure->op = copy_text(op);
    failure->message = copy_text(message ? message : "");
    if ((op && !failure->op) || !failure->message) {
        hob__failure_unref(failure);
        return NULL;
    }
    return failure;
}

void hob__failure_ref(struct hob__failure *failure)
{
    atomic_fetch_add(&failure->refs, 1);
}

void hob__failure_unref(struct hob__failure *failure)
{
    if (!failure || atomic_fetch_sub(&failure->refs, 1) != 1)
        return;
    free(failure->op);
    free(failure->message);
    free(failure);
}

/* ---- metadata ---- */

hob_status hob__meta_bytes(const struct hob_meta *meta, uint64_t *out_bytes)
{
    struct hob_quant_layout layout;
    int64_t count = 1;
    int64_t bytes;

    for (uint32_t i = 0; i < meta->rank; i++)
        if (meta->shape[i] < 0)
            return HOB_ERR_SHAPE;
        else if (meta->shape[i] == 0)
            count = 0; /* whatever the other sizes are */
    if (meta->dtype == HOB_DTYPE_QUANT) {
        if (!hob_quant_layout_of(meta->scheme, meta->rank, meta->shape,
                                 &layout))
            return HOB_ERR_SHAPE;
        *out_bytes = (uint64_t)layout.bytes;
        return HOB_OK;
    }
    for (uint32_t i = 0; count && i < meta->rank; i++)
        if (__builtin_mul_overflow(count, meta->shape[i], &count))
            return HOB_ERR_SHAPE;
    if (__builtin_mul_overflow(count, (int64_t)hob_dtype_size(meta->dtype),
                               &bytes))
        return HOB_ERR_SHAPE;
    *out_bytes = (uint64_t)bytes;
    return HOB_OK;
}

int hob__meta_is_sound(const struct hob_meta *meta)
{
    return meta->rank <= HOB_MAX_RANK && (hob_dtype_size(meta->dtype) > 0 ||
                                          (meta->dtype == HOB_DTYPE_QUANT &&
                                           hob_quant_is_sound(meta->scheme)));
}

int hob__tensor_has_state(const hob_tensor *tensor)
{
    for (int32_t k = 0; k < tensor->device->depth; k++)
        if (hob__tensor_state(tensor, k + 1) &&
            !tensor->device->at[k + 1]->decorator->settle)
            return 1;
    return 0;
}

struct hob_meta hob__tensor_meta(const hob_tensor *tensor)
{
    struct hob_meta meta;

    memset(&meta, 0, sizeof(meta));
    meta.dtype = tensor->view.dtype;
    meta.rank = tensor->view.rank;
    meta.scheme = tensor->view.scheme;
    memcpy(meta.shape, tensor->view.shape, meta.rank * sizeof(int64_t));
    return meta;
}

char *hob__meta_text(const struct hob_meta *meta, char *text, size_t size)
{
    snprintf(text, size, "%s", hob__infer_meta_text(meta).text);
    return text;
}

/* ---- handles ---- */

/* Let TENSOR be a handle on DEVICE with one reference, no owner, neither
 * elements nor state. */
static inline void handle_init(hob_tensor *tensor, hob_device *device)
{
    atomic_init(&tensor->refs, 1);
    atomic_init(&tensor->flags, 0);
    atomic_init(&tensor->lazy, 0);
    atomic_init(&tensor->levels, 0);
    tensor->device = device;
    atomic_init(&tensor->form, 0);
    atomic_init(&tensor->owner, NULL);
    atomic_init(&tensor->owner_index, 0);
    atomic_init(&tensor->parts, 1);
    tensor->failure = NULL;
    tensor->view.data = NULL;
    tensor->view.storage = NULL;
    tensor->view.scheme = 0;
}

static inline hob_tensor *handle_new(hob_device *device)
{
    hob_tensor *tensor = hob__slab_take(&device->runtime->tensors);

    if (tensor)
        handle_init(tensor, device);
    return tensor;
}

/* Where the latest of some handles that end together went. */
struct way_back {
    struct hob__slab *slab; /* NULL: none did yet */
    struct hob__slab_lane *lane;
};

static inline void handle_free_to(struct way_back *way, hob_tensor *tensor)
{
    struct hob__slab *slab;

    if (!tensor->device) {
        free(tensor);
        return;
    }
    slab = &tensor->device->runtime->tensors;
    if (slab != way->slab) {
        way->slab = slab;
        way->lane = hob__slab_lane(slab);
    }
    hob__slab_give_to(slab, way->lane, tensor);
}

static void handle_free(hob_tensor *tensor)
{
    struct way_back way = {NULL, NULL};

    handle_free_to(&way, tensor);
}

static inline hob_tensor *blank(hob_device *device, const struct hob_meta *meta)
{
    hob_tensor *tensor = handle_new(device);
    const uint32_t rank = meta->rank;
    int64_t stride = 1;

    if (!tensor)
        return NULL;
    tensor->view.dtype = meta->dtype;
    tensor->view.rank = meta->rank;
    tensor->view.scheme = meta->scheme;
    tensor->view.flags = HOB_VIEW_CONTIGUOUS | HOB_VIEW_INJECTIVE;
    for (uint32_t i = rank; i--;) {
        tensor->view.shape[i] = meta->shape[i];
        tensor->view.strides[i] = stride;
        /* Unsigned: beside a size of 0 the others may be anything. */
        stride = (int64_t)((uint64_t)stride * (uint64_t)meta->shape[i]);
    }
    return tensor;
}

hob_tensor *hob__tensor_blank(hob_device *device, const struct hob_meta *meta)
{
    return blank(device, meta);
}

hob_tensor *hob__tensor_waiting(hob_device *device, const struct hob_meta *meta,
                                int32_t level, void *state)
{
    hob_tensor *tensor = blank(device, meta);

    if (!tensor)
        return NULL;
    /* It is to get its elements, and words of any level with them. */
    for (int32_t k = 1; k <= device->depth; k++)
        tensor->state[k - 1] = k == level ? state : NULL;
    atomic_init(&tensor->levels, (1u << device->depth) - 1);
    atomic_init(&tensor->lazy, (uint32_t)level);
    return tensor;
}

/* TENSOR's own storage has a reference now: it is a second part. */
static void own_begins(hob_tensor *tensor)
{
    atomic_store_explicit(&tensor->parts, 2, memory_order_relaxed);
    tensor->view.storage = &tensor->own;
    tensor->view.data = tensor->own.data;
}

static void part_ends(hob_tensor *tensor)
{
    if (hob__refs_drop(&tensor->parts))
        handle_free(tensor);
}

hob_status hob__tensor_alloc(hob_device *device, const struct hob_meta *meta,
                             uint64_t bytes, hob_tensor **out_tensor)
{
    hob_tensor *tensor = blank(device, meta);
    hob_status status;

    *out_tensor = NULL;
    if (!tensor)
        return HOB_ERR_MEMORY;
    if (bytes) {
        /* Where the slab is plain, to find errors, each block is its own. */
        status = hob__storage_alloc(
            &tensor->own, device->at[0], bytes,
            device->runtime->tensors.plain ? NULL : tensor->small);
        if (status) {
            handle_free(tensor);
            return status;
        }
        if (hob__recording_here(device->runtime))
            atomic_fetch_or_explicit(&tensor->own.flags, HOB__STORAGE_RECORDED,
                                     memory_order_relaxed);
        own_begins(tensor);
    }
    *out_tensor = tensor;
    return HOB_OK;
}

void hob__tensor_wrap(hob_tensor *tensor, void *data, uint64_t bytes,
                      uint32_t flags, void (*deleter)(void *context),
                      void *context)
{
    hob__storage_wrap(&tensor->own, tensor->device->at[0], data, bytes, flags,
                      deleter, context);
    own_begins(tensor);
}

/* TENSOR carries SOURCE's state word of LEVEL too, if there is one. */
static void *retain_state(hob_tensor *tensor, const hob_tensor *source,
                          int32_t level)
{
    const hob_device *layer = source->device->at[level];
    void *state = hob__tensor_state(source, level);

    if (state && layer->decorator->state_retain)
        state = layer->decorator->state_retain(layer->instance, state);
    if (state)
        hob__tensor_set_state(tensor, level, state);
    return state;
}

/* TENSOR carries the words of SOURCE from level FIRST to LAST. Where a layer
 * has filled a handle its word says nothing more. */
static void retain_states(hob_tensor *tensor, const hob_tensor *source,
                          int32_t first, int32_t last)
{
    for (int32_t k = first; k <= last; k++)
        if (!source->device->at[k]->decorator->settle)
            (void)retain_state(tensor, source, k);
}

/* TENSOR is to get its elements, and words of any level with them. */
static void await_states(hob_tensor *tensor)
{
    const uint32_t levels = hob__tensor_levels(tensor);
    const int32_t depth = tensor->device->depth;

    for (int32_t k = 1; k <= depth; k++)
        if (!(levels >> (k - 1) & 1))
            tensor->state[k - 1] = NULL;
    (void)atomic_fetch_or_explicit(&tensor->levels, (1u << depth) - 1,
                                   memory_order_release);
}

hob_tensor *hob__tensor_share(hob_tensor *source, hob_device *device,
                              int32_t levels)
{
    hob_tensor *tensor;
    int32_t lazy = hob__tensor_lazy(source);

    if (lazy) { /* all else may be written just now */
        struct hob_meta meta = hob__tensor_meta(source);

        tensor = hob__tensor_blank(device, &meta);
    } else {
        tensor = handle_new(device);
    }
    if (!tensor)
        return NULL;
    if (!lazy)
        tensor->view = source->view;
    hob__tensor_set_form(
        tensor, atomic_load_explicit(&source->form, memory_order_relaxed));
    atomic_store_explicit(&tensor->lazy,
                          (uint32_t)hob__tensor_take(tensor, source, levels),
                          memory_order_relaxed);
    return tensor;
}

int32_t hob__tensor_take(hob_tensor *tensor, hob_tensor *source, int32_t levels)
{
    int32_t lazy;

    /* A word that its layer no longer gives is one of a handle that has been
     * filled meanwhile. */
    do
        lazy = hob__tensor_lazy(source);
    while (lazy && !retain_state(tensor, source, lazy));
    retain_states(tensor, source, lazy + 1, levels);
    if (lazy) {
        await_states(tensor);
        return lazy;
    }
    if (source->flags & HOB__TENSOR_ERROR) {
        if (source->failure)
            hob__failure_ref(source->failure);
        tensor->failure = source->failure;
        atomic_fetch_or(&tensor->flags, HOB__TENSOR_ERROR);
        return 0;
    }
    hob__storage_ref(source->view.storage);
    tensor->view.data = source->view.data;
    tensor->view.storage = source->view.storage;
    tensor->view.flags = source->view.flags;
    memcpy(tensor->view.strides, source->view.strides,
           sizeof(tensor->view.strides));
    return 0;
}

hob_tensor *hob__tensor_error(struct hob__failure *failure)
{
    /* It has no device and comes from the system: it is rare, and must not
     * count as something that the program still holds. */
    hob_tensor *tensor = aligned_alloc(alignof(hob_tensor), sizeof(*tensor));

    if (!tensor)
        return NULL;
    handle_init(tensor, NULL);
    hob__failure_ref(failure);
    tensor->failure = failure;
    hob__tensor_flag(tensor, HOB__TENSOR_ERROR);
    tensor->view.dtype = HOB_DTYPE_NONE;
    tensor->view.rank = 0;
    tensor->view.flags = 0;
    return tensor;
}

void hob__tensor_ref(hob_tensor *tensor)
{
    atomic_fetch_add_explicit(&tensor->refs, 1, memory_order_relaxed);
}

/* State words of one layer that are to be given back. */
struct words {
    const hob_device *layer; /* NULL: there are none */
    uint32_t count;
    void *words[HOB__ENDS];
};

static void give_words(struct words *words)
{
    const struct hob_decorator *decorator;

    if (!words->layer)
        return;
    decorator = words->layer->decorator;
    if (hob__lazy_check_fork(words->layer->runtime, NULL))
        words->count = 0; /* of which a layer hears nothing */
    else if (decorator->states_release)
        decorator->states_release(words->layer->instance, words->words,
                                  words->count);
    for (uint32_t i = 0; !decorator->states_release && i < words->count; i++)
        decorator->state_release(words->layer->instance, words->words[i]);
    words->layer = NULL;
}

static inline void take_words(struct words *words, hob_tensor *tensor)
{
    const hob_device *device = tensor->device;
    const uint32_t levels = hob__tensor_levels(tensor);

    if (!levels)
        return;
    for (int32_t k = device->depth; k > 0; k--) {
        void *state = levels >> (k - 1) & 1 ? tensor->state[k - 1] : NULL;

        if (!state)
            continue;
        tensor->state[k - 1] = NULL;
        if (words->layer != device->at[k] || words->count == HOB__ENDS) {
            give_words(words);
            words->layer = device->at[k];
            words->count = 0;
        }
        words->words[words->count++] = state;
    }
}

static void storage_unref(struct hob_storage *storage)
{
    if (!storage || !hob__refs_drop(&storage->refs))
        return;
    hob__storage_end(storage);
    part_ends(
        (hob_tensor *)(void *)((char *)storage - offsetof(hob_tensor, own)));
}

/* What is left of TENSOR, of which nobody has a reference. */
static inline void handle_ends(struct way_back *way, hob_tensor *tensor)
{
    if (tensor->flags & HOB__TENSOR_ERROR)
        hob__failure_unref(tensor->failure);
    if (tensor->view.storage == &tensor->own &&
        atomic_load_explicit(&tensor->own.refs, memory_order_acquire) == 1) {
        /* The common case, both parts at once: nobody else knows of them. */
        hob__storage_end(&tensor->own);
        handle_free_to(way, tensor);
        return;
    }
    storage_unref(tensor->view.storage);
    if (hob__refs_drop(&tensor->parts))
        handle_free_to(way, tensor);
}

void hob__tensor_unref(hob_tensor *tensor)
{
    struct way_back way = {NULL, NULL};
    struct words words;

    if (!tensor || !hob__refs_drop(&tensor->refs))
        return;
    words.layer = NULL;
    take_words(&words, tensor);
    give_words(&words);
    handle_ends(&way, tensor);
}

void hob__tensors_end(hob_tensor *const *tensors, uint32_t count)
{
    struct way_back way = {NULL, NULL};
    struct words words;

    words.layer = NULL;
    for (uint32_t i = 0; i < count; i++)
        take_words(&words, tensors[i]);
    /* A layer may look at a handle until it has its word again. */
    give_words(&words);
    for (uint32_t i = 0; i < count; i++)
        handle_ends(&way, tensors[i]);
}

void hob__tensor_bury(hob_tensor *tensor, uint32_t op, uint64_t call)
{
    struct hob_storage *storage = tensor->view.storage;
    struct words words;

    words.layer = NULL;
    take_words(&words, tensor);
    give_words(&words);
    tensor->view.storage = NULL;
    tensor->view.data = NULL;
    atomic_store_explicit(&tensor->lazy, 0, memory_order_relaxed);
    atomic_store_explicit(&tensor->flags, HOB__TENSOR_MOVED,
                          memory_order_relaxed);
    tensor->moved_op = op;
    tensor->moved_call = call;
    storage_unref(storage);
}

/* ---- for io ---- */

hob_status hob__tensor_upload(hob_tensor *tensor, const void *data,
                              uint64_t bytes, hob_error *error)
{
    const hob_device *base = tensor->device->at[0];
    hob_status status = HOB_OK;

    if (bytes)
        status = base->backend->upload(base->instance, tensor->view.data, data,
                                       bytes);
    if (status)
        return hob_error_set(error, status,
                             "copying %" PRIu64 " bytes to %s failed", bytes,
                             base->name);
    return HOB_OK;
}

hob_status hob__tensor_download(hob_tensor *tensor, void *data, uint64_t bytes,
                                hob_error *error)
{
    hob_tensor *source = NULL;
    const hob_device *base;
    uint64_t want;
    struct hob_meta meta;
    hob_status status = hob__tensor_settle(tensor, 0, error);

    if (!status)
        status = hob__tensor_check(tensor, error);
    if (status)
        return status;
    meta = hob__tensor_meta(tensor);
    status = hob__meta_bytes(&meta, &want);
    if (status || want != bytes)
        return hob_error_set(error, HOB_ERR_ARGUMENT,
                             "reading needs a buffer of %" PRIu64
                             " bytes, not %" PRIu64,
                             want, bytes);
    if (!bytes)
        return HOB_OK;
    base = tensor->device->at[0];
    status = hob__contiguous(tensor, &source, error);
    if (status)
        return status;
    if (base->backend->sync)
        status = base->backend->sync(base->instance);
    if (!status)
        status = base->backend->download(base->instance, data,
                                         source->view.data, bytes);
    hob__tensor_unref(source);
    if (status)
        return hob_error_set(error, status,
                             "copying %" PRIu64 " bytes from %s failed", bytes,
                             base->name);
    return HOB_OK;
}

static const char *moved_name(const hob_tensor *tensor)
{
    const struct hob__registry *registry = &tensor->device->runtime->registry;

    return tensor->moved_op < registry->op_count
               ? registry->ops[tensor->moved_op].name
               : "a call";
}

hob_status hob__tensor_check(const hob_tensor *tensor, hob_error *error)
{
    const struct hob__failure *failure;

    if (tensor->flags & HOB__TENSOR_MOVED)
        return hob_error_set(error, HOB_ERR_STATE,
                             "the tensor was moved into %s, call %" PRIu64
                             ": its elements are gone; take the hob_move() "
                             "away there, or use the result",
                             moved_name(tensor), tensor->moved_call);
    if (!(tensor->flags & HOB__TENSOR_ERROR))
        return HOB_OK;
    failure = tensor->failure; /* after the flag: another thread may fill it */
    if (!failure)
        return hob_error_set(error, HOB_ERR_MEMORY, "out of memory");
    if (!failure->op)
        return hob_error_set(error, failure->status, "%s", failure->message);
    return hob_error_set(error, failure->status, "%s (call %" PRIu64 "): %s",
                         failure->op, failure->call, failure->message);
}

/* ---- public ---- */

hob_device *hob_tensor_device(const hob_tensor *tensor)
{
    return tensor->flags & HOB__TENSOR_ERROR ? NULL : tensor->device;
}

hob_status hob_tensor_status(const hob_tensor *tensor, hob_error *error)
{
    return hob__tensor_check(tensor, error);
}

void hob_tensor_ref(hob_tensor *tensor)
{
    hob__tensor_ref(tensor);
}

void hob_tensor_unref(hob_tensor *tensor)
{
    hob__tensor_unref(tensor);
}

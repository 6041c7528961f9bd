/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.h - the handle.
 *
 * One handle is a view of a storage, the device whose stack it carries, and
 * one opaque state word a decorator level. It is counted; scopes hold
 * references. A handle is in one of three conditions:
 *
 *   live    it has elements (a storage, unless it is empty), or waits for
 *           them: see lazy.h
 *   error   HOB__TENSOR_ERROR: it carries the first cause
 *   moved   HOB__TENSOR_MOVED: a tombstone that says which call took it
 *
 * Elements that are made come with a handle, so their storage is a part of
 * it, and small elements themselves are: one object, taken and given back
 * once. Views may keep that storage when the handle has ended, and it may end
 * before the handle, which is a tombstone then: the object goes back when both
 * parts have ended.
 */
#ifndef HOB__TENSOR_H
#define HOB__TENSOR_H

#include "storage.h"

#include <hob/ext/plugin.h>

#include <stdalign.h>

enum hob__tensor_flags {
    HOB__TENSOR_ERROR = 1,
    HOB__TENSOR_MOVED = 2,
    HOB__TENSOR_LAST_USE = 4, /* hob_move() was called, no op took it yet */
    HOB__TENSOR_TAKEN = 8     /* moved in a list: the running call buries it */
};

/* A failure, shared by a scope and the error tensors that came of it. */
struct hob__failure {
    atomic_uint refs;
    hob_status status;
    uint64_t call; /* index in its scope, from 1; 0 outside an op */
    char *op;      /* NULL outside an op */
    char *message;
};

/* In the order of use, for the lines of the cache that a call touches. */
struct hob_tensor {
    struct hob_view view; /* first: kernels see only this */
    atomic_uint refs;
    atomic_uint flags; /* enum hob__tensor_flags */
    atomic_uint lazy;  /* the level that it waits for; see lazy.h */
    /* Bit k - 1: the state word of level k is set, or was, or may soon be. */
    atomic_uint levels;
    hob_device *device;         /* borrowed; NULL for an error tensor */
    atomic_uint_least64_t form; /* see form.h; 0: it was not asked for */
    /* The latest scope that owns it, and its place there: hints, as scopes of
     * several threads may own one tensor. Scopes compare, none follows. */
    hob_scope *_Atomic owner;
    atomic_uint owner_index;
    atomic_uint parts;            /* of this object that have not ended */
    struct hob_storage own;       /* what it was made with; unused in a view */
    struct hob__failure *failure; /* error tensors only */
    /* moved: the call's index; taken: the address of the call's state, as a
     * body may pass what its call takes to calls of its own */
    uint64_t moved_call;
    uint32_t moved_op; /* moved: the op's number */
    /* [k - 1] belongs to level k, up to the depth of the device. What is there
     * counts where LEVELS has its bit. */
    void *state[HOB_MAX_LEVELS];
    alignas(64) unsigned char small[HOB__SMALL_BYTES];
};

/*
 * A new handle on DEVICE with META's dtype and shape, row-major, without a
 * storage: the caller sets view.storage and view.data. One reference, no
 * owner. NULL without memory.
 */
hob_tensor *hob__tensor_blank(hob_device *device, const struct hob_meta *meta);

/* The same, but it waits for LEVEL, whose state word is STATE; see lazy.h. */
hob_tensor *hob__tensor_waiting(hob_device *device, const struct hob_meta *meta,
                                int32_t level, void *state);

/* As hob__tensor_blank(), with elements on DEVICE's base: BYTES of them, as
 * hob__meta_bytes() says. Fails with HOB_ERR_MEMORY. */
HOB_MUST_CHECK hob_status hob__tensor_alloc(hob_device *device,
                                            const struct hob_meta *meta,
                                            uint64_t bytes,
                                            hob_tensor **out_tensor);

/*
 * Let TENSOR, just made by hob__tensor_blank() and without elements, have
 * those of somebody else; see hob__storage_wrap(). It sets view.data to DATA.
 */
void hob__tensor_wrap(hob_tensor *tensor, void *data, uint64_t bytes,
                      uint32_t flags, void (*deleter)(void *context),
                      void *context);

/*
 * Another handle on TENSOR's elements, on DEVICE, with the state words of the
 * levels up to LEVELS. One reference, no owner. NULL without memory.
 */
hob_tensor *hob__tensor_share(hob_tensor *tensor, hob_device *device,
                              int32_t levels);

/* Give TENSOR, which waits and has SOURCE's metadata, SOURCE's elements and its
 * state words of the levels up to LEVELS. Returns what TENSOR waits for now. */
int32_t hob__tensor_take(hob_tensor *tensor, hob_tensor *source,
                         int32_t levels);

/* TENSOR, which is this thread's alone, has FORM. */
static inline void hob__tensor_set_form(hob_tensor *tensor, uint64_t form)
{
    atomic_store_explicit(&tensor->form, form, memory_order_relaxed);
}

/* Set FLAG of TENSOR, which is this thread's alone. */
static inline void hob__tensor_flag(hob_tensor *tensor, uint32_t flag)
{
    atomic_store_explicit(
        &tensor->flags,
        atomic_load_explicit(&tensor->flags, memory_order_relaxed) | flag,
        memory_order_relaxed);
}

/* A handle that carries FAILURE, of which it takes a reference. */
hob_tensor *hob__tensor_error(struct hob__failure *failure);

void hob__tensor_ref(hob_tensor *tensor);
void hob__tensor_unref(hob_tensor *tensor); /* accepts NULL */

/* TENSORS, COUNT of HOB__ENDS at most, end: the caller had the last reference
 * to each. Layers hear of them together. */
enum { HOB__ENDS = 32 };
void hob__tensors_end(hob_tensor *const *tensors, uint32_t count);

/* Give up TENSOR's elements: from now on it is a tombstone. */
void hob__tensor_bury(hob_tensor *tensor, uint32_t op, uint64_t call);

/* Fill a contiguous TENSOR from host memory; BYTES must be its size. */
HOB_MUST_CHECK hob_status hob__tensor_upload(hob_tensor *tensor,
                                             const void *data, uint64_t bytes,
                                             hob_error *error);

/* Copy TENSOR's elements, row-major, to host memory. Waits. */
HOB_MUST_CHECK hob_status hob__tensor_download(hob_tensor *tensor, void *data,
                                               uint64_t bytes,
                                               hob_error *error);

/* HOB_OK if TENSOR is live, else what is the matter with it. */
HOB_MUST_CHECK hob_status hob__tensor_check(const hob_tensor *tensor,
                                            hob_error *error);

/* Nonzero if META's rank and dtype are such as a tensor can have; what comes
 * from a plugin is asked before anything else reads it. */
int hob__meta_is_sound(const struct hob_meta *meta);

/* The bytes of META's elements. Fails with HOB_ERR_SHAPE on overflow. */
HOB_MUST_CHECK hob_status hob__meta_bytes(const struct hob_meta *meta,
                                          uint64_t *out_bytes);

/* Whether a decorator knows more of TENSOR than its elements: a history, work
 * that is still to do. */
int hob__tensor_has_state(const hob_tensor *tensor);

/* The levels of which TENSOR may carry a state word, as bits from 0. */
static inline uint32_t hob__tensor_levels(const hob_tensor *tensor)
{
    return atomic_load_explicit(&tensor->levels, memory_order_acquire);
}

/* TENSOR's state word of LEVEL, from 1. A tensor of a shorter stack is a
 * constant to the layers above it, and so is an error tensor. */
static inline void *hob__tensor_state(const hob_tensor *tensor, int32_t level)
{
    /* A decorator may be giving it its word just now. */
    return hob__tensor_levels(tensor) >> (level - 1) & 1
               ? __atomic_load_n(&tensor->state[level - 1], __ATOMIC_ACQUIRE)
               : NULL;
}

/* Set it; the old one is not released. */
static inline void hob__tensor_set_state(hob_tensor *tensor, int32_t level,
                                         void *state)
{
    const unsigned bit = 1u << (level - 1);

    __atomic_store_n(&tensor->state[level - 1], state, __ATOMIC_RELEASE);
    if (!(atomic_load_explicit(&tensor->levels, memory_order_relaxed) & bit))
        (void)atomic_fetch_or_explicit(&tensor->levels, bit,
                                       memory_order_release);
}

/* META of a live tensor. */
struct hob_meta hob__tensor_meta(const hob_tensor *tensor);

/* Put "f32[2,3]" into TEXT of SIZE bytes and return TEXT. */
enum { HOB__META_TEXT = 200 };
char *hob__meta_text(const struct hob_meta *meta, char *text, size_t size);

struct hob__failure *hob__failure_new(hob_status status, const char *op,
                                      uint64_t call, const char *message);
void hob__failure_ref(struct hob__failure *failure);
void hob__failure_unref(struct hob__failure *failure); /* accepts NULL */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "known.h"

#include "base.h"
#include "boundary.h"
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

void hob__known_init(struct hob__known *known)
{
    known->slots = calloc(HOB__KNOWN_SLOTS, sizeof(*known->slots));
}

void hob__known_release(struct hob__known *known)
{
    free(known->slots);
    known->slots = NULL;
}

/* ---- keys ---- */

/* More are dearer to tell apart than to look into, and there is mostly one
 * among them that differs each time, as the step of Adam does. */
enum { MOST_ARGUMENTS = 8 };

/* A key in the making: a local variable, so that it stays in registers. */
struct maker {
    uint64_t *at, *end;
    uint64_t hash;
    uint32_t levels, last_use;
};

static inline void put(struct maker *maker, uint64_t word)
{
    *maker->at++ = word;
    maker->hash = (maker->hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline int has_room(const struct maker *maker, size_t words)
{
    return words <= (size_t)(maker->end - maker->at);
}

/* Neither strides nor flags: a handle that waits may get them just now. */
static inline int put_tensor(struct hob_call *call, struct maker *maker,
                             uint32_t index, const hob_tensor *tensor)
{
    const struct hob_view *view = &tensor->view;
    const uint32_t flags =
        atomic_load_explicit(&tensor->flags, memory_order_relaxed);
    const uint32_t rank = view->rank;

    if (flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED) ||
        !has_room(maker, 2 + rank))
        return 0;
    if (call->device != tensor->device) {
        if (call->device) /* they may have to be joined */
            return 0;
        call->device = tensor->device;
        call->core->device_param = (uint8_t)index;
        put(maker, (uint64_t)(uintptr_t)tensor->device);
    }
    maker->last_use |= flags & HOB__TENSOR_LAST_USE;
    maker->levels |= hob__tensor_levels(tensor);
    put(maker, HOB_TAG_TENSOR | (uint64_t)view->dtype << 8 |
                   (uint64_t)rank << 16 | (uint64_t)view->scheme << 32);
    for (uint32_t i = 0; i < rank; i++)
        put(maker, (uint64_t)view->shape[i]);
    return 1;
}

static int put_bytes(struct maker *maker, const void *data, size_t size)
{
    if (!has_room(maker, (size + 7) / 8))
        return 0;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;

        memcpy(&word, (const char *)data + i, size - i < 8 ? size - i : 8);
        put(maker, word);
    }
    return 1;
}

/* All but single tensors. MAKER's place afterwards is NULL if it cannot be. */
static struct maker put_value(struct hob_call *call, struct maker maker,
                              uint32_t index)
{
    const hob_value *value = &call->args[index];
    int fits = has_room(&maker, 2);

    if (fits)
        put(&maker, value->tag | (uint64_t)value->count << 32);
    switch (fits ? value->tag : HOB_TAG_ABSENT) {
    case HOB_TAG_ABSENT:
        break;
    case HOB_TAG_TENSORS:
        for (uint32_t i = 0; i < value->count && fits; i++)
            fits = value->u.tensors[i] &&
                   put_tensor(call, &maker, index, value->u.tensors[i]);
        break;
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        fits = put_bytes(&maker, value->u.i64s, value->count * sizeof(int64_t));
        break;
    case HOB_TAG_STR:
        fits = put_bytes(&maker, value->u.str, value->count);
        break;
    default:
        put(&maker, value->u.u64); /* a double by its bits */
        break;
    }
    if (!fits)
        maker.at = NULL;
    return maker;
}

/* Whether what is known of CALL could be kept. */
static int is_simple(const struct hob_call *call)
{
    const struct hob__op *op = call->core->op;

    return call->arg_count <= MOST_ARGUMENTS &&
           !(op->flags & HOB__OP_DYNAMIC) && !call->plain_count &&
           !op->signature.results[0].is_list &&
           call->core->runtime->known.slots;
}

static int make_key(struct hob_call *call, struct hob__known_key *key)
{
    struct maker maker = {.at = key->words,
                          .end = key->words + HOB__KNOWN_WORDS};

    if (!is_simple(call))
        return 0;
    put(&maker, call->op);
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];

        if (value->tag == HOB_TAG_TENSOR) {
            maker.last_use |= value->flags & HOB_VALUE_MOVE;
            if (!put_tensor(call, &maker, i, value->u.tensor))
                return 0;
        } else {
            maker = put_value(call, maker, i);
            if (!maker.at)
                return 0;
        }
    }
    key->count = (uint32_t)(maker.at - key->words);
    key->hash = maker.hash;
    key->levels = maker.levels;
    key->last_use = maker.last_use;
    return call->device != NULL;
}

/* ---- reading ---- */

static inline uint64_t word_at(const struct hob__known_slot *slot,
                               uint32_t index)
{
    return atomic_load_explicit(&slot->words[index], memory_order_acquire);
}

static inline int is_at(const struct hob__known_slot *slot,
                        const struct hob__known_key *key)
{
    const uint32_t count = key->count;

    for (uint32_t i = 0; i < count; i++)
        if (word_at(slot, i) != key->words[i])
            return 0;
    return 1;
}

/* Take over what is kept in SLOT; 0 if it makes no sense, because it is being
 * written. */
static int take(const struct hob__known_slot *slot, uint32_t at,
                struct hob_call *call)
{
    struct hob_meta *metas = (struct hob_meta *)(uintptr_t)call->metas;

    if (at >= HOB__KNOWN_WORDS)
        return 0;
    call->core->served = (uint8_t)word_at(slot, at++);
    for (uint32_t i = 0; i < call->ret_count; i++) {
        uint64_t head;
        uint32_t rank;

        if (at >= HOB__KNOWN_WORDS)
            return 0;
        head = word_at(slot, at++);
        rank = head >> 8 & 0xff;
        if (rank > HOB_MAX_RANK || at + rank >= HOB__KNOWN_WORDS)
            return 0;
        metas[i].dtype = (uint8_t)head;
        metas[i].rank = (uint8_t)rank;
        metas[i].reserved0 = 0;
        metas[i].scheme = (uint32_t)(head >> 32);
        for (uint32_t k = 0; k < rank; k++)
            metas[i].shape[k] = (int64_t)word_at(slot, at++);
        call->core->bytes[i] = word_at(slot, at++);
    }
    return 1;
}

static int find(struct hob_call *call, struct hob__known_key *key)
{
    struct hob__known_slot *slots = call->core->runtime->known.slots;
    const uint64_t at = key->hash >> (64 - HOB__KNOWN_BITS);

    for (uint32_t i = 0; i < 2; i++) {
        struct hob__known_slot *slot = &slots[at ^ i];
        const uint64_t version =
            atomic_load_explicit(&slot->version, memory_order_acquire);

        if (!(version & 1) && is_at(slot, key) &&
            take(slot, key->count, call) &&
            atomic_load_explicit(&slot->version, memory_order_acquire) ==
                version) {
            key->slot = slot;
            return 1;
        }
        /* The one that is free, or else either. */
        if (!i || (key->slot->version && (!version || call->core->index & 1)))
            key->slot = slot;
    }
    return 0;
}

/* ---- writing ---- */

static enum hob__served ask_base(const struct hob_call *call)
{
    const struct hob__op *op = call->core->op;
    const struct hob__route *route = atomic_load_explicit(
        &call->device->at[0]->routes[op->id], memory_order_acquire);

    if (!route)
        return HOB__SERVED_UNASKED;
    return route->entry && hob__unknown_argument(call, route) < 0 &&
                   hob__entry_serves(call, route->entry)
               ? HOB__SERVED
               : HOB__SERVED_NOT;
}

/* Put what is kept of CALL behind its key. Returns how many words there are
 * then; 0 if there is no room. */
static uint32_t put_results(const struct hob_call *call,
                            struct hob__known_key *key)
{
    struct maker maker = {.at = key->words + key->count,
                          .end = key->words + HOB__KNOWN_WORDS};

    if (!has_room(&maker, 1))
        return 0;
    put(&maker, (uint64_t)ask_base(call));
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob_meta *meta = &call->metas[i];

        if (!has_room(&maker, 2 + meta->rank))
            return 0;
        put(&maker, meta->dtype | (uint64_t)meta->rank << 8 |
                        (uint64_t)meta->scheme << 32);
        for (uint32_t k = 0; k < meta->rank; k++)
            put(&maker, (uint64_t)meta->shape[k]);
        put(&maker, call->core->bytes[i]);
    }
    return (uint32_t)(maker.at - key->words);
}

void hob__known_keep(const struct hob_call *call, struct hob__known_key *key)
{
    struct hob__known_slot *slot = key->slot;
    const uint32_t count = key->count ? put_results(call, key) : 0;
    uint64_t version;

    if (!count)
        return;
    version = atomic_load_explicit(&slot->version, memory_order_relaxed);
    if (version & 1 || !atomic_compare_exchange_strong_explicit(
                           &slot->version, &version, version + 1,
                           memory_order_acq_rel, memory_order_relaxed))
        return;
    for (uint32_t i = 0; i < count; i++)
        atomic_store_explicit(&slot->words[i], key->words[i],
                              memory_order_release);
    atomic_store_explicit(&slot->version, version + 2, memory_order_release);
}

/* ---- the way in ---- */

int hob__known_find(struct hob_call *call, struct hob__known_key *out_key)
{
    if (make_key(call, out_key)) {
        if (find(call, out_key)) {
            call->core->levels = out_key->levels;
            if (call->core->served == HOB__SERVED_UNASKED &&
                ask_base(call) != HOB__SERVED_UNASKED)
                hob__known_keep(call, out_key);
            if (out_key->last_use)
                hob__settle_moves(call);
            return 1;
        }
    } else {
        out_key->count = 0;
    }
    call->device = NULL;
    call->core->device_param = 0;
    call->core->served = HOB__SERVED_UNASKED;
    return 0;
}

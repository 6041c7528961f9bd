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
    atomic_init(&known->number, 0);
}

void hob__known_release(struct hob__known *known)
{
    free(known->slots);
    known->slots = NULL;
}

/* Lock SLOT for writing; 0 if another thread has. *OUT_VERSION is for
 * let_go(). */
static int lock(struct hob__known_slot *slot, uint64_t *out_version)
{
    uint64_t version =
        atomic_load_explicit(&slot->version, memory_order_relaxed);

    *out_version = version;
    return !(version & 1) && atomic_compare_exchange_strong_explicit(
                                 &slot->version, &version, version + 1,
                                 memory_order_acq_rel, memory_order_relaxed);
}

static void let_go(struct hob__known_slot *slot, uint64_t version)
{
    atomic_store_explicit(&slot->version, version + 2, memory_order_release);
}

void hob__known_forget(struct hob__known *known)
{
    uint64_t version;

    for (uint32_t i = 0; known->slots && i < HOB__KNOWN_SLOTS; i++) {
        struct hob__known_slot *slot = &known->slots[i];

        while (!lock(slot, &version))
            ;
        /* No op has the number 0. */
        atomic_store_explicit(&slot->words[0], 0, memory_order_release);
        let_go(slot, version);
    }
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
    return maker->at + words <= maker->end;
}

/* What begins the words of a tensor and of no other value: dtype and rank in
 * whatever order they lie, a bit that tags leave free, and the scheme. */
static inline uint64_t head_of(const struct hob_view *view)
{
    uint16_t dtype_rank;

    _Static_assert(offsetof(struct hob_view, rank) ==
                       offsetof(struct hob_view, dtype) + 1,
                   "dtype and rank are read as one");
    memcpy(&dtype_rank, &view->dtype, sizeof(dtype_rank));
    return dtype_rank | UINT64_C(1) << 16 | (uint64_t)view->scheme << 32;
}

/* Neither strides nor flags: a handle that waits may get them just now. */
static inline int put_tensor(struct hob_call *call, struct maker *maker,
                             uint32_t index, const hob_tensor *tensor)
{
    const struct hob_view *view;
    uint32_t flags, rank;

    if (!tensor)
        return 0;
    view = &tensor->view;
    flags = atomic_load_explicit(&tensor->flags, memory_order_relaxed);
    rank = view->rank;
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
    put(maker, head_of(view));
    for (const int64_t *size = view->shape, *end = size + rank; size < end;)
        put(maker, (uint64_t)*size++);
    return 1;
}

static int put_bytes(struct maker *maker, const void *data, size_t size)
{
    if (!has_room(maker, (size + 7) / 8) || (size && !data))
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
                              uint32_t index, const hob_value *value)
{
    int fits = has_room(&maker, 2);

    if (fits)
        put(&maker, value->tag | (uint64_t)value->count << 32);
    switch (fits ? value->tag : HOB_TAG_ABSENT) {
    case HOB_TAG_ABSENT:
        break;
    case HOB_TAG_TENSORS:
        fits = value->u.tensors != NULL;
        for (uint32_t i = 0; i < value->count && fits; i++)
            fits = put_tensor(call, &maker, index, value->u.tensors[i]);
        break;
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        fits = put_bytes(&maker, value->u.i64s, value->count * sizeof(int64_t));
        break;
    case HOB_TAG_STR:
        fits = value->u.str && put_bytes(&maker, value->u.str, value->count);
        break;
    default:
        put(&maker, value->u.u64); /* a double by its bits */
        break;
    }
    if (!fits)
        maker.at = NULL;
    return maker;
}

static inline int make_key(struct hob_call *call, const hob_value *args,
                           uint32_t count, struct hob__known_key *key)
{
    struct maker maker = {.at = key->words,
                          .end = key->words + HOB__KNOWN_WORDS};

    if (!call->core->op->is_knowable || count > MOST_ARGUMENTS)
        return 0;
    put(&maker, call->op | (uint64_t)count << 32);
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].tag == HOB_TAG_TENSOR) {
            maker.last_use |= args[i].flags & HOB_VALUE_MOVE;
            if (!put_tensor(call, &maker, i, args[i].u.tensor))
                return 0;
        } else {
            maker = put_value(call, maker, i, &args[i]);
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

/* Of the word that comes first: enum hob__served, whether the arguments are
 * bound as they are given, and the number. */
enum { SERVED_BITS = 2, NUMBER_AT = 3 };

typedef const atomic_uint_least64_t *reader;

static inline uint64_t read_word(reader *at)
{
    return atomic_load_explicit((*at)++, memory_order_acquire);
}

/* Take over what is kept from AT on; 0 if it makes no sense, because it is
 * being written. */
static inline int take(reader at, reader end, struct hob_call *call,
                       struct hob__known_key *key)
{
    struct hob_meta *metas = (struct hob_meta *)(uintptr_t)call->metas;
    const uint32_t count = call->ret_count;
    uint64_t first;

    if (at + 1 + 2 * count > end)
        return 0;
    first = read_word(&at);
    call->core->served = first & ((1 << SERVED_BITS) - 1);
    key->is_bound = first >> SERVED_BITS & 1;
    call->core->kind = first >> NUMBER_AT;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t head = read_word(&at);
        const uint32_t rank = head >> 8 & 0xff;

        if (rank > HOB_MAX_RANK || at + rank + 1 + 2 * (count - 1 - i) > end)
            return 0;
        metas[i].dtype = (uint8_t)head;
        metas[i].rank = (uint8_t)rank;
        metas[i].reserved0 = 0;
        metas[i].scheme = (uint32_t)(head >> 32);
        for (uint32_t k = 0; k < rank; k++)
            metas[i].shape[k] = (int64_t)read_word(&at);
        call->core->bytes[i] = read_word(&at);
    }
    return 1;
}

/* Whether SLOT has KEY; then what it keeps is CALL's. */
static inline int take_from(const struct hob__known_slot *slot,
                            struct hob__known_key *key, struct hob_call *call)
{
    const uint64_t version =
        atomic_load_explicit(&slot->version, memory_order_acquire);
    const uint64_t *word = key->words, *end = word + key->count;
    reader at = slot->words;

    while (word < end && read_word(&at) == *word)
        word++;
    return word == end && !(version & 1) &&
           take(at, slot->words + HOB__KNOWN_WORDS, call, key) &&
           atomic_load_explicit(&slot->version, memory_order_acquire) ==
               version;
}

static inline int find(struct hob_call *call, struct hob__known_key *key)
{
    struct hob__known_slot *slots = call->core->runtime->known.slots;
    const uint64_t at = key->hash >> (64 - HOB__KNOWN_BITS);

    for (uint32_t i = 0; slots && i < 2; i++) {
        struct hob__known_slot *slot = &slots[at ^ i];

        if (take_from(slot, key, call)) {
            key->slot = slot;
            return 1;
        }
        /* It may have the one that is free, or else either. */
        if (!i ||
            (key->slot->version && (!slot->version || call->core->index & 1)))
            key->slot = slot;
    }
    return 0;
}

/* ---- writing ---- */

static enum hob__served ask_base(const struct hob_call *call)
{
    const struct hob__route *route = atomic_load_explicit(
        &call->device->at[0]->routes[call->op], memory_order_acquire);

    if (!route)
        return HOB__SERVED_UNASKED;
    return hob__kernel_serves(call, route, NULL) ? HOB__SERVED
                                                 : HOB__SERVED_NOT;
}

/* Whether the arguments of CALL are bound as they were given. */
static int is_as_given(const struct hob_call *call, const hob_value *args,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (call->args[i].tag != args[i].tag ||
            call->args[i].count != args[i].count ||
            call->args[i].u.u64 != args[i].u.u64)
            return 0;
    return count == call->arg_count;
}

/* Put what is kept of CALL behind its key. Returns how many words there are
 * then; 0 if there is no room. */
static uint32_t put_results(const struct hob_call *call, int is_bound,
                            struct hob__known_key *key)
{
    struct maker maker = {.at = key->words + key->count,
                          .end = key->words + HOB__KNOWN_WORDS};

    if (!has_room(&maker, 1))
        return 0;
    put(&maker, (uint64_t)ask_base(call) | (uint64_t)is_bound << SERVED_BITS |
                    call->core->kind << NUMBER_AT);
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

void hob__known_keep(struct hob_call *call, const hob_value *args,
                     uint32_t arg_count, struct hob__known_key *key)
{
    struct hob__known *known = &call->core->runtime->known;
    struct hob__known_slot *slot = key->slot;
    uint32_t count;
    uint64_t version;

    if (!key->count || !known->slots)
        return;
    if (!call->core->kind)
        call->core->kind = 1 + atomic_fetch_add_explicit(&known->number, 1,
                                                         memory_order_relaxed);
    count = put_results(call, is_as_given(call, args, arg_count), key);
    if (!count)
        return;
    if (!lock(slot, &version))
        return;
    for (uint32_t i = 0; i < count; i++)
        atomic_store_explicit(&slot->words[i], key->words[i],
                              memory_order_release);
    let_go(slot, version);
}

/* ---- the way in ---- */

int hob__known_find(struct hob_call *call, const hob_value *args,
                    uint32_t arg_count, struct hob__known_key *out_key)
{
    if (make_key(call, args, arg_count, out_key)) {
        if (find(call, out_key)) {
            call->core->levels = out_key->levels;
            return 1;
        }
    } else {
        out_key->count = 0;
    }
    call->device = NULL;
    call->core->device_param = 0;
    call->core->served = HOB__SERVED_UNASKED;
    call->core->kind = 0;
    return 0;
}

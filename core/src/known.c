/* SPDX-License-Identifier: Apache-2.0 */
#include "known.h"

#include "base.h"
#include "boundary.h"
#include "form.h"
#include "runtime.h"

#include <string.h>

/* ---- keys ---- */

/* More are dearer to tell apart than to look into, and there is mostly one
 * among them that differs each time, as the step of Adam does. */
enum { MOST_ARGUMENTS = 8 };

/* A key in the making, and what else its tensors say. */
struct maker {
    struct hob__known_maker key;
    hob_device *device; /* of all tensors; NULL: there was none yet */
    uint32_t levels, last_use;
    uint8_t device_param;
};

static inline void put(struct maker *maker, uint64_t word)
{
    hob__known_put(&maker->key, word);
}

static inline int has_room(const struct maker *maker, size_t words)
{
    return hob__known_has_room(&maker->key, words);
}

static inline int put_tensor(hob_runtime *runtime, struct maker *maker,
                             uint32_t index, hob_tensor *tensor)
{
    uint64_t form;
    uint32_t flags;

    if (!tensor)
        return 0;
    flags = atomic_load_explicit(&tensor->flags, memory_order_relaxed);
    if (flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED))
        return 0;
    if (!maker->device) {
        if (tensor->device->runtime != runtime) /* where forms are others */
            return 0;
        maker->device = tensor->device;
        maker->device_param = (uint8_t)index;
    } else if (maker->device != tensor->device) { /* to be joined */
        return 0;
    }
    maker->last_use |= flags & HOB__TENSOR_LAST_USE;
    maker->levels |= hob__tensor_levels(tensor);
    form = atomic_load_explicit(&tensor->form, memory_order_relaxed);
    put(maker, form ? form : hob__form_give(&runtime->known, tensor));
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

/* All but single tensors. Forms have a bit that tags leave free. MAKER's place
 * afterwards is NULL if it cannot be. */
static struct maker put_value(hob_runtime *runtime, struct maker maker,
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
            fits = has_room(&maker, 1) &&
                   put_tensor(runtime, &maker, index, value->u.tensors[i]);
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
        maker.key.at = NULL;
    return maker;
}

/* First the op and the device, which is found with the tensors. */
enum { ARGS_AT = 2 };

static inline int make_key(hob_runtime *runtime, const struct hob__op *op,
                           const hob_value *args, uint32_t count,
                           struct hob__known_call *out)
{
    /* There is always room for single tensors. */
    struct maker maker = {.key.at = out->words + ARGS_AT,
                          .key.end =
                              out->words + HOB__KNOWN_WORDS - MOST_ARGUMENTS};

    if (!op->is_knowable || count > MOST_ARGUMENTS || !runtime->known.slots)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].tag == HOB_TAG_TENSOR) {
            maker.last_use |= args[i].flags & HOB_VALUE_MOVE;
            if (!put_tensor(runtime, &maker, i, args[i].u.tensor))
                return 0;
        } else { /* by a copy, so that MAKER stays in registers */
            const struct maker more = put_value(runtime, maker, i, &args[i]);

            if (!more.key.at)
                return 0;
            maker = more;
        }
    }
    if (!maker.device)
        return 0;
    out->words[0] = op->id | (uint64_t)count << 32;
    out->words[1] = (uint64_t)(uintptr_t)maker.device;
    out->hash = hob__known_mix(maker.key.hash, out->words[0] ^ out->words[1]);
    out->count = (uint32_t)(maker.key.at - out->words);
    out->device = maker.device;
    out->device_param = maker.device_param;
    out->levels = maker.levels;
    out->last_use = maker.last_use;
    return 1;
}

/* ---- reading ---- */

/* Of the word that comes first: enum hob__served, whether the arguments are
 * bound as they are given, and the number. */
enum { SERVED_BITS = 2, NUMBER_AT = 3 };

/* What is kept of a result before its shape: what its metadata begins with,
 * form, bytes. Behind each begin there is room for any. */
enum { RESULT_WORDS = 3, RESULT_ROOM = RESULT_WORDS + HOB_MAX_RANK };

/* Take over what is kept from AT on, of COUNT results; 0 if it makes no sense,
 * because it is being written. */
static inline int take(hob__known_reader at, hob__known_reader end,
                       uint32_t count, struct hob__results *results,
                       struct hob__known_call *out)
{
    const uint64_t first = hob__known_read(&at);

    out->served = first & ((1 << SERVED_BITS) - 1);
    out->is_bound = first >> SERVED_BITS & 1;
    out->kind = first >> NUMBER_AT;
    for (uint32_t i = 0; i < count; i++) {
        struct hob_meta *meta = &results->metas[i];
        uint64_t head;

        if (at + RESULT_ROOM > end)
            return 0;
        head = hob__known_read(&at);
        memcpy(meta, &head, sizeof(head));
        if (meta->rank > HOB_MAX_RANK)
            return 0;
        results->expected[i].form = hob__known_read(&at);
        results->expected[i].bytes = hob__known_read(&at);
        for (uint32_t k = 0; k < meta->rank; k++)
            meta->shape[k] = (int64_t)hob__known_read(&at);
    }
    return 1;
}

static inline int find(const struct hob__known *known, uint32_t ret_count,
                       struct hob__results *results,
                       struct hob__known_call *out)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct hob__known_slot *slot =
            hob__known_place(known, out->hash, i);
        hob__known_reader at;
        uint64_t version;

        if (hob__known_begins(slot, out->words, out->words + out->count, &at,
                              &version) &&
            take(at, slot->words + HOB__KNOWN_WORDS, ret_count, results, out) &&
            hob__known_is_still(slot, version)) {
            out->place = i;
            return 1;
        }
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

/* Put what is kept of CALL behind its key. Returns how many words there are
 * then; 0 if there is no room. */
static uint32_t put_results(const struct hob_call *call, int is_bound,
                            struct hob__known_call *known)
{
    struct hob__known_maker maker = {.at = known->words + known->count,
                                     .end = known->words + HOB__KNOWN_WORDS};

    if (!hob__known_has_room(&maker, 1))
        return 0;
    hob__known_put(&maker, (uint64_t)ask_base(call) |
                               (uint64_t)is_bound << SERVED_BITS |
                               call->core->kind << NUMBER_AT);
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob_meta *meta = &call->metas[i];
        uint64_t head;

        if (!hob__known_has_room(&maker, RESULT_ROOM))
            return 0;
        _Static_assert(offsetof(struct hob_meta, shape) == sizeof(head),
                       "what comes before the shape is read as one");
        memcpy(&head, meta, sizeof(head));
        hob__known_put(&maker, head);
        hob__known_put(&maker, call->core->expected[i].form);
        hob__known_put(&maker, call->core->expected[i].bytes);
        for (uint32_t k = 0; k < meta->rank; k++)
            hob__known_put(&maker, (uint64_t)meta->shape[k]);
    }
    return (uint32_t)(maker.at - known->words);
}

void hob__known_keep(struct hob_call *call, struct hob__known_call *known)
{
    struct hob__known *table = &call->core->runtime->known;
    struct hob__known_slot *slot;
    uint32_t count;

    if (!known->count)
        return;
    if (call->core->kind) {
        slot = hob__known_place(table, known->hash, known->place);
    } else {
        slot = hob__known_choose(table, known->hash, call->core->index);
        call->core->kind = hob__known_number(table);
        for (uint32_t i = 0; i < call->ret_count; i++)
            call->core->expected[i].form = hob__form_of(table, &call->metas[i]);
    }
    count = put_results(call, hob__is_as_given(call), known);
    if (count)
        hob__known_write(slot, known->words, count);
}

/* ---- the way in ---- */

int hob__known_find(hob_runtime *runtime, const struct hob__op *op,
                    const hob_value *args, uint32_t arg_count,
                    struct hob__results *results, struct hob__known_call *out)
{
    if (!make_key(runtime, op, args, arg_count, out))
        out->count = 0;
    else if (find(&runtime->known, op->signature.result_count, results, out))
        return 1;
    out->device = NULL;
    out->kind = 0;
    out->levels = 0;
    out->last_use = 0;
    out->is_bound = 0;
    out->served = HOB__SERVED_UNASKED;
    out->device_param = 0;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "known_table.h"

#include "process.h"

#include <stdlib.h>

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
    const uint64_t mine = (uint64_t)hob__process_mark() << HOB__KNOWN_MARK_AT;
    uint64_t version =
        atomic_load_explicit(&slot->version, memory_order_relaxed);
    const uint64_t count = version & ((UINT64_C(1) << HOB__KNOWN_MARK_AT) - 1);

    if ((version ^ count) == mine)
        return 0;
    *out_version = count;
    return atomic_compare_exchange_strong_explicit(
        &slot->version, &version, mine | count, memory_order_acq_rel,
        memory_order_relaxed);
}

static void let_go(struct hob__known_slot *slot, uint64_t version)
{
    atomic_store_explicit(&slot->version, version + 1, memory_order_release);
}

void hob__known_forget(struct hob__known *known)
{
    uint64_t version;

    for (uint32_t i = 0; known->slots && i < HOB__KNOWN_SLOTS; i++) {
        struct hob__known_slot *slot = &known->slots[i];

        while (!lock(slot, &version))
            ;
        /* No key begins with 0. */
        atomic_store_explicit(&slot->words[0], 0, memory_order_release);
        let_go(slot, version);
    }
}

struct hob__known_slot *hob__known_choose(struct hob__known *known,
                                          uint64_t hash, uint64_t turn)
{
    struct hob__known_slot *first = hob__known_place(known, hash, 0);
    struct hob__known_slot *second = hob__known_place(known, hash, 1);

    /* The one that is free, or else either. */
    return first->version && (!second->version || (turn & 1)) ? second : first;
}

void hob__known_write(struct hob__known_slot *slot, const uint64_t *words,
                      uint32_t count)
{
    uint64_t version;

    if (!lock(slot, &version))
        return;
    for (uint32_t i = 0; i < count; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_release);
    let_go(slot, version);
}

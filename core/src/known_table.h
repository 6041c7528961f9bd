/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_table.h - a table of what was found out: keys and what is kept of
 * them, in words.
 *
 * It is of fixed size, with two places a key; what is new there takes the place
 * of what is old. It is read and written without a lock: who reads looks before
 * and after whether somebody writes, and who finds another one writing leaves
 * it at that.
 */
#ifndef HOB__KNOWN_TABLE_H
#define HOB__KNOWN_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* What takes more words is not kept. A slot is six cache lines. */
enum {
    HOB__KNOWN_WORDS = 47,
    HOB__KNOWN_BITS = 10, /* of the number of slots */
    HOB__KNOWN_SLOTS = 1 << HOB__KNOWN_BITS,
    HOB__KNOWN_MARK_AT = 48 /* bit of a version */
};

struct hob__known_slot {
    /* How often it was written, and above that hob__process_mark() of who
     * writes; 0: unused. */
    atomic_uint_least64_t version;
    /* The key, then what is kept. */
    atomic_uint_least64_t words[HOB__KNOWN_WORDS];
};

struct hob__known {
    struct hob__known_slot *slots; /* NULL without memory: nothing is kept */
    atomic_uint_least64_t number;  /* the latest that was given */
};

void hob__known_init(struct hob__known *known);
void hob__known_release(struct hob__known *known);

/* Nothing is known any more: what it followed from has changed. */
void hob__known_forget(struct hob__known *known);

/* A number that this was not given yet, from 1. */
static inline uint64_t hob__known_number(struct hob__known *known)
{
    return 1 +
           atomic_fetch_add_explicit(&known->number, 1, memory_order_relaxed);
}

/* A key in the making: a local variable, so that it stays in registers. */
struct hob__known_maker {
    uint64_t *at, *end;
    uint64_t hash;
};

/* KNOWN does not have a key of HASH: where it may be put, by an odd or even
 * TURN. */
struct hob__known_slot *hob__known_choose(struct hob__known *known,
                                          uint64_t hash, uint64_t turn);

/* Put WORDS, COUNT of them, into SLOT. */
void hob__known_write(struct hob__known_slot *slot, const uint64_t *words,
                      uint32_t count);

/* ---- keys ---- */

static inline uint64_t hob__known_mix(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline void hob__known_put(struct hob__known_maker *maker, uint64_t word)
{
    *maker->at++ = word;
    maker->hash = hob__known_mix(maker->hash, word);
}

static inline int hob__known_has_room(const struct hob__known_maker *maker,
                                      size_t words)
{
    return maker->at + words <= maker->end;
}

/* ---- reading ---- */

typedef const atomic_uint_least64_t *hob__known_reader;

static inline uint64_t hob__known_read(hob__known_reader *at)
{
    return atomic_load_explicit((*at)++, memory_order_acquire);
}

/* Place I, 0 or 1, of keys with HASH. */
static inline struct hob__known_slot *
hob__known_place(const struct hob__known *known, uint64_t hash, uint32_t i)
{
    return &known->slots[(hash >> (64 - HOB__KNOWN_BITS)) ^ i];
}

/* Whether SLOT begins with the words from WORD to END; then *OUT_AT is what is
 * kept, which counts if hob__known_is_still() says so afterwards. */
static inline int hob__known_begins(const struct hob__known_slot *slot,
                                    const uint64_t *word, const uint64_t *end,
                                    hob__known_reader *out_at,
                                    uint64_t *out_version)
{
    hob__known_reader at = slot->words;

    *out_version = atomic_load_explicit(&slot->version, memory_order_acquire);
    while (word < end && hob__known_read(&at) == *word)
        word++;
    *out_at = at;
    return word == end && !(*out_version >> HOB__KNOWN_MARK_AT);
}

static inline int hob__known_is_still(const struct hob__known_slot *slot,
                                      uint64_t version)
{
    return atomic_load_explicit(&slot->version, memory_order_acquire) ==
           version;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known.h - what was found out of recent calls: one that is like another is
 * not looked into again.
 *
 * Whether a call is in order, what its results are like and whether the base
 * has a kernel for it follow from its op, its device, its attributes and the
 * dtypes and shapes of its tensors. All of that, as it is given, is the key;
 * kept are the metadata and sizes of the results, and a number, by which layers
 * know calls that are alike. Only calls that were in order are kept: a wrong
 * one is looked into whenever it comes, and told of as ever.
 *
 * A runtime has a table of fixed size, two places a key; what is new there
 * takes the place of what is old. It is read and written without a lock: who
 * reads looks before and after whether somebody writes, and who finds another
 * one writing leaves it at that.
 */
#ifndef HOB__KNOWN_H
#define HOB__KNOWN_H

#include <hob/ext/plugin.h>

#include <stdatomic.h>

/* A call that takes more words is not kept. A slot is six cache lines. */
enum {
    HOB__KNOWN_WORDS = 47,
    HOB__KNOWN_BITS = 9, /* of the number of slots */
    HOB__KNOWN_SLOTS = 1 << HOB__KNOWN_BITS
};

struct hob__known_slot {
    atomic_uint_least64_t version; /* odd: it is being written; 0: unused */
    /* The key, then what is kept. */
    atomic_uint_least64_t words[HOB__KNOWN_WORDS];
};

struct hob__known {
    struct hob__known_slot *slots; /* NULL without memory: nothing is kept */
    atomic_uint_least64_t number;  /* of the latest that is kept */
};

/* Whether the base's kernel is one for the call. */
enum hob__served {
    HOB__SERVED_UNASKED, /* the base has no route for the op yet */
    HOB__SERVED,
    HOB__SERVED_NOT
};

struct hob__known_key {
    struct hob__known_slot *slot; /* where it is, or may be put */
    uint64_t hash;
    uint32_t count;    /* of words; 0: no such call is kept */
    uint32_t levels;   /* of all tensors: see struct hob_call_state */
    uint32_t last_use; /* not 0: some argument is moved */
    uint32_t is_bound; /* of one that is known: binding changes nothing */
    uint64_t words[HOB__KNOWN_WORDS];
};

void hob__known_init(struct hob__known *known);
void hob__known_release(struct hob__known *known);

/* Nothing is known any more: what it followed from has changed. */
void hob__known_forget(struct hob__known *known);

/*
 * Whether CALL with ARGS, which are not bound, is like one that is known. Then
 * they are in order, and its device, the metadata and sizes of its results and
 * the rest of its state are set. Else nothing has happened. *OUT_KEY is for
 * hob__known_keep().
 */
int hob__known_find(struct hob_call *call, const hob_value *args,
                    uint32_t arg_count, struct hob__known_key *out_key);

/* CALL, whose key is KEY, is in order, and its results are inferred: it was
 * given ARGS. */
void hob__known_keep(struct hob_call *call, const hob_value *args,
                     uint32_t arg_count, struct hob__known_key *key);

#endif

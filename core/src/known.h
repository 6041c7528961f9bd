/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known.h - what was found out of recent calls: one that is like another is
 * not looked into again.
 *
 * Whether a call is in order, what its results are like and whether the base
 * has a kernel for it follow from its op, its device, its attributes and the
 * forms of its tensors (form.h). All of that, as it is given, is the key; kept
 * are the metadata, forms and sizes of the results, and a number, by which
 * layers know calls that are alike. Only calls that were in order are kept: a
 * wrong one is looked into whenever it comes, and told of as ever.
 */
#ifndef HOB__KNOWN_H
#define HOB__KNOWN_H

#include "known_table.h"

#include <hob/ext/plugin.h>

/* Whether the base's kernel is one for the call. */
enum hob__served {
    HOB__SERVED_UNASKED, /* the base has no route for the op yet */
    HOB__SERVED,
    HOB__SERVED_NOT
};

struct hob__known_key {
    uint64_t hash;
    uint32_t count;    /* of words; 0: no such call is kept */
    uint32_t place;    /* of one that is known */
    uint32_t last_use; /* not 0: some argument is moved */
    uint32_t is_bound; /* of one that is known: binding changes nothing */
    uint64_t words[HOB__KNOWN_WORDS];
};

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

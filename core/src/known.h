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

#include "boundary.h"
#include "known_table.h"

#include <hob/ext/plugin.h>

/* Whether the base's kernel is one for the call. */
enum hob__served {
    HOB__SERVED_UNASKED, /* the base has no route for the op yet */
    HOB__SERVED,
    HOB__SERVED_NOT
};

/* What is known of a call; if nothing is, all is 0 up to DEVICE_PARAM. */
struct hob__known_call {
    hob_device *device; /* that it is on */
    uint64_t kind;      /* see struct hob_call_origin */
    uint32_t levels;    /* of all tensors: see struct hob_call_state */
    uint32_t last_use;  /* not 0: some argument is moved */
    uint8_t is_bound;   /* arguments as they were given are the bound ones */
    uint8_t served;     /* enum hob__served */
    uint8_t device_param;
    uint32_t place; /* its slot */
    /* The key */
    uint32_t count; /* of words; 0: no such call is kept */
    uint64_t hash;
    uint64_t words[HOB__KNOWN_WORDS];
};

/*
 * Whether a call of OP with ARGS, which are not bound, is like one that is
 * known. Then they are in order, the metadata and sizes of the results are in
 * RESULTS, and what else is known in *OUT_CALL. It is for hob__known_keep().
 */
int hob__known_find(hob_runtime *runtime, const struct hob__op *op,
                    const hob_value *args, uint32_t arg_count,
                    struct hob__results *results,
                    struct hob__known_call *out_call);

/* CALL, of which KNOWN was found, is in order, and its results are inferred. */
void hob__known_keep(struct hob_call *call, struct hob__known_call *known);

#endif

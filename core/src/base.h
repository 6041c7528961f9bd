/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - the parts of the last hop: what base.c calls.
 */
#ifndef HOB__BASE_H
#define HOB__BASE_H

#include "dispatch.h"
#include "tensor.h"

/* ---- copies.c ---- */

/* Row-major copies of arguments that live for one call. */
struct hob__temporaries {
    hob_tensor *copies[HOB_MAX_PARAMS]; /* of single tensors */
    hob_tensor **lists[HOB_MAX_PARAMS]; /* of lists: own array of handles */
    hob_value saved[HOB_MAX_PARAMS];    /* the arguments as they came */
    uint32_t used;                      /* bit i: parameter i is replaced */
};

static inline int hob__is_contiguous(const hob_tensor *tensor)
{
    return (tensor->view.flags & HOB_VIEW_CONTIGUOUS) != 0;
}

/* Copy TENSOR by the base's own kernel for "contiguous". */
hob_status hob__copy_contiguous(struct hob_call *call, hob_tensor *tensor,
                                hob_tensor **out_copy);

/* Let all tensors among CALL's arguments be row-major. TEMPORARIES, of which
 * none is used yet, are to be dropped whatever comes of it. */
hob_status hob__make_contiguous(struct hob_call *call,
                                struct hob__temporaries *temporaries);
void hob__drop_temporaries(struct hob_call *call,
                           struct hob__temporaries *temporaries);

/* ---- result_memory.c ---- */

/* Whether argument INDEX may be written over: its last use, the only reference
 * to handle and storage, memory of our own. */
int hob__is_ours(const struct hob_call *call, uint32_t index);

/* Give memory to the results that are due. */
hob_status hob__allocate_results(struct hob_call *call,
                                 const struct hob__route *route);

/* ---- kernel.c ---- */

/* Whether ROUTE's kernel, if there is one, is for CALL: for its dtypes, and for
 * all arguments that are given, not as their default. *OUT_UNKNOWN, if asked
 * for, is the first that it was not written for, -1 if there is none. */
int hob__kernel_serves(const struct hob_call *call,
                       const struct hob__route *route, int *out_unknown);

/* Run the kernel of ROUTE, which serves CALL: recorded, compared with what was
 * recorded, or as it is. */
hob_status hob__run_entry(struct hob_call *call, struct hob__route *route);

#endif

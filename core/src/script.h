/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.h - what a recorded step asked its base for, call by call.
 *
 * A checked capture calls its function in every run. While the step is recorded
 * the calls of kernels are written down: op, attributes, and which elements
 * each argument has. In later runs they are compared instead of made, and get
 * handles that stand for the recorded results. What is the same from the first
 * call to the last may be replayed; anything else is another step.
 *
 * Addresses alone do not say which elements are meant, as memory is used again
 * within a step: storages are stamped with the number of the call that filled
 * them.
 */
#ifndef HOB__SCRIPT_H
#define HOB__SCRIPT_H

#include "tensor.h"

enum hob__script_use {
    HOB__SCRIPT_UNUSED,
    HOB__SCRIPT_WRITE,
    HOB__SCRIPT_FOLLOW
};

struct hob__script {
    enum hob__script_use use;
    uint32_t depth; /* of calls that kernels make: they are not told apart */
    uint64_t *words;
    size_t count, room;
    /* Of this run: */
    size_t at;
    uint64_t calls;
    uint32_t differs;       /* FOLLOW: something was not as recorded */
    atomic_uint *stand_ins; /* handles for results that live, and one */
};

/* Begin a run; WRITE begins anew. Fails with HOB_ERR_MEMORY. */
HOB_MUST_CHECK hob_status hob__script_begin(struct hob__script *script,
                                            enum hob__script_use use);
/* End it; how many stand-ins outlive the run. */
uint32_t hob__script_end(struct hob__script *script);
void hob__script_release(struct hob__script *script);

/* Write CALL down, which a kernel has just made, or refused. */
HOB_MUST_CHECK hob_status hob__script_write(struct hob__script *script,
                                            struct hob_call *call,
                                            int is_refused);
/* Compare CALL with the next one that was written down, and set its results;
 * HOB_ERR_UNSUPPORTED where the kernel refused it. */
HOB_MUST_CHECK hob_status hob__script_follow(struct hob__script *script,
                                             struct hob_call *call);
/* Write down or compare what the step has made. */
HOB_MUST_CHECK hob_status hob__script_made(struct hob__script *script,
                                           hob_tensor *const *made,
                                           uint32_t count);

#endif

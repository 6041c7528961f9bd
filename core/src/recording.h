/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.h - what calls do while a step is recorded (capture.c).
 *
 * At most one thread of a runtime records at a time. Its calls are looked at:
 * what would not be the same in a replay is refused, and the tensors from
 * before that they read are held, so that their memory is neither given back
 * nor written over while there is a recording that has its address.
 */
#ifndef HOB__RECORDING_H
#define HOB__RECORDING_H

#include "runtime.h"
#include "script.h"

#include <hob/ext/plugin.h>

struct hob__recording {
    hob_device *base;  /* what is recorded */
    struct hob__script script; /* of a capture that checks its steps */
    hob_tensor **held; /* handles on what the step reads from before */
    uint32_t held_count;
    uint32_t held_room;
};

/* Record into RECORDING, which is zero but for its base, until it ends; waits
 * for another thread. */
void hob__recording_begin(hob_runtime *runtime,
                          struct hob__recording *recording);
void hob__recording_end(hob_runtime *runtime);
/* Give up what RECORDING holds. */
void hob__recording_release(struct hob__recording *recording);

/* The recording of this thread; NULL if it does not record. */
static inline struct hob__recording *hob__recording_here(hob_runtime *runtime)
{
    const uintptr_t thread =
        atomic_load_explicit(&runtime->recorder, memory_order_relaxed);

    return thread && thread == (uintptr_t)pthread_self() ? runtime->recording
                                                         : NULL;
}

/* Look at CALL of the thread that records, whose device is known. */
HOB_MUST_CHECK hob_status hob__recording_see(struct hob_call *call);

/*
 * A handle on DEVICE for the elements of OWNER; with MAY_WRITE a step may write
 * over them after their last use. It holds a reference to the handle OWNER, not
 * to its storage. NULL without memory.
 */
hob_tensor *hob__recording_lend(hob_device *device, hob_tensor *owner,
                                int may_write);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lazy.h - handles whose elements are still to be computed.
 *
 * A decorator that has the member settle may answer a call with results that
 * wait: host->defer() makes a handle with metadata and a state word, but
 * without elements, and notes the layer's level in hob_tensor.lazy. Whoever
 * needs more than metadata settles the handle first, down to the level at
 * which it is going to look: the layer then computes what the handle waits for
 * and host->fill() gives it the elements of that, its state words of lower
 * levels, or its failure. Several threads may hold one handle, so everything
 * is written before lazy is, and who reads lazy as 0 sees all of it.
 *
 * Below a layer nobody ever meets a handle that waits for it: the walk settles
 * the arguments of what the layer passes on.
 */
#ifndef HOB__LAZY_H
#define HOB__LAZY_H

#include "process.h"
#include "runtime.h"
#include "tensor.h"

/* The level for which TENSOR waits, 0 if it has its elements. */
static inline int32_t hob__tensor_lazy(const hob_tensor *tensor)
{
    return (int32_t)atomic_load_explicit(&tensor->lazy, memory_order_acquire);
}

/*
 * HOB_OK unless this process is a fork that plugins of RUNTIME cannot go on
 * in: layers are asked for nothing there, not even to let go of a state word,
 * since a thread that is no more may have held their locks.
 */
HOB_MUST_CHECK static inline hob_status
hob__lazy_check_fork(hob_runtime *runtime, hob_error *error)
{
    return hob__process_forks() ==
                   atomic_load_explicit(&runtime->forks, memory_order_relaxed)
               ? HOB_OK
               : hob__runtime_after_fork(runtime, error);
}

/*
 * Let TENSOR wait for no level above LEVEL: 0 for its elements. It may be an
 * error tensor afterwards. Fails if the work could not even be begun.
 */
HOB_MUST_CHECK hob_status hob__tensor_settle(hob_tensor *tensor, int32_t level,
                                             hob_error *error);

/* The same for all tensors among CALL's arguments; fails with the cause where
 * one is an error tensor then. */
HOB_MUST_CHECK hob_status hob__settle_arguments(struct hob_call *call,
                                                int32_t level);

/* SCOPE, of the program, has released what it owned: what outlives it is
 * computed. */
void hob__flush_scope(hob_runtime *runtime, const hob_scope *scope);

/* Compute all that the layers of DEVICE put off. */
HOB_MUST_CHECK hob_status hob__flush_device(const hob_device *device,
                                            hob_error *error);

/* For the host table; see hob/host.h. */
hob_status hob__defer(struct hob_call *call, uint32_t index, void *state);
hob_status hob__fill(hob_tensor *tensor, int32_t level, void *state,
                     hob_tensor *source);
void hob__call_origin(const struct hob_call *call, struct hob_call_origin *out);
hob_scope *hob__scope_begin(hob_device *device, struct hob_scope_frame *frame);
hob_tensor *hob__tensor_new(hob_device *device, const struct hob_meta *meta,
                            hob_tensor *over);
int32_t hob__is_last(hob_tensor *const *tensors, uint32_t count);
int32_t hob__is_held(const hob_tensor *tensor);
const void *hob__heir(const void *closing, const hob_tensor *tensor);
void hob__eval(hob_tensor *const *tensors, uint32_t count);
hob_status hob__replay(hob_scope *scope, uint64_t index, uint32_t op,
                       const hob_value *args, uint32_t arg_count,
                       hob_tensor **out, uint32_t out_capacity,
                       uint32_t *out_count, hob_value *plains,
                       uint32_t plain_capacity);

#endif

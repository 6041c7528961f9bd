/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/autodiff.h - gradients.
 *
 * These functions act on the topmost autodiff level of the tensor's device;
 * on a device without one they fail with HOB_ERR_DEVICE. Gradients are
 * tensors one level down, so autodiff(autodiff(flex)) gives second
 * derivatives.
 */
#ifndef HOB_AUTODIFF_H
#define HOB_AUTODIFF_H

#include <hob/host.h>

HOB_BEGIN_DECLS

/* A tracked leaf with TENSOR's elements, owned by SCOPE. Float only; a
 * tensor that is the result of tracked ops is refused. */
HOB_API hob_tensor *hob_require_grad(hob_scope *scope, hob_tensor *tensor);

/* Nonzero if gradients flow to TENSOR: a leaf, or computed from one. */
HOB_API int hob_is_tracked(const hob_tensor *tensor);

/* TENSOR's elements without its history, on the same device. */
HOB_API hob_tensor *hob_detach(hob_scope *scope, hob_tensor *tensor);

/* TENSOR one level below its topmost autodiff. */
HOB_API hob_tensor *hob_inner(hob_scope *scope, hob_tensor *tensor);

enum hob_backward_call_flags {
    HOB_BACKWARD_RETAIN = 1 /* keep the graph for another backward */
};

/*
 * Compute the gradients of the sum of TENSOR with respect to every tracked
 * leaf. The graph behind TENSOR is consumed unless FLAGS retain it: a second
 * backward over it fails with HOB_ERR_STATE. On success the caller releases
 * *OUT_GRADS with hob_grads_free().
 */
HOB_API HOB_MUST_CHECK hob_status hob_backward(hob_scope *scope,
                                               hob_tensor *tensor,
                                               uint32_t flags,
                                               hob_grads **out_grads,
                                               hob_error *error);

/*
 * The gradient of LEAF in GRADS, owned by SCOPE. *OUT_GRAD is NULL, with
 * HOB_OK, if none reached it. Fails with HOB_ERR_ARGUMENT if LEAF is not a
 * leaf of the autodiff that made GRADS.
 */
HOB_API HOB_MUST_CHECK hob_status hob_grad(hob_scope *scope, hob_tensor *leaf,
                                           const hob_grads *grads,
                                           hob_tensor **out_grad,
                                           hob_error *error);

HOB_API void hob_grads_free(hob_grads *grads); /* accepts NULL */

/* ---- memory: segments that are computed again ---- */

/*
 * A segment: compute OUT_COUNT results from INPUT_COUNT tensors. They go to
 * OUT and belong to SCOPE or a scope in it, as what ops return does. A failure
 * is a status other than HOB_OK, or the error of an op in SCOPE.
 */
typedef hob_status (*hob_segment_fn)(hob_scope *scope, void *context,
                                     hob_tensor *const *inputs,
                                     uint32_t input_count, hob_tensor **out,
                                     uint32_t out_count);

/*
 * Call SEGMENT, for which nothing is recorded but its inputs, and let SCOPE
 * own the results. A backward that comes to them calls it once more, recorded,
 * and goes through that: gradients are those of a plain call bit for bit, but
 * where several segments use one tensor: its gradient is then a sum of sums.
 * Of N layers, in segments of sqrt(N), about 2 sqrt(N) are in memory at a
 * time instead of N, for one more forward. Segments may be nested.
 *
 * - SEGMENT must do the same each time. Random numbers see to that
 *   themselves: the ranges drawn in SCOPE are noted and used again.
 * - Everything tracked that it uses must be among INPUTS, weights too. They
 *   are constants to the first call: hob_is_tracked() is 0 in it.
 * - CONTEXT must stay valid while the results or tensors computed from them
 *   live, until a backward without HOB_BACKWARD_RETAIN went through. RELEASE,
 *   if it is not NULL, is then called with it, once, also after a failure, on
 *   whichever thread it is that gives up the graph. Backwards of several
 *   threads over a graph that they retain call SEGMENT at the same time.
 *
 * Where nothing is tracked SEGMENT is called and that is all; likewise in
 * hob_no_grad() and on devices without autodiff. In autodiff(autodiff(flex))
 * the topmost one that tracks an input saves memory, those below record.
 *
 * On failure OUT holds error tensors. HOB_ERR_ARGUMENT if a result is missing
 * or depends on a tracked tensor that is not among INPUTS, HOB_ERR_DEVICE if
 * the inputs are on devices that do not fit together.
 */
HOB_API hob_status hob_checkpoint(hob_scope *scope, hob_segment_fn segment,
                                  void *context, void (*release)(void *context),
                                  hob_tensor *const *inputs,
                                  uint32_t input_count, hob_tensor **out,
                                  uint32_t out_count);

HOB_END_DECLS

#endif

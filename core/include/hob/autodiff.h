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

HOB_END_DECLS

#endif

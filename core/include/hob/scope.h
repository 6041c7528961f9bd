/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/scope.h - scopes.
 *
 * A scope owns what is made in it. Closing one releases its tensors. Scopes
 * nest: a child is closed before its parent (closing a parent closes the
 * children that are left). One scope is used by one thread at a time; opening
 * and closing a child are uses of its parent, too.
 *
 * An op that fails returns its scope's error tensor, and the scope keeps the
 * first error. Ops on an error tensor return one with the first cause. With
 * HOB_POLICY_PANIC the diagnostic is printed and the process aborts instead.
 */
#ifndef HOB_SCOPE_H
#define HOB_SCOPE_H

#include <hob/host.h>

HOB_BEGIN_DECLS

/* Open a scope in RUNTIME. NULL only without memory. */
HOB_API hob_scope *hob_scope_open(hob_runtime *runtime);

/* Open a scope in PARENT, on its level and with its generator. */
HOB_API hob_scope *hob_scope_child(hob_scope *parent);

/*
 * Open a child of PARENT in which nothing is recorded for DEVICE's topmost
 * autodiff: ops start one level below it. On a device without autodiff, and
 * for NULL (an error tensor has no device), it is a plain child.
 */
HOB_API hob_scope *hob_no_grad(hob_scope *parent, hob_device *device);

/* Release everything that SCOPE owns, and SCOPE. Accepts NULL. */
HOB_API void hob_scope_close(hob_scope *scope);

/*
 * Replace the long-lived tensor in *SLOT, which OWNER owns, by TENSOR: OWNER
 * takes a reference to the new one and gives the old one's back. *SLOT may be
 * NULL before. An error tensor or one that was moved away is not taken: *SLOT
 * stays as it is and OWNER has the error.
 */
HOB_API void hob_assign(hob_scope *owner, hob_tensor **slot,
                        hob_tensor *tensor);

/* The first error of SCOPE: HOB_OK if there is none. ERROR may be NULL. */
HOB_API hob_status hob_scope_error(const hob_scope *scope, hob_error *error);

/* Forget SCOPE's error. Error tensors made before stay what they are. */
HOB_API void hob_scope_clear_error(hob_scope *scope);

/*
 * Call the op with the number OP by hand, as hob/ops.h does: ARGS in the
 * signature's order, OUT with room for OUT_CAPACITY results, all owned by
 * SCOPE. For tools and bindings; programs use the typed functions.
 */
HOB_API hob_status hob_call_op(hob_scope *scope, uint32_t op,
                               const hob_value *args, uint32_t arg_count,
                               hob_tensor **out, uint32_t out_capacity,
                               uint32_t *out_count);

HOB_END_DECLS

#endif

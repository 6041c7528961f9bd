/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/fusion.h - results that are put off.
 *
 * On a device with the decorator fusion, as in "fusion(flex)", an op only notes
 * what is to be computed. Reading a tensor, saving or exporting it, moving it to
 * another device, hob_device_sync() and closing a scope that it outlives
 * compute what is needed for it, and nothing else. On other devices nothing is
 * put off, and the functions here have nothing to do.
 *
 * An op that fails then makes error tensors of its results, and of what was
 * computed from them; the failure carries the op's name and the index of its
 * call, and is told to the runtime's policy once, when it happens.
 */
#ifndef HOB_FUSION_H
#define HOB_FUSION_H

#include <hob/host.h>

HOB_BEGIN_DECLS

/*
 * Compute the COUNT tensors now, together: what they share is computed once.
 * Does not wait for a device that computes on its own. Fails with the failure
 * of the first among TENSORS that is an error tensor then.
 */
HOB_API HOB_MUST_CHECK hob_status hob_eval(hob_tensor *const *tensors,
                                           uint32_t count, hob_error *error);

HOB_END_DECLS

#endif

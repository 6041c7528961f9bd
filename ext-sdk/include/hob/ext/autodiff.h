/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/autodiff.h - what the decorator autodiff offers beyond ops: the
 * interface "autodiff.backward", version 1.
 *
 * Find it with host->interface(device, HOB_AUTODIFF_INTERFACE, 1, &layer);
 * the topmost autodiff of the device answers, and LAYER is its instance, the
 * first argument of every function. The functions of hob/autodiff.h are thin
 * calls to these.
 *
 * - TENSOR is on the device that the interface was found on, or on one that
 *   has the same layer.
 * - Tensors that come back in an out parameter are owned by SCOPE.
 * - A function without an out_message puts its failure on SCOPE, as ops do.
 *   One with it sets *OUT_MESSAGE to a text that the caller gives back with
 *   host->mem_free, or to NULL where the first error of SCOPE is the text.
 * - All functions may be called from several threads at once, a scope being
 *   used by one at a time.
 */
#ifndef HOB_EXT_AUTODIFF_H
#define HOB_EXT_AUTODIFF_H

#include <hob/host.h>

HOB_BEGIN_DECLS

#define HOB_AUTODIFF_INTERFACE "autodiff.backward"
enum { HOB_AUTODIFF_INTERFACE_VERSION = 1 };

/*
 * A part of a program that a layer can run again, as hob_checkpoint() makes
 * it. Its functions may be called from any thread, also at the same time.
 */
struct hob_segment {
    uint32_t struct_size;
    uint32_t out_count;
    /*
     * Run it on INPUTS, whose count and devices are as the first time; the
     * results, on the device that the inputs' are joined in, go to OUT and
     * belong to SCOPE, which has the error on failure. The first run is over
     * before another begins; in it no input is tracked.
     */
    hob_status (*run)(struct hob_segment *segment, hob_scope *scope,
                      hob_tensor *const *inputs, uint32_t input_count,
                      hob_tensor **out);
    void (*release)(struct hob_segment *segment); /* it ends with this */
};

/* The flags of backward are enum hob_backward_call_flags of hob/autodiff.h. */
struct hob_autodiff_interface {
    uint32_t struct_size;
    uint32_t reserved;

    /* A tracked leaf with TENSOR's elements; TENSOR itself if it is one.
     * HOB_ERR_DTYPE if it is not float, HOB_ERR_STATE if it has a history. */
    hob_status (*require_grad)(void *layer, hob_scope *scope,
                               hob_tensor *tensor, hob_tensor **out);
    /* Nonzero if gradients flow to TENSOR at this layer. */
    int32_t (*is_tracked)(void *layer, const hob_tensor *tensor);
    /* TENSOR's elements without its history, on its device. */
    hob_status (*detach)(void *layer, hob_scope *scope, hob_tensor *tensor,
                         hob_tensor **out);
    /* TENSOR one level below this layer. */
    hob_status (*inner)(void *layer, hob_scope *scope, hob_tensor *tensor,
                        hob_tensor **out);

    /*
     * Gradients of the sum of TENSOR. On success the caller gives *OUT_GRADS
     * back with grads_free. HOB_ERR_ARGUMENT if TENSOR is not tracked,
     * HOB_ERR_STATE if a part of its graph was consumed before.
     */
    hob_status (*backward)(void *layer, hob_scope *scope, hob_tensor *tensor,
                           uint32_t flags, void **out_grads,
                           char **out_message);
    /* The gradient of LEAF one level down; *OUT is NULL, with HOB_OK, if none
     * reached it. HOB_ERR_ARGUMENT if LEAF is not a leaf of this layer. */
    hob_status (*grad)(void *layer, hob_scope *scope, hob_tensor *leaf,
                       const void *grads, hob_tensor **out, char **out_message);
    void (*grads_free)(void *layer, void *grads); /* accepts NULL */

    /*
     * Run SEGMENT on INPUTS, some of which are tracked, without recording, and
     * set OUT to its results, owned by SCOPE; run it again, recorded, where a
     * backward comes to them. Takes SEGMENT, also on failure, which is on
     * SCOPE then. NULL: segments are recorded as any calls are.
     */
    hob_status (*checkpoint)(void *layer, hob_scope *scope,
                             struct hob_segment *segment,
                             hob_tensor *const *inputs, uint32_t input_count,
                             hob_tensor **out);
};

HOB_END_DECLS

#endif

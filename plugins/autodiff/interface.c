/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interface.c - "autodiff.backward": leaves, gradients, history.
 */
#include "walk.h"

#include <hob/autodiff.h>
#include <hob/ext/autodiff.h>

hob_tensor *ad_hide(const struct ad_layer *layer, hob_tensor *tensor)
{
    const struct hob_host *host = layer->host;
    hob_tensor *inner = host->alias(tensor, layer->level - 1);
    hob_tensor *lifted =
        inner ? host->lift(inner, host->tensor_device(tensor)) : NULL;

    host->tensor_unref(inner);
    return lifted;
}

hob_status ad_rehandle(const struct ad_layer *layer, hob_scope *scope,
                       hob_tensor *tensor, struct ad_slot *slot,
                       hob_tensor **out)
{
    const struct hob_host *host = layer->host;
    hob_tensor *lifted = ad_hide(layer, tensor);
    hob_status status = HOB_OK;

    if (lifted) {
        if (slot)
            host->set_state(lifted, layer->level, slot);
        *out = host->keep(scope, lifted);
        if (host->tensor_is_error(*out))
            status = host->scope_status(scope);
    } else {
        if (slot)
            ad_node_release_handle(host, slot->node);
        host->scope_fail(scope, HOB_ERR_MEMORY,
                         "autodiff: no memory for a tensor handle");
        status = HOB_ERR_MEMORY;
    }
    host->tensor_unref(lifted);
    return status;
}

static hob_status require_grad(void *instance, hob_scope *scope,
                               hob_tensor *tensor, hob_tensor **out)
{
    const struct ad_layer *layer = (const struct ad_layer *)instance;
    const struct ad_slot *slot = ad_slot_of(layer, tensor);
    struct ad_node *leaf;

    *out = NULL;
    if (slot && slot->node->flags & AD_NODE_LEAF) {
        *out = layer->host->keep(scope, tensor);
        return HOB_OK;
    }
    if (slot) {
        layer->host->scope_fail(
            scope, HOB_ERR_STATE,
            "require_grad: the tensor is the result of %s on tracked tensors, "
            "only a leaf can be made tracked: call hob_detach() on it first",
            slot->node->op_name);
        return HOB_ERR_STATE;
    }
    if (!(HOB_DTYPE_BIT(hob_tensor_dtype(tensor)) & HOB_MASK_FLOAT)) {
        layer->host->scope_fail(
            scope, HOB_ERR_DTYPE,
            "require_grad: the tensor is %s, gradients flow to floats only: "
            "use hob_cast() first",
            hob_dtype_name(hob_tensor_dtype(tensor)));
        return HOB_ERR_DTYPE;
    }
    leaf = ad_leaf_new(layer->pool);
    if (!leaf) {
        layer->host->scope_fail(scope, HOB_ERR_MEMORY,
                                "require_grad: no memory for a leaf");
        return HOB_ERR_MEMORY;
    }
    return ad_rehandle(layer, scope, tensor, &leaf->slots[0], out);
}

static int32_t is_tracked(void *instance, const hob_tensor *tensor)
{
    return ad_slot_of((const struct ad_layer *)instance, tensor) != NULL;
}

static hob_status detach(void *instance, hob_scope *scope, hob_tensor *tensor,
                         hob_tensor **out)
{
    *out = NULL;
    return ad_rehandle((const struct ad_layer *)instance, scope, tensor, NULL,
                       out);
}

static hob_status inner(void *instance, hob_scope *scope, hob_tensor *tensor,
                        hob_tensor **out)
{
    const struct ad_layer *layer = (const struct ad_layer *)instance;
    hob_tensor *alias = layer->host->alias(tensor, layer->level - 1);

    *out = NULL;
    if (!alias) {
        layer->host->scope_fail(scope, HOB_ERR_MEMORY,
                                "inner: no memory for a tensor handle");
        return HOB_ERR_MEMORY;
    }
    *out = layer->host->keep(scope, alias);
    layer->host->tensor_unref(alias);
    return HOB_OK;
}

static hob_status backward(void *instance, hob_scope *scope, hob_tensor *tensor,
                           uint32_t flags, void **out_grads, char **out_message)
{
    const struct ad_layer *layer = (const struct ad_layer *)instance;
    struct ad_slot *root = ad_slot_of(layer, tensor);
    struct ad_grads *grads = NULL;
    hob_status status;

    *out_grads = NULL;
    *out_message = NULL;
    if (flags & ~(uint32_t)HOB_BACKWARD_RETAIN)
        return ad_message(layer->host, out_message, HOB_ERR_ARGUMENT,
                          "flags 0x%x are not known", flags);
    if (!root)
        return ad_message(layer->host, out_message, HOB_ERR_ARGUMENT,
                          "the tensor is not tracked: it was not "
                          "computed from a tensor of hob_require_grad(), or "
                          "was detached on the way");
    status =
        ad_backward(layer, scope, root, tensor, flags, &grads, out_message);
    *out_grads = grads;
    return status;
}

static hob_status grad(void *instance, hob_scope *scope, hob_tensor *leaf,
                       const void *grads, hob_tensor **out, char **out_message)
{
    const struct ad_layer *layer = (const struct ad_layer *)instance;
    const struct ad_slot *slot = ad_slot_of(layer, leaf);
    hob_tensor *found;

    *out = NULL;
    *out_message = NULL;
    if (!slot || !(slot->node->flags & AD_NODE_LEAF))
        return ad_message(layer->host, out_message, HOB_ERR_ARGUMENT,
                          "the tensor is %s%s, not a leaf: gradients "
                          "are kept for tensors of hob_require_grad()",
                          slot ? "the result of " : "not tracked",
                          slot ? slot->node->op_name : "");
    found = ad_grads_get((const struct ad_grads *)grads, slot->node);
    if (found)
        *out = layer->host->keep(scope, found);
    return HOB_OK;
}

static void grads_free(void *instance, void *grads)
{
    (void)instance;
    ad_grads_free((struct ad_grads *)grads);
}

const struct hob_autodiff_interface ad_interface = {
    .struct_size = sizeof(struct hob_autodiff_interface),
    .require_grad = require_grad,
    .is_tracked = is_tracked,
    .detach = detach,
    .inner = inner,
    .backward = backward,
    .grad = grad,
    .grads_free = grads_free,
    .checkpoint = ad_checkpoint,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - what the layer does with a call.
 *
 * A call without a tracked input passes; so does one whose results are no
 * floats, because no gradient flows through those. The rest is recorded: the
 * node takes hold of all it needs before the call goes on below, so the core
 * sees the elements as shared and writes over none of them.
 */
#include "layer.h"

#include <hob/ops.h>

static int any_tracked(const struct ad_layer *layer,
                       const struct hob_call *call)
{
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *arg = &call->args[i];

        if (arg->tag == HOB_TAG_TENSOR) {
            if (ad_slot_of(layer, arg->u.tensor))
                return 1;
        } else if (arg->tag == HOB_TAG_TENSORS) {
            for (uint32_t j = 0; j < arg->count; j++)
                if (ad_slot_of(layer, arg->u.tensors[j]))
                    return 1;
        }
    }
    return 0;
}

static int is_float(uint32_t dtype)
{
    return (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) != 0;
}

static int any_float_result(const struct hob_call *call)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        if (is_float(call->metas[i].dtype))
            return 1;
    return 0;
}

/* Tensor ITEM of ARG, which has a slot; NULL if it is absent. */
static hob_tensor *item_of(const hob_value *arg, uint32_t item)
{
    if (arg->tag == HOB_TAG_TENSOR)
        return arg->u.tensor;
    return arg->tag == HOB_TAG_TENSORS ? arg->u.tensors[item] : NULL;
}

/* Let NODE point to what its inputs carry, and return the parameters that
 * are tracked, as bits. */
static uint32_t link_inputs(const struct ad_layer *layer, struct ad_node *node,
                            const struct hob_call *call)
{
    uint32_t tracked = 0;
    uint32_t item = 0;

    for (uint32_t i = 0; i < node->input_count; i++) {
        struct ad_input *input = &node->inputs[i];
        hob_tensor *tensor;

        item = i && input[-1].param == input->param ? item + 1 : 0;
        tensor = item_of(&call->args[input->param], item);
        input->edge = tensor ? ad_slot_of(layer, tensor) : NULL;
        if (!input->edge)
            continue;
        ad_node_ref(input->edge->node);
        tracked |= UINT32_C(1) << input->param;
        if (node->order <= input->edge->node->order)
            node->order = input->edge->node->order + 1;
    }
    return tracked;
}

/* The parameters that RULE needs for the gradients of those in TRACKED. */
static uint32_t needed_params(const struct hob_backward *rule,
                              uint32_t arg_count, uint32_t tracked)
{
    uint32_t conditional = 0;
    uint32_t needed = 0;

    for (uint32_t j = 0; rule->save_if && j < arg_count; j++) {
        conditional |= rule->save_if[j];
        if (tracked >> j & 1)
            needed |= rule->save_if[j];
    }
    return (rule->save_args & ~conditional) | needed;
}

/* Save what the rule needs of the inputs and, where NODE can be replayed,
 * what that needs; or rely on replaying the input's own node. */
static hob_status save_inputs(const struct ad_layer *layer,
                              struct ad_node *node, const struct hob_call *call,
                              uint32_t needed)
{
    int replays = (node->flags & AD_NODE_REPLAYS) != 0;
    uint32_t item = 0;

    for (uint32_t i = 0; i < node->input_count; i++) {
        struct ad_input *input = &node->inputs[i];
        hob_tensor *tensor;

        item = i && input[-1].param == input->param ? item + 1 : 0;
        tensor = item_of(&call->args[input->param], item);
        if (!tensor)
            continue;
        input->flags =
            (uint16_t)((needed >> input->param & 1 ? AD_INPUT_NEEDED : 0) |
                       (replays ? AD_INPUT_SOURCE : 0));
        if (!input->flags)
            continue;
        if (input->edge && input->edge->node->flags & AD_NODE_REPLAYS) {
            ad_input_set_replay(input);
            continue;
        }
        input->saved = layer->host->alias(tensor, layer->level - 1);
        if (!input->saved)
            return HOB_ERR_MEMORY;
    }
    return HOB_OK;
}

/* The results of CALL are there: let their handles carry NODE's slots. */
static hob_status attach(const struct ad_layer *layer, struct ad_node *node,
                         const struct hob_call *call)
{
    const struct hob_host *host = layer->host;
    int64_t *meta = node->ret_metas;
    uint32_t handles = 0;
    uint32_t save =
        node->flags & AD_NODE_REPLAY_RETS ? 0 : node->rule->save_rets;

    for (uint32_t i = 0; i < node->ret_count; i++) {
        hob_tensor *tensor = call->rets[i].u.tensor;

        if (call->flags & HOB_CALL_DYNAMIC)
            ad_node_ret_meta_put(&meta, tensor);
        if (!tensor) /* absent: its slot stays unused */
            continue;
        if (save >> i & 1) {
            node->rets[i] = host->alias(tensor, layer->level - 1);
            if (!node->rets[i])
                return HOB_ERR_MEMORY;
        }
        handles += is_float(hob_tensor_dtype(tensor));
    }
    atomic_store_explicit(&node->handles, handles, memory_order_relaxed);
    for (uint32_t i = 0; i < node->ret_count; i++) {
        hob_tensor *tensor = call->rets[i].u.tensor;
        struct ad_slot *old;

        if (!tensor)
            continue;
        old = ad_slot_of(layer, tensor);
        /* A body may have handed an argument through as its result. */
        host->set_state(tensor, layer->level,
                        is_float(hob_tensor_dtype(tensor)) ? &node->slots[i]
                                                           : NULL);
        if (old)
            ad_node_release_handle(host, old->node);
    }
    return HOB_OK;
}

static hob_status no_memory(const struct ad_layer *layer, struct hob_call *call)
{
    return layer->host->fail(call, HOB_ERR_MEMORY,
                             "autodiff has no memory to record the call");
}

static hob_status record(const struct ad_layer *layer, struct hob_call *call,
                         const struct hob_backward *rule)
{
    struct ad_node *node = ad_node_new(layer->pool, call);
    uint32_t tracked;
    hob_status status;

    if (!node)
        return no_memory(layer, call);
    node->rule = rule;
    tracked = link_inputs(layer, node, call);
    if (layer->balanced && rule->flags & HOB_BACKWARD_MEMORY_BOUND) {
        node->flags |= AD_NODE_REPLAYS;
        if (rule->save_rets) {
            /* A user of its own, so its sources stay. */
            node->flags |= AD_NODE_REPLAY_RETS;
            atomic_store_explicit(&node->users, 2, memory_order_relaxed);
        }
    }
    status = save_inputs(layer, node, call,
                         needed_params(rule, call->arg_count, tracked));
    if (status) {
        no_memory(layer, call);
        goto out;
    }
    status = layer->host->next(call);
    if (status)
        goto out;
    status = attach(layer, node, call);
    if (status)
        no_memory(layer, call);
out:
    if (status)
        ad_node_unref(layer->host, node);
    return status;
}

int32_t ad_call(void *instance, struct hob_call *call,
                const struct hob_op_impl *impl, hob_status *out_status)
{
    const struct ad_layer *layer = (const struct ad_layer *)instance;
    const struct hob_backward *rule = NULL;

    if (!any_tracked(layer, call) || !any_float_result(call))
        return HOB_LAYER_PASS;
    if (impl && impl->backward)
        rule = impl->backward;
    else if (call->op < AD_OP_LIMIT)
        rule = layer->rules[call->op];
    if (!rule)
        return HOB_LAYER_NO_RULE;
    *out_status = record(layer, call, rule);
    return HOB_LAYER_DONE;
}

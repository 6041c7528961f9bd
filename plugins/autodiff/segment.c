/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - hob_checkpoint(): segments that a walk runs again.
 *
 * To its first run a segment's inputs are constants, so nothing is recorded.
 * One node stands for all of it; it keeps the inputs and the segment. A walk
 * that comes to the node runs the segment again, now recorded, and hands the
 * node's gradients to the results of that run: their nodes are in front of
 * those that wait, so the same walk goes through them next, and each is freed
 * when it has run.
 *
 * The inputs of that run carry slots of a gate, a node whose rule hands
 * gradients on to where the inputs came from. Without it what is recorded
 * could rely on replaying a node (checkpoint.c) that has let go of what that
 * takes.
 */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

static const char op_name[] = "checkpoint";

static hob_status no_memory(const struct ad_layer *layer, hob_scope *scope)
{
    layer->host->scope_fail(scope, HOB_ERR_MEMORY,
                            "autodiff has no memory to record a segment");
    return HOB_ERR_MEMORY;
}

static int is_float(const hob_tensor *tensor)
{
    return (HOB_DTYPE_BIT(hob_tensor_dtype(tensor)) & HOB_MASK_FLOAT) != 0;
}

static void meta_of(struct hob_meta *out, hob_tensor *tensor)
{
    const struct hob_view *view = hob_tensor_view(tensor);

    memset(out, 0, sizeof(*out));
    out->dtype = view->dtype;
    out->rank = view->rank;
    out->scheme = view->scheme;
    memcpy(out->shape, view->shape, view->rank * sizeof(out->shape[0]));
}

/* A node of INPUTS, all in one list, and results like RETS, without edges. */
static struct ad_node *node_new(const struct ad_layer *layer,
                                hob_tensor *const *inputs, uint32_t input_count,
                                hob_tensor *const *rets, uint32_t ret_count)
{
    struct hob_meta *metas = calloc(ret_count + 1u, sizeof(*metas));
    hob_value list = {.tag = HOB_TAG_TENSORS, .count = input_count};
    struct hob_call call = {.host = layer->host,
                            .op = UINT32_MAX,
                            .op_name = op_name,
                            .arg_count = 1,
                            .args = &list,
                            .metas = metas};
    struct ad_node *node = NULL;

    list.u.tensors = (hob_tensor **)(uintptr_t)inputs;
    if (metas && ret_count <= UINT16_MAX) {
        call.ret_count = (uint16_t)ret_count;
        for (uint32_t i = 0; i < ret_count; i++)
            meta_of(&metas[i], rets[i]);
        node = ad_node_new(layer->pool, &call);
    }
    free(metas);
    return node;
}

static void add_edge(struct ad_node *node, uint32_t i, struct ad_slot *slot)
{
    node->inputs[i].edge = slot;
    ad_node_ref(slot->node);
    if (node->order <= slot->node->order)
        node->order = slot->node->order + 1;
}

/* ---- the first run ---- */

/* Let SCOPE own handles on the results MADE that carry NODE's slots. */
static hob_status attach(const struct ad_layer *layer, hob_scope *scope,
                         struct ad_node *node, hob_tensor *const *made,
                         hob_tensor **out)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < node->ret_count && !status; i++) {
        struct ad_slot *slot = is_float(made[i]) ? &node->slots[i] : NULL;

        if (slot)
            ad_node_retain_handle(node);
        status = ad_rehandle(layer, scope, made[i], slot, &out[i]);
    }
    return status;
}

/* Record a node for SEGMENT, which made MADE of HIDDEN; the references to
 * HIDDEN and to SEGMENT go to it. */
static hob_status record(const struct ad_layer *layer, hob_scope *scope,
                         struct hob_segment **segment,
                         hob_tensor *const *inputs, hob_tensor **hidden,
                         uint32_t input_count, hob_tensor *const *made,
                         hob_tensor **out)
{
    struct ad_node *node =
        node_new(layer, inputs, input_count, made, (*segment)->out_count);
    hob_status status;

    if (!node)
        return no_memory(layer, scope);
    for (uint32_t i = 0; i < input_count; i++) {
        struct ad_slot *slot = ad_slot_of(layer, inputs[i]);

        if (slot)
            add_edge(node, i, slot);
        node->inputs[i].saved = hidden[i];
        hidden[i] = NULL;
    }
    node->segment = *segment;
    *segment = NULL;
    /* One for this function, so that NODE lasts, whatever becomes of OUT. */
    ad_node_retain_handle(node);
    status = attach(layer, scope, node, made, out);
    ad_node_release_handle(layer->host, node);
    return status;
}

static hob_status first_run(const struct ad_layer *layer, hob_scope *scope,
                            struct hob_segment **segment,
                            hob_tensor *const *inputs, hob_tensor **hidden,
                            uint32_t input_count, hob_tensor **out)
{
    const struct hob_host *host = layer->host;
    struct hob_scope_frame frame;
    hob_tensor **made = calloc((*segment)->out_count + 1u, sizeof(*made));
    hob_scope *inner;
    hob_status status;

    if (!made)
        return no_memory(layer, scope);
    for (uint32_t i = 0; i < input_count; i++) {
        hidden[i] = ad_hide(layer, inputs[i]);
        if (!hidden[i]) {
            free(made);
            return no_memory(layer, scope);
        }
    }
    inner = host->scope_enter(scope, &frame, -1);
    status = (*segment)->run(*segment, inner, hidden, input_count, made);
    if (!status)
        status = record(layer, scope, segment, inputs, hidden, input_count,
                        made, out);
    host->scope_leave(inner);
    free(made);
    return status;
}

hob_status ad_checkpoint(void *instance, hob_scope *scope,
                         struct hob_segment *segment, hob_tensor *const *inputs,
                         uint32_t input_count, hob_tensor **out)
{
    const struct ad_layer *layer = (const struct ad_layer *)instance;
    hob_tensor **hidden = calloc(input_count + 1u, sizeof(*hidden));
    hob_status status;

    status = hidden ? first_run(layer, scope, &segment, inputs, hidden,
                                input_count, out)
                    : no_memory(layer, scope);
    for (uint32_t i = 0; hidden && i < input_count; i++)
        layer->host->tensor_unref(hidden[i]);
    free(hidden);
    if (segment)
        segment->release(segment);
    return status;
}

/* ---- another run, in a walk ---- */

static hob_status pass_gate(hob_scope *scope, const struct hob_grad_call *call)
{
    (void)scope;
    for (uint32_t i = 0; i < call->input_count; i++)
        call->out_grads[i] = call->grads[i];
    return HOB_OK;
}

static const struct hob_backward gate_rule = {
    .struct_size = sizeof(struct hob_backward), .backward = pass_gate};

/* Handles for NODE's inputs in SCOPE, with slots of a new gate where the
 * inputs were tracked. */
static hob_status open_gate(const struct ad_layer *layer, hob_scope *scope,
                            const struct ad_node *node,
                            hob_tensor *const *saved, hob_tensor **out)
{
    struct ad_node *gate =
        node_new(layer, saved, node->input_count, saved, node->input_count);
    hob_status status = HOB_OK;

    if (!gate)
        return no_memory(layer, scope);
    gate->rule = &gate_rule;
    ad_node_retain_handle(gate);
    for (uint32_t i = 0; i < node->input_count && !status; i++) {
        struct ad_slot *slot = NULL;

        if (node->inputs[i].edge) {
            add_edge(gate, i, node->inputs[i].edge);
            slot = &gate->slots[i];
            ad_node_retain_handle(gate);
        }
        status = ad_rehandle(layer, scope, saved[i], slot, &out[i]);
    }
    ad_node_release_handle(layer->host, gate);
    return status;
}

/* MADE must be what the first run made, but for the elements. */
static hob_status check_made(const struct ad_walk *walk,
                             const struct ad_node *node,
                             hob_tensor *const *made)
{
    const int64_t *cursor = node->ret_metas;

    for (uint32_t i = 0; i < node->ret_count; i++) {
        struct hob_meta want, is;

        ad_node_meta_next(&cursor, &want);
        meta_of(&is, made[i]);
        if (memcmp(&want, &is, sizeof(want)) != 0)
            return ad_message(
                walk->layer->host, walk->out_message, HOB_ERR_ARGUMENT,
                "a segment of hob_checkpoint() made result %u in another shape "
                "or dtype than the first time: it must do the same each time",
                i);
    }
    return HOB_OK;
}

/* Run NODE's segment in SCOPE; LISTS has room for its inputs twice, then for
 * its results. */
static hob_status run_again(struct ad_walk *walk, hob_scope *scope,
                            const struct ad_entry *entry, hob_tensor **lists)
{
    struct ad_node *node = entry->node;
    hob_tensor **saved = lists;
    hob_tensor **inputs = saved + node->input_count;
    hob_tensor **made = inputs + node->input_count;
    hob_status status;

    for (uint32_t i = 0; i < node->input_count; i++)
        saved[i] = node->inputs[i].saved;
    status = open_gate(walk->layer, scope, node, saved, inputs);
    if (!status)
        status = node->segment->run(node->segment, scope, inputs,
                                    node->input_count, made);
    if (status)
        return ad_message(walk->layer->host, walk->out_message, status,
                          "in a segment of hob_checkpoint(), run again");
    status = check_made(walk, node, made);
    for (uint32_t i = 0; i < node->ret_count && !status; i++) {
        const struct ad_slot *slot = ad_slot_of(walk->layer, made[i]);

        if (slot && entry->grads[i])
            status = ad_add_grad(walk, scope, slot, entry->grads[i]);
    }
    return status;
}

/* Add the gradients of ENTRY to LIST, if there is one; how many there are. */
static uint32_t list_grads(const struct ad_entry *entry, hob_tensor **list)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < entry->node->ret_count; i++) {
        if (!entry->grads[i])
            continue;
        if (list)
            list[count] = entry->grads[i];
        count++;
    }
    return count;
}

/* Where ops are put off, what is recorded of the walk so far keeps all that was
 * computed again: it is to be gone before more is. Together, so that each runs
 * in its turn; without memory for the list it all goes on as it is. */
static void compute_waiting(const struct ad_walk *walk,
                            const struct ad_entry *entry)
{
    uint32_t count = list_grads(entry, NULL);
    hob_tensor **list;

    for (size_t i = 0; i < walk->heap_count; i++)
        count += list_grads(walk->heap[i], NULL);
    list = calloc(count + 1u, sizeof(*list));
    if (!list)
        return;
    count = list_grads(entry, list);
    for (size_t i = 0; i < walk->heap_count; i++)
        count += list_grads(walk->heap[i], list + count);
    walk->layer->host->eval(list, count);
    free(list);
}

hob_status ad_segment_again(struct ad_walk *walk, const struct ad_entry *entry)
{
    const struct hob_host *host = walk->layer->host;
    const struct ad_node *node = entry->node;
    hob_tensor **lists =
        calloc(2u * node->input_count + node->ret_count + 1u, sizeof(*lists));
    struct hob_scope_frame frame;
    hob_scope *scope;
    hob_status status;

    if (!lists)
        return ad_message(host, walk->out_message, HOB_ERR_MEMORY,
                          "no memory to run a segment again");
    compute_waiting(walk, entry);
    scope = host->scope_enter(walk->scope, &frame, walk->layer->level);
    status = run_again(walk, scope, entry, lists);
    host->scope_leave(scope);
    free(lists);
    return status;
}

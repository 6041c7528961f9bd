/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - computing again what was not saved.
 *
 * Under the strategy "balanced" the result of a memory-bound op is not saved
 * for those who need it. The op's node keeps its own inputs instead, or
 * relies on their nodes likewise, and the recorded call is replayed on them
 * one level down. Kernels are pure, so the elements are the same bit for bit.
 *
 * A replayed result stays until its own node has run: whoever needs it has a
 * greater order, so has run by then. A chain of such ops is therefore
 * computed again once, not once a member.
 */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

/* Nodes that wait to be replayed, the one to do next on top. */
struct stack {
    struct ad_node **items;
    size_t count;
    size_t capacity;
};

static int push(struct stack *stack, struct ad_node *node)
{
    if (stack->count == stack->capacity) {
        size_t capacity = stack->capacity ? stack->capacity * 2 : 64;
        struct ad_node **items =
            realloc(stack->items, capacity * sizeof(*items));

        if (!items)
            return 1;
        stack->items = items;
        stack->capacity = capacity;
    }
    stack->items[stack->count++] = node;
    return 0;
}

static hob_status no_memory(const struct ad_walk *walk,
                            const struct ad_node *node)
{
    return ad_message(walk->layer->host, walk->out_message, HOB_ERR_MEMORY,
                      "no memory to compute %s again", node->op_name);
}

/* Push the nodes that NODE's inputs need and that are not replayed yet. */
static int push_missing(struct ad_walk *walk, struct stack *stack,
                        const struct ad_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct ad_input *input = &node->inputs[i];

        if (input->flags & AD_INPUT_SOURCE && input->flags & AD_INPUT_REPLAY &&
            !ad_map_get(&walk->values, input->edge->node) &&
            push(stack, input->edge->node))
            return 1;
    }
    return 0;
}

/* The elements of INPUT of a node that is being replayed. */
static hob_tensor *source_of(const struct ad_walk *walk,
                             const struct ad_input *input)
{
    hob_tensor **values;

    if (!(input->flags & AD_INPUT_REPLAY))
        return input->saved;
    values = (hob_tensor **)ad_map_get(&walk->values, input->edge->node);
    return values[input->edge->index];
}

/* Put the tensors of NODE back into a copy of its arguments. */
static void fill_args(const struct ad_walk *walk, const struct ad_node *node,
                      hob_value *args, hob_tensor **lists)
{
    const struct ad_input *input = node->inputs;

    memcpy(args, node->args, node->arg_count * sizeof(*args));
    for (uint32_t i = 0; i < node->arg_count; i++) {
        if (args[i].tag == HOB_TAG_TENSOR) {
            args[i].u.tensor = source_of(walk, input++);
        } else if (args[i].tag == HOB_TAG_TENSORS) {
            args[i].u.tensors = lists;
            for (uint32_t j = 0; j < args[i].count; j++)
                *lists++ = source_of(walk, input++);
        } else if (args[i].tag == HOB_TAG_ABSENT) {
            input += args[i].count;
        }
    }
}

/* Run NODE's call again; its inputs are all there. */
static hob_status replay_one(struct ad_walk *walk, struct ad_node *node)
{
    const struct hob_host *host = walk->layer->host;
    struct hob_scope_frame frame;
    hob_scope *scope;
    hob_value args[HOB_MAX_PARAMS];
    hob_tensor **values = calloc(node->ret_count, sizeof(*values));
    hob_tensor **lists = malloc((node->input_count + 1u) * sizeof(*lists));
    uint32_t count = 0;
    hob_status status;

    if (!values || !lists || node->arg_count > HOB_MAX_PARAMS) {
        free(values);
        free(lists);
        return no_memory(walk, node);
    }
    scope = host->scope_enter(walk->scope, &frame, walk->layer->level - 1);
    fill_args(walk, node, args, lists);
    status = host->calln(scope, node->op, args, node->arg_count, values,
                         node->ret_count, &count);
    for (uint32_t i = 0; i < node->ret_count && !status; i++)
        if (values[i]) /* NULL: absent */
            host->tensor_ref(values[i]);
    if (!status && ad_map_put(&walk->values, node, values)) {
        for (uint32_t i = 0; i < node->ret_count; i++)
            host->tensor_unref(values[i]);
        status = no_memory(walk, node);
    }
    if (!status) /* whoever needed it may let go of it before the walk does */
        ad_node_ref(node);
    host->scope_leave(scope);
    if (status)
        free(values);
    free(lists);
    return status;
}

hob_status ad_replay(struct ad_walk *walk, const struct ad_slot *slot,
                     hob_tensor **out_tensor)
{
    struct stack stack = {NULL, 0, 0};
    hob_tensor **values;
    hob_status status = HOB_OK;

    *out_tensor = NULL;
    if (!ad_map_get(&walk->values, slot->node) && push(&stack, slot->node))
        status = no_memory(walk, slot->node);
    while (!status && stack.count) {
        struct ad_node *node = stack.items[stack.count - 1];
        size_t before = stack.count;
        /* What is consumed has let go of its sources; the claim keeps
         * another walk from consuming it now. The node that is running
         * right now is this walk's own. */
        int running = node == walk->running;

        if (ad_map_get(&walk->values, node)) {
            stack.count--;
            continue;
        }
        if (!running && ad_node_claim(node, 0)) {
            status = ad_consumed(walk, node);
            break;
        }
        if (push_missing(walk, &stack, node))
            status = no_memory(walk, node);
        else if (stack.count == before)
            status = replay_one(walk, node);
        if (!running)
            ad_node_unclaim(walk->layer->host, node);
    }
    free(stack.items);
    values = (hob_tensor **)ad_map_get(&walk->values, slot->node);
    if (!status)
        *out_tensor = values[slot->index];
    return status;
}

static void free_values(const struct ad_walk *walk, struct ad_node *node,
                        hob_tensor **values)
{
    const struct hob_host *host = walk->layer->host;

    for (uint32_t i = 0; i < node->ret_count; i++)
        host->tensor_unref(values[i]);
    free(values);
    ad_node_unref(host, node);
}

void ad_values_drop(struct ad_walk *walk, struct ad_node *node)
{
    hob_tensor **values = (hob_tensor **)ad_map_take(&walk->values, node);

    if (values)
        free_values(walk, node, values);
}

void ad_values_release(struct ad_walk *walk)
{
    for (size_t i = 0; i < walk->values.capacity; i++) {
        const struct ad_map_entry *entry = &walk->values.entries[i];

        /* The map's keys are const; this one came from replay_one(). */
        if (entry->key)
            free_values(walk, (struct ad_node *)(uintptr_t)entry->key,
                        (hob_tensor **)entry->value);
    }
    ad_map_release(&walk->values);
}

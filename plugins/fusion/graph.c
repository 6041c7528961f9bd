/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - nodes: made of a call, linked, dropped.
 */
#include "node.h"

#include <stdlib.h>
#include <string.h>

/* ---- garbage ---- */

void fu_garbage_burn(struct fu_garbage *garbage)
{
    while (garbage->count)
        garbage->host->tensor_unref(garbage->tensors[--garbage->count]);
    if (garbage->tensors != garbage->few)
        free(garbage->tensors);
    fu_garbage_init(garbage, garbage->host);
}

static void keep_for_later(struct fu_garbage *garbage, hob_tensor *tensor)
{
    int is_few = garbage->tensors == garbage->few;
    hob_tensor **tensors;

    if (garbage->count == garbage->capacity) {
        tensors = realloc(is_few ? NULL : garbage->tensors,
                          2 * garbage->capacity * sizeof(hob_tensor *));
        if (!tensors) { /* better with the lock held than never */
            garbage->host->tensor_unref(tensor);
            return;
        }
        if (is_few)
            memcpy(tensors, garbage->few, sizeof(garbage->few));
        garbage->tensors = tensors;
        garbage->capacity *= 2;
    }
    garbage->tensors[garbage->count++] = tensor;
}

static inline void throw_away(struct fu_garbage *garbage, hob_tensor *tensor)
{
    if (tensor)
        keep_for_later(garbage, tensor);
}

/* ---- nodes ---- */

void fu_node_unlink_locked(struct fu_node *node)
{
    *node->link = node->next;
    if (node->next)
        node->next->link = node->link;
    node->next = NULL;
    node->link = NULL;
}

struct fu_value *fu_leaf_new_locked(struct fu_layer *layer, hob_tensor *tensor)
{
    const struct hob_view *view = hob_tensor_view(tensor);
    const size_t bytes = sizeof(struct fu_node) + sizeof(struct fu_value) +
                         view->rank * sizeof(int64_t);
    struct fu_node *node = fu_pool_take(&layer->pool, bytes);
    struct fu_value *value;

    if (!node)
        return NULL;
    memset(node, 0, sizeof(*node) + sizeof(*value));
    node->refs = 1;
    node->bytes = (uint32_t)bytes;
    node->slot = UINT32_MAX;
    node->state = FU_NODE_DONE;
    node->values = value = (struct fu_value *)(void *)(node + 1);
    value->node = node;
    value->tensor = tensor;
    value->settled = 1;
    value->dtype = view->dtype;
    value->rank = view->rank;
    value->scheme = view->scheme;
    value->shape = (int64_t *)(void *)(value + 1);
    memcpy(value->shape, view->shape, view->rank * sizeof(int64_t));
    return value;
}

/* ---- the end of one ---- */

void fu_node_unref_locked(struct fu_layer *layer, struct fu_node *node)
{
    if (--node->refs)
        return;
    if (node->kind)
        fu_kind_unref_locked(layer, node->kind);
    fu_node_give_locked(layer, node);
}

/* Nobody wants VALUE any more; a node that is wanted for nothing goes to the
 * list DEAD. */
static inline void value_ends(struct fu_value *value, struct fu_node **dead,
                              struct fu_garbage *garbage)
{
    struct fu_node *node = value->node;

    throw_away(garbage, value->tensor);
    value->tensor = NULL;
    if (node->state == FU_NODE_DONE || --node->wanted ||
        node->state != FU_NODE_PENDING)
        return;
    fu_node_unlink_locked(node);
    node->state = FU_NODE_DONE;
    node->refs++; /* of the list */
    node->next = *dead;
    *dead = node;
}

static inline void drop_inputs(struct fu_layer *layer, struct fu_node *node,
                               struct fu_node **dead,
                               struct fu_garbage *garbage)
{
    layer->held -= node->held;
    node->held = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        struct fu_value *value = node->inputs[i].value;

        if (!value) {
            throw_away(garbage, node->inputs[i].tensor);
            continue;
        }
        value->users--;
        if (!fu_is_wanted(value) && !value->settled)
            value_ends(value, dead, garbage);
        fu_node_unref_locked(layer, value->node);
    }
    node->input_count = 0;
}

static inline void bury(struct fu_layer *layer, struct fu_node *dead,
                        struct fu_garbage *garbage)
{
    while (dead) {
        struct fu_node *node = dead;

        dead = node->next;
        node->next = NULL;
        drop_inputs(layer, node, &dead, garbage);
        fu_node_unref_locked(layer, node);
    }
}

void fu_inputs_drop_locked(struct fu_layer *layer, struct fu_node *node,
                           struct fu_garbage *garbage)
{
    struct fu_node *dead = NULL;

    drop_inputs(layer, node, &dead, garbage);
    bury(layer, dead, garbage);
}

void fu_node_resume_locked(struct fu_layer *layer, struct fu_node *node,
                           struct fu_garbage *garbage)
{
    if (node->wanted) {
        node->state = FU_NODE_PENDING;
        fu_node_pend_locked(layer, node);
    } else {
        node->state = FU_NODE_DONE;
        fu_inputs_drop_locked(layer, node, garbage);
    }
}

void fu_node_inherit_locked(struct fu_layer *layer, struct fu_node *node,
                            const void *scope)
{
    fu_node_unlink_locked(node);
    node->scope = scope;
    node->is_inherited = 1;
    fu_node_pend_locked(layer, node);
}

/* One handle fewer waits for VALUE: what dies of it goes to the list DEAD. */
static inline void value_leave(struct fu_value *value, struct fu_node **dead,
                               struct fu_garbage *garbage)
{
    value->handles--;
    if (!fu_is_wanted(value))
        value_ends(value, dead, garbage);
}

void fu_value_leave_locked(struct fu_layer *layer, struct fu_value *value,
                           struct fu_garbage *garbage)
{
    struct fu_node *dead = NULL;

    value_leave(value, &dead, garbage);
    bury(layer, dead, garbage);
}

void fu_value_forget_locked(struct fu_value *value, struct fu_garbage *garbage)
{
    if (--value->settled || fu_is_wanted(value))
        return;
    throw_away(garbage, value->tensor);
    value->tensor = NULL;
}

void fu_handles_end(struct fu_layer *layer, void *const *words, uint32_t count)
{
    struct fu_node *dead = NULL;
    struct fu_garbage garbage;

    fu_garbage_init(&garbage, layer->host);
    fu_lock(&layer->lock);
    for (uint32_t i = 0; i < count; i++) {
        struct fu_value *value = fu_value_of(words[i]);

        if (fu_is_settled(words[i]))
            fu_value_forget_locked(value, &garbage);
        else
            value_leave(value, &dead, &garbage);
        fu_node_unref_locked(layer, value->node);
    }
    bury(layer, dead, &garbage);
    fu_unlock(&layer->lock);
    fu_garbage_empty(&garbage);
}

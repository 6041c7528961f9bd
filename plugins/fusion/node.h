/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - the making of a node: inline, as it is done for each op. The layer's
 * lock is held.
 */
#ifndef HOB_FUSION_NODE_H
#define HOB_FUSION_NODE_H

#include "fusion.h"

/* The list of the nodes that were recorded in SCOPE. */
static inline struct fu_node **fu_list_of(struct fu_layer *layer,
                                          const void *scope)
{
    uint64_t hash = (uintptr_t)scope * UINT64_C(0x9e3779b97f4a7c15);

    return &layer->pending[(hash >> 32) % FU_LISTS];
}

/* NODE goes to the list of its scope. */
static inline void fu_node_pend_locked(struct fu_layer *layer,
                                       struct fu_node *node)
{
    struct fu_node **list = fu_list_of(layer, node->scope);

    node->next = *list;
    node->link = list;
    if (node->next)
        node->next->link = &node->next;
    *list = node;
}

/*
 * A node of KIND, of call INDEX in SCOPE of the program; its values have one
 * handle each to come. Its inputs are the caller's to fill in: then it is
 * linked, or given back. NULL without memory.
 */
static inline struct fu_node *fu_node_new_locked(struct fu_layer *layer,
                                                 const struct fu_kind *kind,
                                                 const void *scope,
                                                 uint64_t index)
{
    const uint32_t count = kind->node.ret_count;
    struct fu_node *node = fu_pool_take(&layer->pool, kind->node.bytes);

    if (!node)
        return NULL;
    *node = kind->node;
    node->index = index;
    node->scope = scope;
    node->values = (struct fu_value *)(void *)(node + 1);
    node->inputs = (struct fu_input *)(void *)(node->values + count);
    for (uint32_t i = 0; i < count; i++) {
        node->values[i] = kind->values[i];
        node->values[i].node = node;
    }
    return node;
}

static inline void fu_node_give_locked(struct fu_layer *layer,
                                       struct fu_node *node)
{
    fu_pool_give(&layer->pool, node, node->bytes);
}

/* NODE, of KIND, is pending now. It takes KIND, and the tensors among its
 * inputs. */
static inline void fu_node_link_locked(struct fu_layer *layer,
                                       struct fu_node *node,
                                       struct fu_kind *kind)
{
    uint32_t depth = 1;

    for (uint32_t i = 0; i < node->input_count; i++) {
        struct fu_value *value = node->inputs[i].value;

        if (!value)
            continue;
        value->users++;
        value->node->refs++;
        if (depth <= value->node->depth)
            depth = value->node->depth + 1;
    }
    node->depth = depth;
    node->order = ++layer->order;
    node->kind = kind;
    layer->held += node->held;
    layer->counts.recorded++;
    fu_node_pend_locked(layer, node);
}

#endif

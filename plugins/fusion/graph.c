/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - nodes: made of a call, linked, dropped.
 */
#include "fusion.h"

#include <stdlib.h>
#include <string.h>

/* ---- garbage ---- */

void fu_garbage_init(struct fu_garbage *garbage, const struct hob_host *host)
{
    garbage->host = host;
    garbage->tensors = garbage->few;
    garbage->count = 0;
    garbage->capacity = sizeof(garbage->few) / sizeof(garbage->few[0]);
}

void fu_garbage_empty(struct fu_garbage *garbage)
{
    while (garbage->count)
        garbage->host->tensor_unref(garbage->tensors[--garbage->count]);
    if (garbage->tensors != garbage->few)
        free(garbage->tensors);
    fu_garbage_init(garbage, garbage->host);
}

static void throw_away(struct fu_garbage *garbage, hob_tensor *tensor)
{
    int is_few = garbage->tensors == garbage->few;
    hob_tensor **tensors;

    if (!tensor)
        return;
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

/* ---- the making of a node ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* The bytes behind the args that VALUE's payload takes. */
static size_t payload_bytes(const hob_value *value)
{
    switch (value->tag) {
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        return value->count * sizeof(int64_t);
    case HOB_TAG_STR:
        return rounded((size_t)value->count + 1);
    default:
        return 0;
    }
}

/* Copy VALUE, an attribute or what stands for a tensor, its payload to AT. */
static char *copy_arg(const struct fu_layer *layer, hob_value *out,
                      const hob_value *value, char *at)
{
    size_t bytes = payload_bytes(value);

    *out = *value;
    out->flags = 0;
    switch (value->tag) {
    case HOB_TAG_TENSOR:
    case HOB_TAG_TENSORS:
        out->u.u64 = 0;
        break;
    case HOB_TAG_DEVICE:
        out->u.device = layer->below; /* where it will run */
        break;
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        if (bytes)
            memcpy(at, value->u.i64s, bytes);
        out->u.i64s = (const int64_t *)(const void *)at;
        break;
    case HOB_TAG_STR:
        memcpy(at, value->u.str, value->count);
        at[value->count] = '\0';
        out->u.str = at;
        break;
    default:
        break;
    }
    return at + bytes;
}

struct fu_node **fu_list_of(struct fu_layer *layer, const void *scope)
{
    uint64_t hash = (uintptr_t)scope * UINT64_C(0x9e3779b97f4a7c15);

    return &layer->pending[(hash >> 32) % FU_LISTS];
}

static void link_pending(struct fu_layer *layer, struct fu_node *node)
{
    struct fu_node **list = fu_list_of(layer, node->scope);

    node->next = *list;
    node->link = list;
    if (node->next)
        node->next->link = &node->next;
    *list = node;
}

void fu_node_unlink_locked(struct fu_node *node)
{
    *node->link = node->next;
    if (node->next)
        node->next->link = node->link;
    node->next = NULL;
    node->link = NULL;
}

/* The values of NODE, whose shapes come to AT. */
static void make_values(struct fu_node *node, const struct hob_call *call,
                        int64_t *at)
{
    for (uint32_t i = 0; i < node->ret_count; i++) {
        const struct hob_meta *meta = &call->metas[i];
        struct fu_value *value = &node->values[i];
        int is_there = meta->dtype != HOB_DTYPE_NONE;

        value->node = node;
        value->tensor = NULL;
        value->handles = is_there;
        value->settled = 0;
        value->users = 0;
        atomic_init(&value->handle, NULL);
        value->dtype = meta->dtype;
        value->rank = meta->rank;
        value->reserved = 0;
        value->scheme = meta->scheme;
        value->shape = at;
        for (uint32_t k = 0; k < meta->rank; k++)
            *at++ = meta->shape[k];
        node->wanted += is_there;
    }
}

/* Bytes of elements that CALL is the last to use, as far as they are there. */
static uint64_t held_by(const struct hob_call *call,
                        const struct fu_input *inputs)
{
    uint64_t bytes = 0;
    uint32_t at = 0;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *arg = &call->args[i];
        const hob_tensor *tensor;

        if (arg->tag == HOB_TAG_TENSORS)
            at += arg->count;
        if (arg->tag != HOB_TAG_TENSOR)
            continue;
        tensor = fu_tensor_of(&inputs[at++]);
        if ((arg->flags & HOB_VALUE_MOVE) && tensor)
            bytes += (uint64_t)hob_tensor_count(tensor) *
                     hob_dtype_size(hob_tensor_dtype(tensor));
    }
    return bytes;
}

static void link_inputs(struct fu_node *node, const struct fu_input *inputs)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        struct fu_value *value = inputs[i].value;

        node->inputs[i] = inputs[i];
        if (!value)
            continue;
        value->users++;
        value->node->refs++;
        if (node->depth <= value->node->depth)
            node->depth = value->node->depth + 1;
    }
}

struct fu_node *fu_node_new_locked(struct fu_layer *layer,
                                   const struct hob_call *call,
                                   const struct hob_call_origin *origin,
                                   const struct fu_input *inputs,
                                   uint32_t count)
{
    size_t bytes =
        sizeof(struct fu_node) + call->ret_count * sizeof(struct fu_value) +
        count * sizeof(struct fu_input) + call->arg_count * sizeof(hob_value);
    struct fu_node *node;
    char *at;

    for (uint32_t i = 0; i < call->arg_count; i++)
        bytes += payload_bytes(&call->args[i]);
    for (uint32_t i = 0; i < call->ret_count; i++)
        bytes += call->metas[i].rank * sizeof(int64_t);
    if (bytes > UINT32_MAX)
        return NULL;
    node = fu_pool_take(&layer->pool, bytes);
    if (!node)
        return NULL;
    node->order = ++layer->order;
    node->index = origin->index;
    node->stamp = 0;
    node->scope = origin->scope;
    node->refs = 0;
    node->wanted = 0;
    node->op = call->op;
    node->depth = 1;
    node->bytes = (uint32_t)bytes;
    node->arg_count = call->arg_count;
    node->plain_count = call->plain_count;
    node->input_count = count;
    node->ret_count = call->ret_count;
    node->slot = UINT32_MAX;
    node->state = FU_NODE_PENDING;
    node->fuse = (uint8_t)origin->fuse;
    node->is_asked = 0;
    node->is_computed = 0;
    layer->counts.recorded++;
    node->values = (struct fu_value *)(void *)(node + 1);
    node->inputs = (struct fu_input *)(void *)(node->values + node->ret_count);
    node->args = (hob_value *)(void *)(node->inputs + count);
    at = (char *)(node->args + node->arg_count);
    for (uint32_t i = 0; i < node->arg_count; i++)
        at = copy_arg(layer, &node->args[i], &call->args[i], at);
    make_values(node, call, (int64_t *)(void *)at);
    node->refs = node->wanted;
    node->held = held_by(call, inputs);
    layer->held += node->held;
    link_inputs(node, inputs);
    link_pending(layer, node);
    return node;
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
    if (!--node->refs)
        fu_pool_give(&layer->pool, node, node->bytes);
}

/* Nobody wants VALUE any more; a node that is wanted for nothing goes to the
 * list DEAD. */
static void value_ends(struct fu_value *value, struct fu_node **dead,
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

static void drop_inputs(struct fu_layer *layer, struct fu_node *node,
                        struct fu_node **dead, struct fu_garbage *garbage)
{
    layer->held -= node->held;
    node->held = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        struct fu_value *value = node->inputs[i].value;

        throw_away(garbage, node->inputs[i].tensor);
        if (!value)
            continue;
        value->users--;
        if (!fu_is_wanted(value) && !value->settled)
            value_ends(value, dead, garbage);
        fu_node_unref_locked(layer, value->node);
    }
    node->input_count = 0;
}

static void bury(struct fu_layer *layer, struct fu_node *dead,
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
        link_pending(layer, node);
    } else {
        node->state = FU_NODE_DONE;
        fu_inputs_drop_locked(layer, node, garbage);
    }
}

void fu_value_leave_locked(struct fu_layer *layer, struct fu_value *value,
                           struct fu_garbage *garbage)
{
    struct fu_node *dead = NULL;

    value->handles--;
    if (!fu_is_wanted(value))
        value_ends(value, &dead, garbage);
    bury(layer, dead, garbage);
}

void fu_value_forget_locked(struct fu_value *value, struct fu_garbage *garbage)
{
    if (--value->settled || fu_is_wanted(value))
        return;
    throw_away(garbage, value->tensor);
    value->tensor = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.c - what the nodes of calls that are alike have in common.
 */
#include "fusion.h"

#include <stdlib.h>
#include <string.h>

static size_t rounded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* The bytes behind the args that the payload of VALUE, no tensor, takes. */
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

/* Copy VALUE, an attribute, its payload to AT. */
static char *copy_attribute(const struct fu_layer *layer, hob_value *out,
                            const hob_value *value, char *at)
{
    const size_t bytes = payload_bytes(value);

    *out = *value;
    switch (value->tag) {
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

/* The inputs of CALL's node. */
static uint32_t count_inputs(const struct hob_call *call)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < call->arg_count; i++)
        if (call->args[i].tag == HOB_TAG_TENSOR)
            count++;
        else if (call->args[i].tag == HOB_TAG_TENSORS)
            count += call->args[i].count;
    return count;
}

/* The arguments of KIND, whose payloads come to AT. Returns their end. */
static char *make_args(const struct fu_layer *layer, hob_value *args,
                       const struct hob_call *call, char *at)
{
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];

        if (value->tag == HOB_TAG_TENSOR || value->tag == HOB_TAG_TENSORS)
            args[i] = hob_value_make(value->tag, value->count);
        else
            at = copy_attribute(layer, &args[i], value, at);
        args[i].flags = 0;
    }
    return at;
}

/* The values of KIND, whose shapes come to AT. */
static void make_values(struct fu_kind *kind, const struct hob_call *call,
                        int64_t *at)
{
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob_meta *meta = &call->metas[i];
        const int is_there = meta->dtype != HOB_DTYPE_NONE;
        struct fu_value *value = &kind->values[i];

        value->handles = is_there;
        value->dtype = meta->dtype;
        value->rank = meta->rank;
        value->scheme = meta->scheme;
        value->shape = at;
        memcpy(at, meta->shape, meta->rank * sizeof(int64_t));
        at += meta->rank;
        kind->node.wanted += (uint32_t)is_there;
    }
    kind->node.refs = kind->node.wanted;
}

static void make_node(struct fu_node *node, const struct hob_call *call,
                      const struct hob_call_origin *origin, uint32_t inputs)
{
    node->op = call->op;
    node->bytes =
        (uint32_t)(sizeof(*node) + call->ret_count * sizeof(struct fu_value) +
                   inputs * sizeof(struct fu_input));
    node->arg_count = call->arg_count;
    node->plain_count = call->plain_count;
    node->input_count = inputs;
    node->ret_count = call->ret_count;
    node->slot = UINT32_MAX;
    node->state = FU_NODE_PENDING;
    node->fuse = (uint8_t)origin->fuse;
}

/* KIND has the place of its number. */
static void keep(struct fu_layer *layer, struct fu_kind *kind)
{
    struct fu_kind_slot *slot = &layer->kinds[kind->number % FU_KINDS];

    if (slot->kind)
        fu_kind_unref_locked(layer, slot->kind);
    kind->refs++;
    slot->kind = kind;
    atomic_store_explicit(&slot->number, kind->number, memory_order_relaxed);
}

struct fu_kind *fu_kind_new_locked(struct fu_layer *layer,
                                   const struct hob_call *call,
                                   const struct hob_call_origin *origin)
{
    const uint32_t inputs = count_inputs(call);
    size_t bytes = sizeof(struct fu_kind) +
                   call->ret_count * sizeof(struct fu_value) +
                   call->arg_count * sizeof(hob_value);
    struct fu_kind *kind;
    hob_value *args;
    char *at;

    for (uint32_t i = 0; i < call->arg_count; i++)
        bytes += payload_bytes(&call->args[i]);
    for (uint32_t i = 0; i < call->ret_count; i++)
        bytes += call->metas[i].rank * sizeof(int64_t);
    if (bytes > UINT32_MAX || inputs > UINT32_MAX / 64)
        return NULL;
    kind = fu_pool_take(&layer->pool, bytes);
    if (!kind)
        return NULL;
    memset(kind, 0, sizeof(*kind) + call->ret_count * sizeof(struct fu_value));
    kind->number = origin->kind;
    kind->refs = 1;
    kind->bytes = (uint32_t)bytes;
    kind->values = (struct fu_value *)(void *)(kind + 1);
    args = (hob_value *)(void *)(kind->values + call->ret_count);
    make_node(&kind->node, call, origin, inputs);
    kind->node.args = args;
    at = make_args(layer, args, call, (char *)(args + call->arg_count));
    make_values(kind, call, (int64_t *)(void *)at);
    if (kind->number)
        keep(layer, kind);
    return kind;
}

void fu_kind_unref_locked(struct fu_layer *layer, struct fu_kind *kind)
{
    if (--kind->refs)
        return;
    if (kind->words)
        free(kind->words);
    fu_pool_give(&layer->pool, kind, kind->bytes);
}

void fu_kind_keep_words(struct fu_kind *kind, const uint64_t *words,
                        size_t count)
{
    kind->words = malloc(count * sizeof(*words));
    if (!kind->words)
        return;
    memcpy(kind->words, words, count * sizeof(*words));
    kind->word_count = (uint32_t)count;
}

void fu_kinds_release(struct fu_layer *layer)
{
    for (uint32_t i = 0; i < FU_KINDS; i++)
        if (layer->kinds[i].kind)
            fu_kind_unref_locked(layer, layer->kinds[i].kind);
}

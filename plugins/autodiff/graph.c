/* SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include <string.h>

/* ---- metadata, packed: dtype, rank, scheme in a word, then the sizes ---- */

static uint32_t slots_of(const hob_value *value)
{
    /* An absent tensor keeps a slot, an absent attribute has none. */
    if (value->tag == HOB_TAG_TENSORS || value->tag == HOB_TAG_ABSENT)
        return value->count;
    return value->tag == HOB_TAG_TENSOR;
}

static int64_t *meta_put(int64_t *out, uint32_t dtype, uint32_t scheme,
                         uint32_t rank, const int64_t *shape)
{
    *out++ = (int64_t)(dtype | rank << 8 | (uint64_t)scheme << 32);
    for (uint32_t i = 0; i < rank; i++)
        *out++ = shape[i];
    return out;
}

static int64_t *meta_put_tensor(int64_t *out, hob_tensor *tensor)
{
    const struct hob_view *view = hob_tensor_view(tensor);

    return meta_put(out, view->dtype, view->scheme, view->rank, view->shape);
}

void ad_node_meta_next(const int64_t **cursor, struct hob_meta *out)
{
    const int64_t *in = *cursor;
    uint64_t head = (uint64_t)*in++;

    memset(out, 0, sizeof(*out));
    out->dtype = (uint8_t)(head & 0xff);
    out->rank = (uint8_t)(head >> 8);
    out->scheme = (uint32_t)(head >> 32);
    for (uint32_t i = 0; i < out->rank; i++)
        out->shape[i] = *in++;
    *cursor = in;
}

void ad_node_ret_meta_put(int64_t **cursor, hob_tensor *tensor)
{
    *cursor = tensor ? meta_put_tensor(*cursor, tensor)
                     : meta_put(*cursor, HOB_DTYPE_NONE, 0, 0, NULL);
}

/* ---- making ---- */

/* What a node for a call needs, in counts and bytes. */
struct layout {
    size_t inputs;
    size_t meta_words;
    size_t payload_bytes;
};

/* Bytes behind an attribute's pointer, rounded up to whole words. */
static size_t payload_bytes(const hob_value *value)
{
    switch (value->tag) {
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        return (size_t)value->count * 8;
    case HOB_TAG_STR:
        return ((size_t)value->count + 1 + 7) & ~(size_t)7;
    default:
        return 0;
    }
}

static void measure(const struct hob_call *call, struct layout *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *arg = &call->args[i];
        uint32_t slots = slots_of(arg);

        out->inputs += slots;
        out->meta_words += slots;
        if (arg->tag == HOB_TAG_TENSOR)
            out->meta_words += hob_tensor_view(arg->u.tensor)->rank;
        else if (arg->tag == HOB_TAG_TENSORS)
            for (uint32_t j = 0; j < slots; j++)
                out->meta_words += hob_tensor_view(arg->u.tensors[j])->rank;
        else
            out->payload_bytes += payload_bytes(arg);
    }
    /* A dynamic op has no inferred sizes: room for any. */
    for (uint32_t i = 0; i < call->ret_count; i++)
        out->meta_words +=
            1 + (call->flags & HOB_CALL_DYNAMIC ? (size_t)HOB_MAX_RANK
                                                : call->metas[i].rank);
}

static void counts_init(struct ad_node *node)
{
    atomic_init(&node->refs, 1);
    atomic_init(&node->handles, 0);
    atomic_init(&node->claim, 0);
    atomic_init(&node->users, 1);
    node->order = 0;
    node->next_dead = NULL;
}

static void slots_init(struct ad_node *node)
{
    for (uint32_t i = 0; i < node->ret_count; i++) {
        node->slots[i].node = node;
        node->slots[i].index = i;
        node->slots[i].reserved = 0;
    }
}

struct ad_node *ad_leaf_new(struct ad_pool *pool)
{
    size_t bytes = sizeof(struct ad_node) + sizeof(struct ad_slot);
    struct ad_node *node = ad_pool_take(pool, bytes);

    if (!node)
        return NULL;
    memset(node, 0, bytes);
    node->pool = pool;
    node->bytes = (uint32_t)bytes;
    counts_init(node);
    atomic_init(&node->handles, 1);
    node->flags = AD_NODE_LEAF;
    node->ret_count = 1;
    node->slots = (struct ad_slot *)(void *)(node + 1);
    slots_init(node);
    return node;
}

/* Copy ARG without its tensors; lists and texts go to *PAYLOAD. */
static void copy_arg(hob_value *out, const hob_value *arg, char **payload)
{
    size_t bytes = payload_bytes(arg);

    *out = *arg;
    out->flags = 0;
    if (arg->tag == HOB_TAG_TENSOR || arg->tag == HOB_TAG_TENSORS) {
        out->u.tensor = NULL;
    } else if (arg->tag == HOB_TAG_I64S || arg->tag == HOB_TAG_F64S ||
               arg->tag == HOB_TAG_STR) {
        if (bytes)
            memcpy(*payload, arg->u.str,
                   arg->tag == HOB_TAG_STR ? (size_t)arg->count + 1 : bytes);
        out->u.str = bytes ? *payload : NULL;
        *payload += bytes;
    }
}

/* Fill the inputs' places and metadata, and the attributes. */
static int64_t *fill_args(struct ad_node *node, const struct hob_call *call,
                          char *payload)
{
    struct ad_input *input = node->inputs;
    int64_t *meta = node->metas;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *arg = &call->args[i];
        uint32_t slots = slots_of(arg);

        copy_arg(&node->args[i], arg, &payload);
        for (uint32_t j = 0; j < slots; j++, input++) {
            input->edge = NULL;
            input->saved = NULL;
            input->flags = 0;
            input->counted = 0;
            input->param = i;
            if (arg->tag == HOB_TAG_ABSENT)
                meta = meta_put(meta, HOB_DTYPE_NONE, 0, 0, NULL);
            else
                meta = meta_put_tensor(meta, arg->tag == HOB_TAG_TENSOR
                                                 ? arg->u.tensor
                                                 : arg->u.tensors[j]);
        }
    }
    return meta;
}

struct ad_node *ad_node_new(struct ad_pool *pool, const struct hob_call *call)
{
    struct layout layout;
    struct ad_node *node;
    size_t bytes;
    char *at;
    int64_t *meta;

    measure(call, &layout);
    bytes = sizeof(*node) + layout.inputs * sizeof(struct ad_input) +
            call->ret_count * (sizeof(hob_tensor *) + sizeof(struct ad_slot)) +
            (call->arg_count + (size_t)call->plain_count) * sizeof(hob_value) +
            layout.meta_words * 8 + layout.payload_bytes;
    if (layout.inputs > UINT16_MAX || bytes > UINT32_MAX)
        return NULL;
    node = ad_pool_take(pool, bytes);
    if (!node)
        return NULL;
    node->pool = pool;
    node->bytes = (uint32_t)bytes;
    counts_init(node);
    node->op_name = call->op_name;
    node->op = call->op;
    node->flags = 0;
    node->rule = NULL;
    node->segment = NULL;
    node->arg_count = call->arg_count;
    node->input_count = (uint16_t)layout.inputs;
    node->ret_count = call->ret_count;
    node->plain_count = call->plain_count;

    at = (char *)(node + 1);
    node->inputs = (struct ad_input *)(void *)at;
    at += layout.inputs * sizeof(struct ad_input);
    node->rets = (hob_tensor **)(void *)at;
    at += call->ret_count * sizeof(hob_tensor *);
    node->slots = (struct ad_slot *)(void *)at;
    at += call->ret_count * sizeof(struct ad_slot);
    node->args = (hob_value *)(void *)at;
    at += call->arg_count * sizeof(hob_value);
    node->plains = (hob_value *)(void *)at;
    at += call->plain_count * sizeof(hob_value);
    for (uint32_t i = 0; i < call->plain_count; i++)
        node->plains[i] = call->plains[i];
    node->metas = (int64_t *)(void *)at;
    at += layout.meta_words * 8;

    slots_init(node);
    meta = fill_args(node, call, at);
    node->ret_metas = meta;
    for (uint32_t i = 0; i < node->ret_count; i++) {
        node->rets[i] = NULL;
        meta = meta_put(meta, call->metas[i].dtype, call->metas[i].scheme,
                        call->metas[i].rank, call->metas[i].shape);
    }
    return node;
}

/* ---- reading and consuming ---- */

int ad_node_claim(struct ad_node *node, int consume)
{
    uint32_t claim = atomic_load_explicit(&node->claim, memory_order_relaxed);
    uint32_t next;

    do {
        if (claim & AD_CONSUMED)
            return 1;
        next = (claim + 1) | (consume ? AD_CONSUMED : 0);
    } while (!atomic_compare_exchange_weak_explicit(&node->claim, &claim, next,
                                                    memory_order_acquire,
                                                    memory_order_relaxed));
    return 0;
}

/* ---- freeing ---- */

/* Nodes that wait to be freed, and nodes whose sources nobody needs. */
struct work {
    struct ad_node *dead;
    struct ad_node *idle; /* each with a reference of the list's */
};

/* Take one reference away; NODE is dead if it was the last. */
static void unref_onto(struct ad_node *node, struct work *work)
{
    if (atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)
        return;
    node->next_dead = work->dead;
    work->dead = node;
}

/* One user less; without any NODE is idle, for good. */
static void unuse_onto(struct ad_node *node, struct work *work)
{
    if (atomic_fetch_sub_explicit(&node->users, 1, memory_order_acq_rel) != 1 ||
        !(node->flags & AD_NODE_REPLAYS))
        return;
    ad_node_ref(node);
    node->next_dead = work->idle;
    work->idle = node;
}

static void drop_input(const struct hob_host *host, struct ad_input *input,
                       struct work *work)
{
    host->tensor_unref(input->saved);
    input->saved = NULL;
    if (input->counted)
        unuse_onto(input->edge->node, work);
    input->counted = 0;
}

/* Give back all that NODE saved, and its edges. */
static void drop_all(const struct hob_host *host, struct ad_node *node,
                     struct work *work)
{
    if (node->segment)
        node->segment->release(node->segment);
    node->segment = NULL;
    for (uint32_t i = 0; i < node->input_count; i++) {
        struct ad_input *input = &node->inputs[i];
        struct ad_slot *edge = input->edge;

        drop_input(host, input, work);
        input->edge = NULL;
        if (edge)
            unref_onto(edge->node, work);
    }
    for (uint32_t i = 0; node->rets && i < node->ret_count; i++) {
        host->tensor_unref(node->rets[i]);
        node->rets[i] = NULL;
    }
}

static void unclaim_onto(const struct hob_host *host, struct ad_node *node,
                         struct work *work)
{
    if (atomic_fetch_sub_explicit(&node->claim, 1, memory_order_acq_rel) ==
        (AD_CONSUMED | 1))
        drop_all(host, node, work);
}

/*
 * Nobody can ask to replay NODE any more: what was kept for that alone is of
 * no use. The claim keeps a walk from freeing the same at the same time.
 */
static void drop_sources(const struct hob_host *host, struct ad_node *node,
                         struct work *work)
{
    if (ad_node_claim(node, 0))
        return;
    for (uint32_t i = 0; i < node->input_count; i++)
        if ((node->inputs[i].flags & ~(uint32_t)AD_INPUT_REPLAY) ==
            AD_INPUT_SOURCE)
            drop_input(host, &node->inputs[i], work);
    unclaim_onto(host, node, work);
}

static void finish(const struct hob_host *host, struct work *work)
{
    while (work->idle || work->dead) {
        struct ad_node *node = work->idle;

        if (node) {
            work->idle = node->next_dead;
            drop_sources(host, node, work);
            unref_onto(node, work);
        } else {
            node = work->dead;
            work->dead = node->next_dead;
            drop_all(host, node, work);
            ad_pool_give(node->pool, node, node->bytes);
        }
    }
}

void ad_node_unref(const struct hob_host *host, struct ad_node *node)
{
    struct work work = {NULL, NULL};

    unref_onto(node, &work);
    finish(host, &work);
}

void ad_node_release_handle(const struct hob_host *host, struct ad_node *node)
{
    struct work work = {NULL, NULL};

    if (atomic_fetch_sub_explicit(&node->handles, 1, memory_order_acq_rel) != 1)
        return;
    unuse_onto(node, &work);
    unref_onto(node, &work);
    finish(host, &work);
}

void ad_node_unclaim(const struct hob_host *host, struct ad_node *node)
{
    struct work work = {NULL, NULL};

    unclaim_onto(host, node, &work);
    finish(host, &work);
}

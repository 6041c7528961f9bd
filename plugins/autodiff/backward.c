/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward.c - the walk from a tensor to its leaves.
 *
 * A heap holds the nodes that a gradient has reached, the greatest order on
 * top. When a node comes up, every node that uses its results has run, so its
 * gradient is whole. Each step runs in a scope of its own: what a rule makes
 * on the way dies with the step.
 */
#include "walk.h"

#include <hob/autodiff.h>
#include <hob/ops.h>

#include <stdlib.h>
#include <string.h>

/* ---- the heap ---- */

static void sift_up(struct ad_entry **heap, size_t at)
{
    struct ad_entry *entry = heap[at];

    while (at && heap[(at - 1) / 2]->node->order < entry->node->order) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = entry;
}

static void sift_down(struct ad_entry **heap, size_t count)
{
    struct ad_entry *entry = heap[0];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= count)
            break;
        if (child + 1 < count &&
            heap[child]->node->order < heap[child + 1]->node->order)
            child++;
        if (heap[child]->node->order <= entry->node->order)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

static int heap_reserve(struct ad_walk *walk)
{
    size_t capacity = walk->heap_capacity ? walk->heap_capacity * 2 : 64;
    struct ad_entry **heap;

    if (walk->heap_count < walk->heap_capacity)
        return 0;
    heap = realloc(walk->heap, capacity * sizeof(*heap));
    if (!heap)
        return 1;
    walk->heap = heap;
    walk->heap_capacity = capacity;
    return 0;
}

static struct ad_entry *pop(struct ad_walk *walk)
{
    struct ad_entry *entry = walk->heap[0];

    walk->heap[0] = walk->heap[--walk->heap_count];
    if (walk->heap_count)
        sift_down(walk->heap, walk->heap_count);
    ad_map_take(&walk->pending, entry->node);
    return entry;
}

/* ---- gradients that wait ---- */

static hob_status no_memory(const struct ad_walk *walk)
{
    return ad_message(walk->layer->host, walk->out_message, HOB_ERR_MEMORY,
                      "no memory for the walk over the graph");
}

hob_status ad_consumed(const struct ad_walk *walk, const struct ad_node *node)
{
    return ad_message(
        walk->layer->host, walk->out_message, HOB_ERR_STATE,
        "an earlier backward has consumed the graph behind this "
        "tensor (at the result of %s): pass HOB_BACKWARD_RETAIN to the "
        "earlier one, or compute the tensor again",
        node->op_name);
}

static void entry_free(const struct ad_walk *walk, struct ad_entry *entry)
{
    const struct hob_host *host = walk->layer->host;

    for (uint32_t i = 0; i < entry->node->ret_count; i++)
        host->tensor_unref(entry->grads[i]);
    ad_node_unref(host, entry->node);
    free(entry);
}

static struct ad_entry *entry_of(struct ad_walk *walk, struct ad_node *node)
{
    struct ad_entry *entry =
        (struct ad_entry *)ad_map_get(&walk->pending, node);

    if (entry || heap_reserve(walk))
        return entry;
    entry = calloc(1, sizeof(*entry) + node->ret_count * sizeof(hob_tensor *));
    if (!entry || ad_map_put(&walk->pending, node, entry)) {
        free(entry);
        return NULL;
    }
    ad_node_ref(node);
    entry->node = node;
    walk->heap[walk->heap_count++] = entry;
    sift_up(walk->heap, walk->heap_count - 1);
    return entry;
}

hob_status ad_add_grad(struct ad_walk *walk, hob_scope *scope,
                       const struct ad_slot *slot, hob_tensor *grad)
{
    const struct hob_host *host = walk->layer->host;
    struct ad_entry *entry = entry_of(walk, slot->node);
    hob_tensor **place;
    hob_tensor *sum = grad;

    if (!entry)
        return no_memory(walk);
    place = &entry->grads[slot->index];
    if (*place) {
        /* The walk alone holds the old sum: it may be written in place. */
        sum = hob_add(scope, hob_move(scope, *place), grad);
        if (host->tensor_is_error(sum))
            return host->scope_status(scope);
        host->tensor_unref(*place);
        *place = NULL;
    }
    host->tensor_ref(sum);
    *place = sum;
    return HOB_OK;
}

/* ---- one step ---- */

/* The arrays of a struct hob_grad_call for a node, in the walk's scratch. */
struct step {
    struct hob_grad_call call;
    hob_tensor **inputs;
    hob_tensor **rets;
    hob_tensor **out_grads;
    struct hob_meta *input_metas;
    struct hob_meta *ret_metas;
    uint8_t *needs_grad;
};

static int step_reserve(struct ad_walk *walk, const struct ad_node *node,
                        struct step *step)
{
    size_t ins = node->input_count;
    size_t outs = node->ret_count;
    size_t bytes = ins * (2 * sizeof(hob_tensor *) + sizeof(struct hob_meta) +
                          sizeof(uint8_t)) +
                   outs * (sizeof(hob_tensor *) + sizeof(struct hob_meta));
    char *at;

    if (bytes > walk->scratch_bytes) {
        free(walk->scratch);
        walk->scratch_bytes = 0;
        walk->scratch = malloc(2 * bytes);
        if (!walk->scratch)
            return 1;
        walk->scratch_bytes = 2 * bytes;
    }
    at = walk->scratch;
    memset(at, 0, bytes);
    step->inputs = (hob_tensor **)(void *)at;
    at += ins * sizeof(hob_tensor *);
    step->out_grads = (hob_tensor **)(void *)at;
    at += ins * sizeof(hob_tensor *);
    step->rets = (hob_tensor **)(void *)at;
    at += outs * sizeof(hob_tensor *);
    step->input_metas = (struct hob_meta *)(void *)at;
    at += ins * sizeof(struct hob_meta);
    step->ret_metas = (struct hob_meta *)(void *)at;
    at += outs * sizeof(struct hob_meta);
    step->needs_grad = (uint8_t *)at;
    return 0;
}

/* Get at the elements that NODE's rule needs. */
static hob_status fetch_saved(struct ad_walk *walk, struct ad_node *node,
                              struct step *step)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < node->input_count && !status; i++) {
        const struct ad_input *input = &node->inputs[i];

        step->needs_grad[i] = input->edge != NULL;
        if (!(input->flags & AD_INPUT_NEEDED))
            continue;
        if (input->flags & AD_INPUT_REPLAY)
            status = ad_replay(walk, input->edge, &step->inputs[i]);
        else
            step->inputs[i] = input->saved;
    }
    for (uint32_t i = 0; i < node->ret_count && !status; i++) {
        if (!(node->rule->save_rets >> i & 1))
            continue;
        if (node->flags & AD_NODE_REPLAY_RETS)
            status = ad_replay(walk, &node->slots[i], &step->rets[i]);
        else
            step->rets[i] = node->rets[i];
    }
    return status;
}

static void fill_step(const struct ad_walk *walk, const struct ad_entry *entry,
                      struct step *step)
{
    const struct ad_node *node = entry->node;
    struct hob_grad_call *call = &step->call;
    const int64_t *meta = node->metas;

    for (uint32_t i = 0; i < node->input_count; i++)
        ad_node_meta_next(&meta, &step->input_metas[i]);
    meta = node->ret_metas;
    for (uint32_t i = 0; i < node->ret_count; i++)
        ad_node_meta_next(&meta, &step->ret_metas[i]);
    call->struct_size = sizeof(*call);
    call->reserved = 0;
    call->host = walk->layer->host;
    call->op_name = node->op_name;
    call->args = node->args;
    call->arg_count = node->arg_count;
    call->input_count = node->input_count;
    call->ret_count = node->ret_count;
    call->plain_count = node->plain_count;
    call->plains = node->plains;
    call->inputs = step->inputs;
    call->input_metas = step->input_metas;
    call->rets = step->rets;
    call->ret_metas = step->ret_metas;
    call->grads = entry->grads;
    call->needs_grad = step->needs_grad;
    call->out_grads = step->out_grads;
}

/* Whether GRAD can be summed to META: the same dtype, sizes that broadcast. */
static int grad_fits(const hob_tensor *grad, const struct hob_meta *meta)
{
    int32_t extra = hob_tensor_rank(grad) - meta->rank;

    if (hob_tensor_dtype(grad) != meta->dtype || extra < 0)
        return 0;
    for (int32_t i = 0; i < meta->rank; i++)
        if (meta->shape[i] != 1 &&
            meta->shape[i] != hob_tensor_shape(grad)[extra + i])
            return 0;
    return 1;
}

/* Hand the gradients that a rule made to the nodes of the inputs. */
static hob_status spread(struct ad_walk *walk, hob_scope *scope,
                         const struct ad_node *node, struct step *step)
{
    const struct hob_host *host = walk->layer->host;
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < node->input_count && !status; i++) {
        hob_tensor *grad = step->out_grads[i];

        if (!grad || !node->inputs[i].edge)
            continue;
        if (host->tensor_is_error(grad))
            return host->scope_status(scope);
        if (!grad_fits(grad, &step->input_metas[i]))
            return ad_message(
                host, walk->out_message, HOB_ERR_PLUGIN,
                "the rule of %s: the gradient of input %u is %s of rank %d, "
                "which does not reduce to the input, %s of rank %u: a bug of "
                "the op's backward function",
                node->op_name, i, hob_dtype_name(hob_tensor_dtype(grad)),
                (int)hob_tensor_rank(grad),
                hob_dtype_name(step->input_metas[i].dtype),
                step->input_metas[i].rank);
        grad = ad_sum_to(scope, grad, &step->input_metas[i]);
        if (host->tensor_is_error(grad))
            return host->scope_status(scope);
        status = ad_add_grad(walk, scope, node->inputs[i].edge, grad);
    }
    return status;
}

/* An input that was there and was not kept for the rule: its number; -1 if
 * all were. */
static int64_t find_unsaved(const struct step *step)
{
    for (uint32_t i = 0; i < step->call.input_count; i++)
        if (!step->call.inputs[i] &&
            step->input_metas[i].dtype != HOB_DTYPE_NONE)
            return i;
    return -1;
}

static hob_status run_rule(struct ad_walk *walk, struct ad_entry *entry)
{
    const struct hob_host *host = walk->layer->host;
    struct ad_node *node = entry->node;
    struct hob_scope_frame frame;
    struct step step;
    hob_scope *scope;
    hob_status status;
    int64_t unsaved;

    if (step_reserve(walk, node, &step))
        return no_memory(walk);
    fill_step(walk, entry, &step);
    status = fetch_saved(walk, node, &step);
    if (status)
        return status;
    scope = host->scope_enter(walk->scope, &frame, walk->layer->level - 1);
    status = node->rule->backward(scope, &step.call);
    unsaved = find_unsaved(&step);
    if (host->scope_status(scope))
        status = host->scope_status(scope);
    else if (status)
        ad_message(host, walk->out_message, status,
                   "the rule of %s failed without a message", node->op_name);
    /* The scope says which op got no argument, not whose fault that is. */
    if (host->scope_status(scope) == HOB_ERR_ARGUMENT && unsaved >= 0)
        ad_message(host, walk->out_message, status,
                   "in the rule of %s, for which inputs[%d] was not saved: if "
                   "it reads that, add it to \"save\"",
                   node->op_name, (int)unsaved);
    if (!status)
        status = spread(walk, scope, node, &step);
    host->scope_leave(scope);
    return status;
}

static hob_status run_node(struct ad_walk *walk, struct ad_entry *entry)
{
    struct ad_node *node = entry->node;
    hob_status status;

    if (node->flags & AD_NODE_LEAF) {
        hob_tensor *grad = entry->grads[0];

        entry->grads[0] = NULL;
        return ad_grads_put(walk->grads, node, grad) ? no_memory(walk) : HOB_OK;
    }
    if (ad_node_claim(node, walk->consume))
        return ad_consumed(walk, node);
    walk->running = node;
    status =
        node->segment ? ad_segment_again(walk, entry) : run_rule(walk, entry);
    walk->running = NULL;
    ad_node_unclaim(walk->layer->host, node);
    ad_values_drop(walk, node);
    return status;
}

/* ---- the walk ---- */

/* The gradient of a sum: ones of TENSOR's shape. */
static hob_status seed(struct ad_walk *walk, const struct ad_slot *root,
                       hob_tensor *tensor)
{
    const struct hob_host *host = walk->layer->host;
    const struct hob_view *view = hob_tensor_view(tensor);
    struct hob_scope_frame frame;
    hob_scope *scope =
        host->scope_enter(walk->scope, &frame, walk->layer->level - 1);
    hob_tensor *ones = hob_ones(scope, view->shape, view->rank,
                                walk->layer->below, (hob_dtype)view->dtype);
    hob_status status = host->scope_status(scope);

    if (!status)
        status = ad_add_grad(walk, scope, root, ones);
    host->scope_leave(scope);
    return status;
}

static void walk_release(struct ad_walk *walk)
{
    for (size_t i = 0; i < walk->heap_count; i++)
        entry_free(walk, walk->heap[i]);
    free(walk->heap);
    free(walk->scratch);
    ad_map_release(&walk->pending);
    ad_values_release(walk);
    ad_grads_free(walk->grads);
}

hob_status ad_backward(const struct ad_layer *layer, hob_scope *scope,
                       struct ad_slot *root, hob_tensor *tensor, uint32_t flags,
                       struct ad_grads **out_grads, char **out_message)
{
    struct ad_walk walk;
    hob_status status;

    memset(&walk, 0, sizeof(walk));
    walk.layer = layer;
    walk.scope = scope;
    walk.consume = !(flags & HOB_BACKWARD_RETAIN);
    walk.out_message = out_message;
    walk.grads = ad_grads_new(layer->host);
    *out_grads = NULL;
    status = walk.grads ? seed(&walk, root, tensor) : no_memory(&walk);
    while (!status && walk.heap_count) {
        struct ad_entry *entry = pop(&walk);

        status = run_node(&walk, entry);
        entry_free(&walk, entry);
    }
    if (!status) {
        *out_grads = walk.grads;
        walk.grads = NULL;
    }
    walk_release(&walk);
    return status;
}

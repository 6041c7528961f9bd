/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c - from values that are asked for to tensors.
 *
 * The pending nodes behind the asked values are found, claimed all at once,
 * and run in the order in which they were recorded. If another thread runs one
 * of them, it is waited for first, with nothing claimed, so that no two threads
 * wait for each other.
 */
#include "match.h"

#include <stdlib.h>
#include <string.h>

/* The nodes of one evaluation. */
struct work {
    struct fu_node **nodes;
    size_t count, capacity;
    struct fu_node *few[32];
};

static void work_init(struct work *work)
{
    work->nodes = work->few;
    work->count = 0;
    work->capacity = sizeof(work->few) / sizeof(work->few[0]);
}

static void work_release(struct work *work)
{
    if (work->nodes != work->few)
        free(work->nodes);
}

static hob_status push(struct work *work, struct fu_node *node)
{
    int is_few = work->nodes == work->few;
    struct fu_node **nodes;

    if (work->count == work->capacity) {
        nodes = realloc(is_few ? NULL : work->nodes,
                        2 * work->capacity * sizeof(struct fu_node *));
        if (!nodes)
            return HOB_ERR_MEMORY;
        if (is_few)
            memcpy(nodes, work->few, sizeof(work->few));
        work->nodes = nodes;
        work->capacity *= 2;
    }
    work->nodes[work->count++] = node;
    return HOB_OK;
}

/* Add VALUE's node unless it is there, or has run. *OUT_BUSY is set if a
 * thread runs it. */
static hob_status want_locked(struct fu_layer *layer, struct work *work,
                              const struct fu_value *value,
                              struct fu_node **out_busy)
{
    struct fu_node *node = value->node;

    if (value->tensor || node->state == FU_NODE_DONE ||
        node->stamp == layer->stamp)
        return HOB_OK;
    node->stamp = layer->stamp;
    if (node->state == FU_NODE_RUNNING) {
        *out_busy = node;
        return HOB_OK;
    }
    node->is_asked = 0;
    return push(work, node);
}

/* Find what the asked values need; *OUT_BUSY is one that must be waited for. */
static hob_status find_locked(struct fu_layer *layer, struct work *work,
                              struct fu_value *const *asked, size_t count,
                              struct fu_node **out_busy)
{
    hob_status status = HOB_OK;

    layer->stamp++;
    work->count = 0;
    *out_busy = NULL;
    for (size_t i = 0; i < count && !status && !*out_busy; i++)
        status = want_locked(layer, work, asked[i], out_busy);
    for (size_t i = 0; i < work->count; i++)
        work->nodes[i]->is_asked = 1;
    for (size_t i = 0; i < work->count && !status && !*out_busy; i++) {
        const struct fu_node *node = work->nodes[i];

        for (uint32_t k = 0; k < node->input_count && !status; k++)
            if (node->inputs[k].value)
                status =
                    want_locked(layer, work, node->inputs[k].value, out_busy);
    }
    return status;
}

static int by_order(const void *a, const void *b)
{
    const struct fu_node *x = *(struct fu_node *const *)a;
    const struct fu_node *y = *(struct fu_node *const *)b;

    return (x->order > y->order) - (x->order < y->order);
}

/* They were found from the last to the first, more or less. */
static void sort(struct fu_node **nodes, size_t count)
{
    size_t steps = 0;

    for (size_t i = 0; i < count / 2; i++) {
        struct fu_node *node = nodes[i];

        nodes[i] = nodes[count - 1 - i];
        nodes[count - 1 - i] = node;
    }
    for (size_t i = 1; i < count && steps < 8 * count; i++) {
        struct fu_node *node = nodes[i];
        size_t at = i;

        for (; at > 0 && nodes[at - 1]->order > node->order; at--, steps++)
            nodes[at] = nodes[at - 1];
        nodes[at] = node;
    }
    if (steps >= 8 * count) /* less */
        qsort(nodes, count, sizeof(*nodes), by_order);
}

static void claim_locked(struct work *work)
{
    sort(work->nodes, work->count);
    for (size_t i = 0; i < work->count; i++) {
        struct fu_node *node = work->nodes[i];

        fu_node_unlink_locked(node);
        node->state = FU_NODE_RUNNING;
        node->runner = pthread_self();
        node->refs++;
    }
}

void fu_publish(struct fu_layer *layer, struct fu_node *node, hob_tensor **rets)
{
    struct fu_garbage garbage;

    fu_garbage_init(&garbage, layer->host);
    fu_lock(&layer->lock);
    for (uint32_t i = 0; i < node->ret_count; i++)
        if (fu_is_wanted(&node->values[i])) {
            node->values[i].tensor = rets[i];
            rets[i] = NULL;
        }
    node->state = FU_NODE_DONE;
    node->depth = 0;
    layer->counts.single++;
    fu_inputs_drop_locked(layer, node, &garbage);
    fu_wake_locked(&layer->lock);
    fu_unlock(&layer->lock);
    fu_garbage_empty(&garbage);
}

/* Tell who watches LAYER that NODE ran as it is. */
static void tell(const struct fu_layer *layer, const struct fu_node *node,
                 hob_tensor *const *rets)
{
    struct hob_fusion_event event = {
        .struct_size = sizeof(event),
        .name = layer->host->op_name(layer->host, node->op),
        .op_count = 1,
        .input_count = node->input_count,
    };

    for (uint32_t i = 0; i < node->ret_count; i++)
        if (rets[i])
            event.written_bytes += (uint64_t)hob_tensor_count(rets[i]) *
                                   hob_dtype_size(node->values[i].dtype);
    layer->watch(layer->watch_context, &event);
}

static hob_status run_one(struct fu_layer *layer, struct fu_node *node)
{
    hob_tensor *few[HOB_MAX_RESULTS] = {NULL};
    hob_tensor **rets = few;
    uint32_t count = node->ret_count;

    if (count > HOB_MAX_RESULTS) {
        rets = calloc(count, sizeof(hob_tensor *));
        if (!rets)
            return HOB_ERR_MEMORY;
    }
    fu_replay(layer, node, rets);
    if (layer->watch)
        tell(layer, node, rets);
    fu_publish(layer, node, rets);
    for (uint32_t i = 0; i < count; i++)
        layer->host->tensor_unref(rets[i]);
    if (rets != few)
        free(rets);
    return HOB_OK;
}

/* Run the members of group INDEX one by one, but a product that has run. */
static hob_status run_members(const struct fu_window *window, uint32_t index)
{
    hob_status status = HOB_OK;

    for (uint16_t at = window->groups[index].first; at < FU_WINDOW && !status;
         at = window->items[at].next)
        if (window->items[at].node->state == FU_NODE_RUNNING)
            status = run_one(window->layer, window->items[at].node);
    return status;
}

/* Whether group INDEX was one of a list that ran. */
static int has_run(const struct fu_window *window, uint32_t index)
{
    return window->items[window->groups[index].first].node->state ==
           FU_NODE_DONE;
}

hob_status fu_run_product(const struct fu_window *window, uint32_t index)
{
    const uint32_t at = window->groups[index].product - 1u;

    return run_one(window->layer, window->items[at].node);
}

/* Constants that are wanted as tensors: ALL of them, or those that are so
 * anyway. */
static hob_status run_constants(const struct fu_window *window, int all)
{
    hob_status status = HOB_OK;

    for (uint32_t word = 0; word < FU_WORDS; word++)
        for (uint64_t set = window->constants[word]; set && !status;
             set &= set - 1) {
            const struct fu_item *item =
                &window->items[64 * word + (uint32_t)__builtin_ctzll(set)];

            if ((item->is_stored || all) &&
                item->node->state == FU_NODE_RUNNING)
                status = run_one(window->layer, item->node);
        }
    return status;
}

static hob_status run_singly(struct fu_layer *layer,
                             struct fu_node *const *nodes, size_t count)
{
    hob_status status = HOB_OK;

    for (size_t i = 0; i < count && !status; i++)
        status = run_one(layer, nodes[i]);
    return status;
}

static void plan(struct fu_window *window)
{
    fu_match_find(window);
    fu_lock(&window->layer->lock);
    while (fu_match_check_locked(window)) {
        fu_unlock(&window->layer->lock);
        fu_match_find(window);
        fu_lock(&window->layer->lock);
    }
    fu_window_plan_locked(window);
    fu_unlock(&window->layer->lock);
    /* Whether a pattern may be taken, more decides than what is in the key. */
    if (window->match_count)
        fu_window_forget(window);
}

static hob_status run_window(struct fu_window *window,
                             struct fu_node *const *nodes)
{
    hob_status status = HOB_OK;

    if (window->plan == FU_UNPLANNED)
        plan(window);
    if (window->plan == FU_SINGLY)
        return run_singly(window->layer, nodes, window->count);
    fu_match_tell(window);
    status = run_constants(window, 0);
    for (uint32_t i = 0; i < window->order_count && !status; i++) {
        const uint32_t index = window->order[i];

        if (window->groups[index].list)
            fu_list_run(window, i);
        if (has_run(window, index) || !fu_group_run(window, index))
            continue;
        if (window->groups[index].is_fused) /* they read tensors */
            status = run_constants(window, 1);
        if (!status)
            status = run_members(window, index);
    }
    return status;
}

/* Run NODES in groups. */
static hob_status run_grouped(struct fu_layer *layer,
                              struct fu_node *const *nodes, uint32_t count)
{
    struct fu_window *window = fu_window_take(layer, nodes, count);
    hob_status status;

    if (!window)
        return HOB_ERR_MEMORY;
    status = run_window(window, nodes);
    fu_window_give(window);
    return status;
}

/* Whether some of NODES may run as one. */
static int may_group(const struct fu_layer *layer, struct fu_node *const *nodes,
                     uint32_t count)
{
    int may = layer->pattern_count != 0;

    for (uint32_t i = 0; i < count && layer->fused && !may; i++)
        may = fu_may_group(nodes[i]);
    return may && count > 1;
}

static hob_status run_nodes(struct fu_layer *layer, const struct work *work)
{
    hob_status status = HOB_OK;

    for (size_t i = 0; i < work->count && !status; i += FU_WINDOW) {
        struct fu_node *const *nodes = work->nodes + i;
        const size_t left = work->count - i;
        const uint32_t count = (uint32_t)(left < FU_WINDOW ? left : FU_WINDOW);

        status = may_group(layer, nodes, count)
                     ? run_grouped(layer, nodes, count)
                     : run_singly(layer, nodes, count);
    }
    return status;
}

/* Run what is claimed. What could not even be begun, and what stays for later,
 * is pending again. */
static hob_status run_locked(struct fu_layer *layer, struct work *work)
{
    struct fu_garbage garbage;
    hob_status status;

    fu_unlock(&layer->lock);
    status = run_nodes(layer, work);
    fu_garbage_init(&garbage, layer->host);
    fu_lock(&layer->lock);
    for (size_t i = 0; i < work->count; i++) {
        struct fu_node *node = work->nodes[i];

        if (node->state == FU_NODE_RUNNING)
            fu_node_resume_locked(layer, node, &garbage);
        fu_node_unref_locked(layer, node);
    }
    fu_wake_locked(&layer->lock);
    if (garbage.count) {
        fu_unlock(&layer->lock);
        fu_garbage_empty(&garbage);
        fu_lock(&layer->lock);
    }
    return status;
}

hob_status fu_evaluate_locked(struct fu_layer *layer, struct fu_value **asked,
                              size_t count)
{
    struct fu_node *busy;
    struct work work;
    hob_status status;

    work_init(&work);
    for (;;) {
        status = find_locked(layer, &work, asked, count, &busy);
        if (status || !busy)
            break;
        if (pthread_equal(busy->runner, pthread_self())) {
            /* An op that runs asks for what waits for it. */
            status = HOB_ERR_REENTRANT;
            break;
        }
        fu_sleep_locked(&layer->lock);
    }
    if (!status && work.count) {
        claim_locked(&work);
        status = run_locked(layer, &work);
    }
    work_release(&work);
    return status;
}

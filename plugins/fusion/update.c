/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c - an optimizer's step on a gradient that is a product: where the
 * base can, parts of the product go into the step as they are made, and it
 * never gets memory.
 */
#include "update.h"

#include <hob/ops.h>

#include <stdio.h>
#include <string.h>

static const struct fu_update_op updates[] = {
    {HOB_OP_ADAM_STEP, 1, {0, 2, 3}},
    {HOB_OP_SGD_STEP, 1, {0}},
};

static const struct fu_update_op *find_update(uint32_t op)
{
    for (size_t i = 0; i < sizeof(updates) / sizeof(updates[0]); i++)
        if (updates[i].op == op)
            return &updates[i];
    return NULL;
}

int fu_is_update(uint32_t op)
{
    return find_update(op) != NULL;
}

/* ---- planning ---- */

const struct fu_update_op *fu_update_of(const struct fu_item *item)
{
    return item->match ? NULL : find_update(item->node->op);
}

/* sgd_step is none here: it is steps of a group, which finishes the product. */
static int is_update(const struct fu_item *item)
{
    return fu_update_of(item) && item->node->op != HOB_OP_SGD_STEP;
}

/* The arguments that lie as the product does: in the order of the op's tensor
 * parameters they are the first inputs, one more than its results. */
static int is_alike(const struct fu_node *node, const struct fu_value *product)
{
    for (uint32_t i = 0; i <= node->ret_count; i++) {
        const struct fu_seen seen = fu_see(&node->inputs[i]);

        if (seen.dtype != product->dtype || seen.rank != product->rank ||
            memcmp(seen.shape, product->shape, seen.rank * sizeof(int64_t)) !=
                0)
            return 0;
    }
    return node->inputs[find_update(node->op)->gradient].value == product;
}

int fu_attach_to_update(struct fu_window *window, uint32_t at)
{
    struct fu_item *item = &window->items[at];
    const struct fu_value *product = &item->node->values[0];
    const struct fu_group *group;
    uint32_t index;

    if (!FU_HAS(window->layer->fused, run_update) ||
        item->node->op != HOB_OP_MATMUL || product->rank != 2)
        return 0;
    index = fu_only_reader(window, product, is_update);
    if (index == FU_WINDOW)
        return 0;
    group = &window->groups[index];
    if (group->product || group->count != 1 ||
        !is_alike(window->items[group->first].node, product))
        return 0;
    window->groups[index].product = (uint16_t)(at + 1);
    fu_take_members(window, index, item->group);
    return 1;
}

/* ---- running ---- */

static uint64_t bytes_of(const struct hob_view *view)
{
    return (uint64_t)hob_view_count(view) * hob_dtype_size(view->dtype);
}

/* Find the factors of PRODUCT: nonzero if one of them is a failure. */
static int find_factors(const struct fu_layer *layer,
                        const struct fu_node *product, struct fu_update *run)
{
    const struct hob_view *sides[2];

    for (uint32_t i = 0; i < 2; i++) {
        hob_tensor *tensor = fu_tensor_of(&product->inputs[i]);

        if (!tensor || layer->host->tensor_is_error(tensor))
            return 1;
        sides[i] = hob_tensor_view(tensor);
        run->read_bytes += bytes_of(sides[i]);
    }
    run->update.lhs = sides[0];
    run->update.rhs = sides[1];
    return 0;
}

/* Find the arguments, the gradient unless it is a product. */
static int find_arguments(const struct fu_layer *layer, struct fu_update *run,
                          int is_product)
{
    const struct fu_node *node = run->item->node;
    uint32_t input = 0;

    for (uint32_t i = 0; i < node->arg_count; i++) {
        hob_tensor *tensor;

        run->views[i] = NULL;
        if (node->args[i].tag != HOB_TAG_TENSOR)
            continue;
        tensor = fu_tensor_of(&node->inputs[input++]);
        if (i == run->is->gradient && is_product)
            continue;
        if (!tensor || layer->host->tensor_is_error(tensor))
            return 1;
        run->views[i] = hob_tensor_view(tensor);
        run->read_bytes += bytes_of(run->views[i]);
        for (uint32_t k = 0; k < node->ret_count; k++) {
            if (run->is->old[k] != i)
                continue;
            if (!(run->views[i]->flags & HOB_VIEW_CONTIGUOUS))
                return 1;
            run->old[k] = tensor;
        }
    }
    return 0;
}

int fu_update_find(const struct fu_window *window, uint32_t index,
                   struct fu_update *run)
{
    const struct fu_group *group = &window->groups[index];
    const struct fu_item *product =
        group->product ? &window->items[group->product - 1] : NULL;
    const struct fu_node *node;

    run->group = index;
    run->item = &window->items[group->first];
    if (run->item == product)
        run->item = &window->items[product->next];
    node = run->item->node;
    run->is = find_update(node->op);
    run->update = (struct hob_fused_update){.struct_size = sizeof(run->update),
                                            .op = node->op,
                                            .gradient = run->is->gradient,
                                            .arg_count = node->arg_count,
                                            .args = node->args,
                                            .views = run->views,
                                            .outs = run->outs};
    memset(run->made, 0, sizeof(run->made));
    run->in_place = 0;
    run->read_bytes = run->written_bytes = 0;
    return (product && find_factors(window->layer, product->node, run)) ||
           find_arguments(window->layer, run, product != NULL);
}

/* Whether the node alone has what INPUT of it reads, and nobody else the
 * memory. */
static int is_last(const struct fu_layer *layer, const struct fu_input *input)
{
    hob_tensor *tensor = fu_tensor_of(input);

    return fu_is_last_reader_locked(input) && layer->host->is_last(&tensor, 1);
}

int fu_update_allocate(struct fu_layer *layer, struct fu_update *run)
{
    const struct fu_node *node = run->item->node;

    for (uint32_t k = 0; k < node->ret_count; k++) {
        const struct fu_value *value = &node->values[k];
        struct hob_meta meta = {.dtype = value->dtype,
                                .rank = value->rank,
                                .scheme = value->scheme};
        int is_over;

        memcpy(meta.shape, value->shape, value->rank * sizeof(int64_t));
        fu_lock(&layer->lock);
        is_over = is_last(layer, &node->inputs[run->is->old[k]]);
        fu_unlock(&layer->lock);
        run->made[k] = layer->host->tensor_new(layer->below, &meta,
                                               is_over ? run->old[k] : NULL);
        if (!run->made[k])
            return 1;
        run->in_place += (uint32_t)is_over;
        run->outs[k] = hob_tensor_view(run->made[k]);
        run->written_bytes += bytes_of(run->outs[k]);
    }
    return 0;
}

static void tell(const struct fu_layer *layer, struct fu_update *const *runs,
                 uint32_t count, const char *prefix,
                 struct hob_fusion_event *event)
{
    struct hob_fusion_value values[3 * HOB_FUSED_MAX_UPDATES];
    char name[64];

    if (!layer->watch)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct fu_node *node = runs[i]->item->node;

        for (uint32_t k = 0; k < node->ret_count; k++)
            values[event->value_count++] = (struct hob_fusion_value){
                .op = layer->host->op_name(layer->host, node->op),
                .call = node->index,
                .bytes = bytes_of(runs[i]->outs[k]),
                .why = node->is_asked ? HOB_FUSION_ASKED : HOB_FUSION_READ};
    }
    snprintf(name, sizeof(name), "%s%s", prefix, values[0].op);
    event->struct_size = sizeof(*event);
    event->is_group = 1;
    event->name = name;
    event->values = values;
    layer->watch(layer->watch_context, event);
}

static void publish(struct fu_window *window, const struct fu_update *run)
{
    const struct fu_node *node = run->item->node;
    struct fu_made made[3];

    for (uint32_t k = 0; k < node->ret_count; k++)
        made[k] = (struct fu_made){&node->values[k], run->made[k]};
    fu_members_publish(window, run->group, made, node->ret_count);
}

void fu_updates_publish(struct fu_window *window, struct fu_update *const *runs,
                        uint32_t count)
{
    struct fu_layer *layer = window->layer;
    struct hob_fusion_stats *counts = &layer->counts;
    const uint16_t product = window->groups[runs[0]->group].product;
    struct hob_fusion_event event = {.op_count = product ? 2 : count,
                                     .input_count = product != 0};
    uint32_t stored = 0;

    for (uint32_t i = 0; i < count; i++) {
        /* What is not of a parameter's shape is the same for all. */
        event.input_count += i ? runs[i]->item->node->ret_count + 1
                               : runs[i]->item->node->input_count;
        event.in_place += runs[i]->in_place;
        event.read_bytes += runs[i]->read_bytes;
        event.written_bytes += runs[i]->written_bytes;
        stored += runs[i]->item->node->ret_count;
    }
    if (product)
        event.saved_bytes =
            2 *
            fu_bytes(fu_see_value(&window->items[product - 1].node->values[0]));
    tell(layer, runs, count, product ? "matmul+" : "", &event);
    fu_lock(&layer->lock);
    counts->groups++;
    counts->grouped += event.op_count;
    counts->stored += stored;
    counts->in_place += event.in_place;
    counts->read_bytes += event.read_bytes;
    counts->written_bytes += event.written_bytes;
    counts->saved_bytes += event.saved_bytes;
    fu_unlock(&layer->lock);
    for (uint32_t i = 0; i < count; i++)
        publish(window, runs[i]);
}

void fu_update_release(const struct fu_layer *layer, struct fu_update *run)
{
    for (uint32_t k = 0; k < run->item->node->ret_count; k++)
        layer->host->tensor_unref(run->made[k]);
}

/* The results are there; the product never is. */
int fu_update_run(struct fu_window *window, uint32_t index)
{
    struct fu_layer *layer = window->layer;
    struct fu_update run, *const runs = &run;
    const int declined =
        fu_update_find(window, index, &run) ||
        fu_update_allocate(layer, &run) ||
        layer->fused->run_update(layer->fused_instance, &run.update);

    if (!declined)
        fu_updates_publish(window, &runs, 1);
    fu_update_release(layer, &run);
    return declined;
}

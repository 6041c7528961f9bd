/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c - an optimizer's step on a gradient that is a product: where the
 * base can, parts of the product go into the step as they are made, and it
 * never gets memory.
 */
#include "groups.h"

#include <hob/ops.h>

#include <stdio.h>
#include <string.h>

/* An update: which of its arguments is the gradient, and of which argument each
 * result is the new one. sgd_step is none, as it is steps of a group. */
static const struct update {
    uint32_t op;
    uint8_t gradient;
    uint8_t old[3];
} updates[] = {
    {HOB_OP_ADAM_STEP, 1, {0, 2, 3}},
};

static const struct update *find_update(uint32_t op)
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

static int is_update(const struct fu_item *item)
{
    return item->class == FU_OTHER && !item->match &&
           find_update(item->node->op);
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

/* What a run is made of. */
struct run {
    const struct update *is;
    struct fu_item *product, *item;
    struct hob_fused_update update;
    const struct hob_view *views[HOB_MAX_PARAMS];
    const struct hob_view *outs[3];
    hob_tensor *old[3];  /* borrowed: what result k is the new one of */
    hob_tensor *made[3]; /* our reference */
    uint32_t in_place;
    uint64_t read_bytes, written_bytes;
};

static uint64_t bytes_of(const struct hob_view *view)
{
    return (uint64_t)hob_view_count(view) * hob_dtype_size(view->dtype);
}

/* Find the arguments: nonzero if one of them is a failure, or lies as the base
 * cannot have it. */
static int find_arguments(const struct fu_layer *layer, struct run *run)
{
    const struct fu_node *node = run->item->node;
    const struct fu_node *product = run->product->node;
    const struct hob_view *sides[2];
    uint32_t input = 0;

    for (uint32_t i = 0; i < 2; i++) {
        hob_tensor *tensor = fu_tensor_of(&product->inputs[i]);

        if (!tensor || layer->host->tensor_is_error(tensor))
            return 1;
        sides[i] = hob_tensor_view(tensor);
        run->read_bytes += bytes_of(sides[i]);
    }
    run->update.lhs = sides[0];
    run->update.rhs = sides[1];
    for (uint32_t i = 0; i < node->arg_count; i++) {
        hob_tensor *tensor;

        run->views[i] = NULL;
        if (node->args[i].tag != HOB_TAG_TENSOR)
            continue;
        tensor = fu_tensor_of(&node->inputs[input++]);
        if (i == run->is->gradient)
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

/* Whether the node alone has what INPUT of it reads, and nobody else the
 * memory. */
static int is_last(const struct fu_layer *layer, const struct fu_input *input)
{
    hob_tensor *tensor = fu_tensor_of(input);

    return fu_is_last_reader_locked(input) && layer->host->is_last(&tensor, 1);
}

/* Make the results, over what they are the new ones of where that is not needed
 * any more. */
static int allocate(struct fu_layer *layer, struct run *run)
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

static void tell(const struct fu_layer *layer, const struct run *run,
                 uint64_t saved)
{
    const struct fu_node *node = run->item->node;
    const char *op = layer->host->op_name(layer->host, node->op);
    struct hob_fusion_value values[3];
    char name[64];
    struct hob_fusion_event event = {.struct_size = sizeof(event),
                                     .is_group = 1,
                                     .name = name,
                                     .op_count = 2,
                                     .input_count = node->input_count + 1,
                                     .value_count = node->ret_count,
                                     .in_place = run->in_place,
                                     .values = values,
                                     .read_bytes = run->read_bytes,
                                     .written_bytes = run->written_bytes,
                                     .saved_bytes = saved};

    if (!layer->watch)
        return;
    snprintf(name, sizeof(name), "matmul+%s", op);
    for (uint32_t k = 0; k < node->ret_count; k++)
        values[k] = (struct hob_fusion_value){
            .op = op,
            .call = node->index,
            .bytes = bytes_of(run->outs[k]),
            .why = node->is_asked ? HOB_FUSION_ASKED : HOB_FUSION_READ};
    layer->watch(layer->watch_context, &event);
}

/* The results are there; the product never is. */
static void publish(struct fu_window *window, uint32_t index,
                    const struct run *run)
{
    struct fu_layer *layer = window->layer;
    struct hob_fusion_stats *counts = &layer->counts;
    const struct fu_node *node = run->item->node;
    const uint64_t saved =
        2 * fu_bytes(fu_see_value(&run->product->node->values[0]));
    struct fu_made made[3];

    for (uint32_t k = 0; k < node->ret_count; k++)
        made[k] = (struct fu_made){&node->values[k], run->made[k]};
    tell(layer, run, saved);
    fu_lock(&layer->lock);
    counts->groups++;
    counts->grouped += 2;
    counts->stored += node->ret_count;
    counts->in_place += run->in_place;
    counts->read_bytes += run->read_bytes;
    counts->written_bytes += run->written_bytes;
    counts->saved_bytes += saved;
    fu_unlock(&layer->lock);
    fu_members_publish(window, index, made, node->ret_count);
}

int fu_update_run(struct fu_window *window, uint32_t index)
{
    struct fu_layer *layer = window->layer;
    const struct fu_group *group = &window->groups[index];
    const uint16_t product = (uint16_t)(group->product - 1);
    struct run run = {.product = &window->items[product],
                      .item = &window->items[group->first]};
    const struct fu_node *node;
    int declined;

    if (run.item == run.product)
        run.item = &window->items[run.product->next];
    node = run.item->node;
    run.is = find_update(node->op);
    run.update.struct_size = sizeof(run.update);
    run.update.op = node->op;
    run.update.gradient = run.is->gradient;
    run.update.arg_count = node->arg_count;
    run.update.args = node->args;
    run.update.views = run.views;
    run.update.outs = run.outs;
    declined = find_arguments(layer, &run) || allocate(layer, &run) ||
               layer->fused->run_update(layer->fused_instance, &run.update);
    if (!declined)
        publish(window, index, &run);
    for (uint32_t k = 0; k < node->ret_count; k++)
        layer->host->tensor_unref(run.made[k]);
    return declined;
}

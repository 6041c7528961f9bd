/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - one run of a group, and what becomes of its members.
 */
#include "match.h"
#include "program.h"

#include <inttypes.h>

/* A group of one is worth a program only where that saves reading a constant.
 */
static int is_worth_it(const struct fu_window *window, uint32_t index)
{
    const struct fu_group *group = &window->groups[index];
    uint16_t first = group->first;
    const struct fu_node *node;

    if (!group->is_fused)
        return 0;
    if (group->count - (group->product != 0) > 1)
        return 1;
    if (first + 1 == group->product)
        first = window->items[first].next;
    node = window->items[first].node;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct fu_value *value = node->inputs[i].value;
        const struct fu_item *item;

        if (!value || value->tensor || value->node->slot >= window->count)
            continue;
        item = &window->items[value->node->slot];
        if (item->node == value->node && item->class == FU_CONSTANT &&
            !item->is_stored)
            return 1;
    }
    return 0;
}

/* Tell who watches of the run of P. */
static void tell(const struct fu_window *window, const struct fu_program *p)
{
    const struct fu_layer *layer = window->layer;
    struct hob_fusion_value values[HOB_FUSED_MAX_OUTPUTS];
    struct hob_fusion_event event = {
        .struct_size = sizeof(event),
        .is_group = 1,
        .name = p->run.name,
        .op_count = p->op_count,
        .input_count = p->program.input_count,
        .value_count = p->program.output_count,
        .in_place = p->in_place,
        .values = values,
        .read_bytes = p->read_bytes,
        .written_bytes = p->written_bytes,
        .saved_bytes = p->saved_bytes,
    };

    if (!layer->watch)
        return;
    for (uint32_t i = 0; i < p->program.output_count; i++) {
        const struct fu_node *node = p->stored[i]->node;

        values[i].op = layer->host->op_name(layer->host, node->op);
        values[i].call = node->index;
        values[i].bytes = fu_bytes(fu_see_value(&node->values[0]));
        values[i].why = p->stored[i]->why;
        values[i].reserved = 0;
    }
    layer->watch(layer->watch_context, &event);
}

/* Give NODE's values what is theirs of COUNT of MADE. */
static void give_results(const struct fu_layer *layer, struct fu_node *node,
                         const struct fu_made *made, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct fu_value *value = node->values;

        if (made[i].value->node != node)
            continue;
        value += made[i].value - node->values;
        if (!fu_is_wanted(value))
            continue;
        layer->host->tensor_ref(made[i].tensor);
        value->tensor = made[i].tensor;
    }
}

/* From the last member to the first: those that read a value have let go of
 * it when its own turn comes. */
void fu_members_publish(struct fu_window *window, uint32_t index,
                        const struct fu_made *made, uint32_t made_count)
{
    struct fu_layer *layer = window->layer;
    uint16_t members[FU_WINDOW];
    struct fu_garbage garbage;
    uint32_t count = 0;

    for (uint16_t at = window->groups[index].first; at < FU_WINDOW;
         at = window->items[at].next)
        members[count++] = at;
    fu_garbage_init(&garbage, layer->host);
    fu_lock(&layer->lock);
    while (count--) {
        struct fu_item *item = &window->items[members[count]];
        struct fu_node *node = item->node;

        if (item->stays) { /* RUNNING until the evaluation is over */
            node->is_computed = 1;
            layer->counts.weak++;
            continue;
        }
        give_results(layer, node, made, made_count);
        node->state = FU_NODE_DONE;
        node->depth = 0;
        fu_inputs_drop_locked(layer, node, &garbage);
    }
    fu_wake_locked(&layer->lock);
    fu_unlock(&layer->lock);
    fu_garbage_empty(&garbage);
}

static void publish(struct fu_window *window, uint32_t index,
                    const struct fu_program *p)
{
    struct fu_layer *layer = window->layer;
    struct hob_fusion_stats *counts = &layer->counts;
    struct fu_made made[HOB_FUSED_MAX_OUTPUTS];

    for (uint32_t i = 0; i < p->program.output_count; i++) {
        made[i].value = &p->stored[i]->node->values[0];
        made[i].tensor = p->outs[i].tensor;
    }
    fu_lock(&layer->lock);
    counts->groups++;
    counts->grouped += p->op_count;
    counts->stored += p->program.output_count;
    counts->in_place += p->in_place;
    counts->read_bytes += p->read_bytes;
    counts->written_bytes += p->written_bytes;
    counts->saved_bytes += p->saved_bytes;
    fu_unlock(&layer->lock);
    fu_members_publish(window, index, made, p->program.output_count);
}

/* The group has failed after inputs were written over: its results have. */
static void fail(struct fu_window *window, struct fu_program *p,
                 hob_scope *scope, hob_status status, const char *message)
{
    const struct hob_host *host = window->layer->host;

    for (uint32_t i = 0; i < p->program.output_count; i++) {
        const struct fu_node *node = p->stored[i]->node;

        host->tensor_unref(p->outs[i].tensor);
        p->outs[i].tensor = host->scope_fail(
            scope, status, "%s (call %" PRIu64 "): in the kernel of %s: %s",
            host->op_name(host, node->op), node->index, p->run.name,
            message ? message : "it failed without a message");
        host->tensor_ref(p->outs[i].tensor);
    }
}

static void drop_outputs(const struct fu_window *window, struct fu_program *p)
{
    for (uint32_t i = 0; i < p->program.output_count; i++)
        window->layer->host->tensor_unref(p->outs[i].tensor);
}

/* The run of P, from its product on. What the base did not finish last time it
 * hardly will now, as all lies as it did: so it is asked again, but less and
 * less often. */
static hob_status run_product(const struct fu_layer *layer,
                              struct fu_program *p, void *compiled,
                              char **out_message)
{
    struct hob_fused_product product = {.struct_size = sizeof(product),
                                        .op = p->product->node->op,
                                        .input = p->product->reg,
                                        .out = &p->product_view};
    hob_status status;

    for (uint32_t i = 0; i < p->product->node->input_count; i++)
        product.args[i] =
            hob_tensor_view(fu_tensor_of(&p->product->node->inputs[i]));
    status = layer->fused->run_product(layer->fused_instance, compiled, &p->run,
                                       &product, out_message);
    p->declined = status == HOB_ERR_UNSUPPORTED ? p->declined + 1 : 0;
    return status;
}

/* Run P; nonzero if the ops are to run one by one. */
static int run(struct fu_window *window, uint32_t index, hob_scope *scope,
               struct fu_program *p)
{
    const struct fu_layer *layer = window->layer;
    void *compiled = fu_kernel_compiled(p->kernel);
    char *message = NULL;
    hob_status status;

    if (p->declined & (p->declined - 1)) { /* no power of two */
        p->declined++;
        return 1;
    }
    if (!compiled || fu_program_allocate(window, p))
        return 1;
    status = p->product ? run_product(layer, p, compiled, &message)
                        : layer->fused->run(layer->fused_instance, compiled,
                                            &p->run, &message);
    /* One by one they tell what is wrong in their own words. */
    if (status && (status == HOB_ERR_BUSY || status == HOB_ERR_UNSUPPORTED ||
                   !p->in_place)) {
        drop_outputs(window, p);
    } else {
        if (status)
            fail(window, p, scope, status, message);
        else
            tell(window, p);
        publish(window, index, p);
        drop_outputs(window, p);
        status = HOB_OK;
    }
    if (message)
        layer->host->mem_free(layer->host, message);
    return status != HOB_OK;
}

/* Run the program of group INDEX, with its product if that IS_WHOLE. */
static int try_run(struct fu_window *window, uint32_t index, int is_whole)
{
    const struct hob_host *host = window->layer->host;
    struct hob_scope_frame frame;
    hob_scope *scope = host->scope_begin(window->layer->below, &frame);
    struct fu_program *program = fu_program_get(window, index, is_whole, scope);
    const int declined = !program || run(window, index, scope, program);

    host->scope_leave(scope);
    return declined;
}

int fu_group_run(struct fu_window *window, uint32_t index)
{
    const struct fu_group *group = &window->groups[index];
    struct fu_layer *layer = window->layer;
    int declined;

    if (group->match)
        return fu_match_run(window, index);
    if (!group->product && !is_worth_it(window, index))
        return 1;
    declined = group->is_fused ? try_run(window, index, group->product != 0)
                               : fu_update_run(window, index);
    if (declined && group->product) { /* first the one, then the others */
        if (fu_run_product(window, index))
            return 1;
        declined = !is_worth_it(window, index) || try_run(window, index, 0);
    }
    if (declined) {
        fu_lock(&layer->lock);
        layer->counts.declined++;
        fu_unlock(&layer->lock);
    }
    return declined;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "groups.h"
#include "match.h"

#include <stdlib.h>
#include <string.h>

struct fu_window *fu_window_new(struct fu_layer *layer)
{
    struct fu_window *window = calloc(1, sizeof(*window));

    if (!window)
        return NULL;
    window->layer = layer;
    window->items = malloc(FU_WINDOW * sizeof(*window->items));
    window->groups = malloc(FU_WINDOW * sizeof(*window->groups));
    window->order = malloc(FU_WINDOW * sizeof(*window->order));
    if (layer->pattern_count)
        window->matches = malloc(FU_WINDOW * sizeof(*window->matches));
    if (window->items && window->groups && window->order &&
        (window->matches || !layer->pattern_count))
        return window;
    fu_window_free(window);
    return NULL;
}

void fu_window_free(struct fu_window *window)
{
    if (!window)
        return;
    fu_window_forget(window);
    fu_programs_drop(window);
    free(window->items);
    free(window->groups);
    free(window->order);
    free(window->matches);
    free(window);
}

struct fu_item *fu_maker_of(const struct fu_window *window,
                            const struct fu_input *input)
{
    const struct fu_node *node = input->value ? input->value->node : NULL;

    if (!node || input->value->tensor || node->slot >= window->count ||
        window->items[node->slot].node != node ||
        window->items[node->slot].class == FU_CONSTANT)
        return NULL;
    return &window->items[node->slot];
}

const void *fu_key_of(const struct fu_input *input)
{
    hob_tensor *tensor = fu_tensor_of(input);

    return tensor ? hob_tensor_view(tensor)->data : (const void *)input->value;
}

void fu_window_fill(struct fu_window *window, struct fu_node *const *nodes,
                    uint32_t count)
{
    fu_programs_drop(window);
    window->count = count;
    window->match_count = 0;
    window->plan = FU_UNPLANNED;
    for (uint32_t i = 0; i < count; i++) {
        window->items[i].node = nodes[i];
        window->items[i].group = FU_WINDOW;
        window->items[i].stays = 0;
        window->items[i].match = 0;
        window->items[i].cost = 0;
        window->items[i].rows = 0;
        window->items[i].parts = 0;
        window->items[i].is_apart = 0;
        window->items[i].frame.rank = 0;
        nodes[i]->slot = i;
    }
}

/* Say what the nodes are. Returns whether some may run as one: a step can,
 * beside another, a constant or a product. */
static int classify(struct fu_window *window)
{
    uint32_t steps = 0;

    memset(window->constants, 0, sizeof(window->constants));
    for (uint32_t i = 0; i < window->count; i++) {
        struct fu_item *item = &window->items[i];

        fu_classify(window->layer, item);
        if (item->class == FU_CONSTANT)
            fu_set_add(window->constants, i);
        steps += fu_is_fused(item) || fu_is_update(item->node->op);
    }
    return (steps && window->count > 1) || window->match_count;
}

/* Choose which values of groups get memory, and let those be several that would
 * wait for each other or are too large. */
static void choose(struct fu_window *window)
{
    int is_more;

    for (uint32_t i = 0; i < window->group_count; i++)
        if (!window->groups[i].is_gone && window->groups[i].is_fused)
            fu_choose_stored(window, i);
    is_more = fu_part_waiting(window);
    for (uint32_t i = 0; i < window->group_count; i++)
        if (!window->groups[i].is_gone && window->groups[i].is_fused)
            is_more |= fu_make_fit(window, i);
    if (is_more)
        fu_find_reach(window);
    for (uint32_t i = 0; i < window->count; i++)
        if (window->items[i].class == FU_CONSTANT)
            fu_choose_constant(window, &window->items[i]);
}

void fu_window_plan_locked(struct fu_window *window)
{
    const uint32_t count = window->count;

    window->plan = classify(window) ? FU_GROUPS : FU_SINGLY;
    if (window->plan == FU_SINGLY)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (window->items[i].match)
            fu_match_settle(window, &window->items[i]);
    for (uint32_t i = 0; i < count; i++)
        if (window->items[i].match)
            fu_place_matched(window, &window->items[i]);
        else if (window->items[i].class != FU_CONSTANT)
            fu_place(window, &window->items[i]);
    fu_join_views(window);
    fu_part_rows(window);
    choose(window);
    fu_attach_products_locked(window);
    fu_put_in_order(window);
}

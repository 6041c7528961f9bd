/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - groups that no program has room for become smaller ones.
 */
#include "groups.h"

/* How many values that are made elsewhere the members of group INDEX read. */
static uint32_t count_inputs(const struct fu_window *window, uint32_t index)
{
    const void *keys[FU_WINDOW];
    uint32_t count = 0;

    for (uint16_t at = window->groups[index].first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_node *node = window->items[at].node;

        for (uint32_t i = 0; i < node->input_count; i++) {
            const struct fu_item *maker = fu_maker_of(window, &node->inputs[i]);
            const void *key = fu_key_of(&node->inputs[i]);
            uint32_t k = 0;

            if (maker && maker->group == index)
                continue;
            while (k < count && keys[k] != key)
                k++;
            keys[k] = key; /* 3 of each of MOST_STEPS members at most */
            count += k == count;
        }
    }
    return count;
}

static int is_too_large(const struct fu_window *window, uint32_t index)
{
    uint32_t stored = 0, scalars = 0, steps = 0;

    for (uint16_t at = window->groups[index].first; at < FU_WINDOW;
         at = window->items[at].next) {
        stored += window->items[at].is_stored;
        scalars += window->items[at].step.scalar_count;
        steps += fu_step_count(&window->items[at]);
    }
    return stored > HOB_FUSED_MAX_OUTPUTS || scalars > HOB_FUSED_MAX_SCALARS ||
           steps > HOB_FUSED_MAX_STEPS ||
           count_inputs(window, index) > HOB_FUSED_MAX_INPUTS;
}

/* A half without members that are the same for a whole row has no rows. */
static void look_for_rows(struct fu_window *window, uint32_t index)
{
    struct fu_group *group = &window->groups[index];
    int has_rows = 0;

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next)
        has_rows |=
            window->items[at].is_row || window->items[at].class == FU_BODY;
    if (!has_rows)
        group->rows = 0;
}

void fu_split(struct fu_window *window, uint32_t index, uint32_t count)
{
    const uint32_t other = window->group_count++;
    struct fu_group *group = &window->groups[index];
    struct fu_group *later = &window->groups[other];
    uint16_t at = group->first;

    *later = *group;
    group->count = (uint16_t)count;
    later->count = (uint16_t)(later->count - count);
    for (uint32_t i = 1; i < count; i++)
        at = window->items[at].next;
    group->last = at;
    later->first = window->items[at].next;
    window->items[at].next = FU_WINDOW;
    for (at = later->first; at < FU_WINDOW; at = window->items[at].next)
        window->items[at].group = (uint16_t)other;
    look_for_rows(window, index);
    look_for_rows(window, other);
    fu_choose_stored(window, index);
    fu_choose_stored(window, other);
}

int fu_make_fit(struct fu_window *window, uint32_t index)
{
    const uint32_t before = window->group_count;

    /* A half would read a view that is not made, or give out what is computed
     * in part: better op by op. */
    if (window->groups[index].has_views && is_too_large(window, index))
        window->groups[index].is_fused = 0;
    while (window->groups[index].is_fused && window->groups[index].count > 1 &&
           is_too_large(window, index) && window->group_count < FU_WINDOW)
        fu_split(window, index, window->groups[index].count / 2);
    return window->group_count != before;
}

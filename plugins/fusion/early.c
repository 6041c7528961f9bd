/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early.c - groups that run before the place of their last member.
 *
 * An optimizer's step comes long after the ops that its gradient is made of.
 * With that gradient in one group, it would keep them until then: all that went
 * forward, and all that came back. So a group whose results need no more memory
 * than what is let go of after it runs as soon as it is the last that wants
 * that; then it may also write over it.
 */
#include "groups.h"

/* Bytes of what group INDEX makes that get memory. */
static uint64_t made_by(const struct fu_window *window, uint32_t index)
{
    const struct fu_group *group = &window->groups[index];
    uint64_t bytes = 0;

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_item *item = &window->items[at];

        if (at + 1 == group->product || (group->is_fused && !item->is_stored) ||
            (group->match && at != group->last))
            continue;
        for (uint32_t i = 0; i < item->node->ret_count; i++)
            bytes += fu_bytes(fu_see_value(&item->node->values[i]));
    }
    return bytes;
}

/* The place of group INDEX: an item, after which it can run. */
static uint16_t place_of(struct fu_roots *roots, uint32_t index)
{
    const struct fu_window *window = roots->window;
    const struct fu_group *group = &window->groups[index];
    const struct fu_root *seen[FU_WINDOW];
    uint64_t freed = 0;
    uint32_t count = 0;
    uint16_t place = 0;

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_node *node = window->items[at].node;

        for (uint32_t i = 0; i < node->input_count; i++) {
            const struct fu_item *maker = fu_maker_of(window, &node->inputs[i]);
            struct fu_root *root = fu_root_of(roots, &node->inputs[i]);
            uint32_t k = 0;

            if (maker && maker->group == index)
                continue;
            if (maker && window->groups[maker->group].last > place)
                place = window->groups[maker->group].last;
            while (k < count && seen[k] != root)
                k++;
            if (k < count)
                continue;
            if (count == FU_WINDOW)
                return group->last;
            seen[count++] = root;
            if (root->last != index || !fu_root_ends(root))
                continue;
            freed += root->bytes;
            if (root->between > place)
                place = root->between;
        }
    }
    return place < group->last && freed >= made_by(window, index) ? place
                                                                  : group->last;
}

void fu_choose_places(const struct fu_window *window, uint16_t *places)
{
    struct fu_roots roots;

    roots.window = window;
    for (uint32_t i = 0; i < window->group_count; i++)
        places[i] = window->groups[i].last;
    if (!fu_roots_find(&roots))
        return;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (!window->groups[i].is_gone)
            places[i] = place_of(&roots, i);
    fu_roots_release(&roots);
}

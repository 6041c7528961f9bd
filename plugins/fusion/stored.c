/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.c - which values of a group get memory.
 */
#include "groups.h"

uint32_t fu_reads(const struct fu_item *item, const struct fu_value *value)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < item->node->input_count; i++)
        count += item->node->inputs[i].value == value;
    return count;
}

uint32_t fu_inner_users(const struct fu_window *window,
                        const struct fu_value *value, uint32_t group)
{
    uint32_t users = 0;

    for (uint16_t at = window->groups[group].first; at < FU_WINDOW;
         at = window->items[at].next)
        users += fu_reads(&window->items[at], value);
    return users;
}

uint32_t fu_only_reader(const struct fu_window *window,
                        const struct fu_value *value,
                        int (*is_fit)(const struct fu_item *reader))
{
    uint32_t users = 0, group = FU_WINDOW;

    for (uint32_t i = value->node->slot + 1; i < window->count; i++) {
        const struct fu_item *item = &window->items[i];
        const uint32_t count = fu_reads(item, value);

        if (!count)
            continue;
        if (!is_fit(item) || (users && item->group != group))
            return FU_WINDOW;
        group = item->group;
        users += count;
    }
    return users == value->users ? group : FU_WINDOW;
}

int fu_is_only_for_locked(const struct fu_window *window, uint32_t index,
                          const struct fu_value *value)
{
    return !value->handles &&
           value->users == fu_inner_users(window, value, index);
}

/* Count what the members of group INDEX read of each other. */
static void count_readers(struct fu_window *window, uint32_t index)
{
    const uint16_t first = window->groups[index].first;

    for (uint16_t at = first; at < FU_WINDOW; at = window->items[at].next)
        window->items[at].readers = window->items[at].is_needed_again = 0;
    for (uint16_t at = first; at < FU_WINDOW; at = window->items[at].next) {
        const struct fu_node *node = window->items[at].node;

        for (uint32_t i = 0; i < node->input_count; i++) {
            struct fu_item *maker = fu_maker_of(window, &node->inputs[i]);

            if (maker && maker->group == index)
                maker->readers++;
        }
    }
}

/* ITEM stays pending, and reads its group's values again some day. */
static void stay(struct fu_window *window, struct fu_item *item)
{
    item->stays = 1;
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        struct fu_item *maker = fu_maker_of(window, &item->node->inputs[i]);

        if (maker && maker->group == item->group)
            maker->is_needed_again = 1;
    }
}

/*
 * A value is stored if it was asked for, if something outside the group reads
 * it, or if a handle waits for it and it is dear or was computed before. What
 * is cheap and was not asked for stays pending: it can be computed again, and
 * may never have to be.
 */
void fu_choose_stored(struct fu_window *window, uint32_t index)
{
    const struct fu_group *group = &window->groups[index];
    uint16_t members[FU_WINDOW];
    uint32_t count = 0;

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next)
        members[count++] = at;
    count_readers(window, index);
    while (count--) { /* who reads a value comes before it */
        struct fu_item *item = &window->items[members[count]];
        const struct fu_node *node = item->node;
        const struct fu_value *value = &node->values[0];
        const int again = item->is_needed_again;

        item->stays = 0;
        item->is_stored = 1;
        if (node->is_asked)
            item->why = HOB_FUSION_ASKED;
        else if (value->users > item->readers)
            item->why = HOB_FUSION_READ;
        else if ((value->handles || again) &&
                 (item->class == FU_FOLD || item->class == FU_BODY))
            item->why = HOB_FUSION_DEAR;
        else if ((value->handles || again) && node->is_computed)
            item->why = HOB_FUSION_AGAIN;
        else
            item->is_stored = 0;
        if (!item->is_stored && (value->handles || again))
            stay(window, item);
    }
}

/* A constant is a tensor only if somebody outside groups wants it. */
void fu_choose_constant(struct fu_window *window, struct fu_item *item)
{
    struct fu_value *value = &item->node->values[0];
    uint32_t users = 0;

    for (uint32_t i = 0; i < window->count; i++) {
        const struct fu_item *user = &window->items[i];

        if (!fu_is_fused(user))
            continue;
        for (uint32_t k = 0; k < user->node->input_count; k++)
            users += user->node->inputs[k].value == value;
    }
    item->is_stored = item->node->is_asked || value->users > users;
    item->stays = !item->is_stored;
}

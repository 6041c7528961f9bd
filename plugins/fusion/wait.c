/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - groups whose members would wait for each other.
 *
 * A program may record other ops between the members of a group. What the first
 * ones read is kept until the last one's place then; or, if somebody reads what
 * they give before that, the last ones run early, and what they give is there
 * for longer. Op by op neither takes memory: a sum of many gradients would keep
 * all of them, layers that are computed again for their gradients would be
 * there all at once. Where that is more than the traffic that the group saves,
 * it becomes two, which are apart as the program has them.
 */
#include "groups.h"

#include <stdlib.h>

/* What members read, from the first to the last that does. */
struct read {
    const struct fu_root *root; /* NULL: what a member gives */
    uint64_t bytes;
    uint32_t maker; /* that member */
    uint32_t first, last;
};

/* A group whose members have numbers, and what they read. */
struct group {
    const struct fu_window *window;
    struct fu_roots roots;
    uint32_t index;
    uint32_t count;
    uint16_t members[FU_WINDOW];
    uint32_t read_count;
    struct read reads[3 * FU_WINDOW];
    uint32_t read_early; /* the first member that is; COUNT: none */
};

static const struct fu_item *member(const struct group *g, uint32_t at)
{
    return &g->window->items[g->members[at]];
}

/* Whether another op is recorded between two items. */
static int is_apart(const struct fu_window *window, uint32_t from, uint32_t to)
{
    for (uint32_t i = from + 1; i < to; i++)
        if (window->items[i].class != FU_CONSTANT &&
            window->items[i].node->fuse != HOB_FUSE_VIEW)
            return 1;
    return 0;
}

/* Whether group INDEX has members that others were recorded between. */
static int may_wait(const struct fu_window *window, uint32_t index)
{
    const struct fu_group *group = &window->groups[index];

    return !group->is_gone && group->is_fused && !group->has_views &&
           group->count > 1 && group->last >= group->first + group->count;
}

static void find_members(struct group *g)
{
    g->count = 0;
    for (uint16_t at = g->window->groups[g->index].first; at < FU_WINDOW;
         at = g->window->items[at].next)
        g->members[g->count++] = at;
}

/* Member AT reads ROOT, or what member MAKER gives. */
static void add_read(struct group *g, uint32_t at, const struct fu_root *root,
                     uint32_t maker, uint64_t bytes)
{
    struct read *read = g->reads;
    struct read *const end = read + g->read_count;

    while (read < end && (read->root != root || read->maker != maker))
        read++;
    if (read == end) {
        g->read_count++;
        *read = (struct read){root, bytes, maker, at, at};
    }
    read->last = at;
}

static void find_reads(struct group *g)
{
    uint16_t number[FU_WINDOW];

    g->read_count = 0;
    for (uint32_t at = 0; at < g->count; at++) {
        const struct fu_node *node = member(g, at)->node;

        number[g->members[at]] = (uint16_t)at;
        for (uint32_t i = 0; i < node->input_count; i++) {
            const struct fu_item *maker =
                fu_maker_of(g->window, &node->inputs[i]);
            const struct fu_root *root;

            if (maker && maker->group == g->index) {
                add_read(g, at, NULL, number[maker - g->window->items],
                         fu_bytes(fu_see(&node->inputs[i])));
                continue;
            }
            root = fu_root_of(&g->roots, &node->inputs[i]);
            add_read(g, at, root, 0, root->bytes);
        }
    }
}

/* Find the first member that another group reads before the last one. */
static void find_early(struct group *g)
{
    const uint16_t last = g->window->groups[g->index].last;

    g->read_early = g->count;
    for (uint32_t i = g->members[0] + 1u; i < last; i++) {
        const struct fu_item *item = &g->window->items[i];

        if (item->class == FU_CONSTANT || item->group == g->index ||
            g->window->groups[item->group].last >= last)
            continue;
        for (uint32_t at = 0; at < g->read_early; at++)
            if (fu_reads(item, &member(g, at)->node->values[0]))
                g->read_early = at;
    }
}

/* Whether READ is let go of when the last member has run. */
static int ends_here(const struct group *g, const struct read *read)
{
    return fu_root_ends(read->root) &&
           g->window->items[read->root->last_item].group == g->index;
}

/* Whether members from AT on are better a group of their own. */
static int is_better_apart(const struct group *g, uint32_t at)
{
    const int is_early = g->read_early < at;
    uint64_t kept = 0, needed = 0; /* for longer than apart; apart */

    for (uint32_t i = 0; i < g->read_count; i++) {
        const struct read *read = &g->reads[i];
        const int crosses =
            read->last >= at && (read->root ? read->first : read->maker) < at;

        if (read->root) {
            needed += crosses ? read->bytes : 0; /* once more */
            if (ends_here(g, read) && (read->last >= at) == is_early)
                *(is_early ? &needed : &kept) += read->bytes;
        } else if (crosses) {
            /* Read, and if it was not to be stored, written and kept. */
            needed +=
                (member(g, read->maker)->is_stored ? 1u : 3u) * read->bytes;
        }
    }
    for (uint32_t i = is_early ? at : 0; i < (is_early ? g->count : at); i++)
        if (member(g, i)->is_stored)
            *(is_early ? &kept : &needed) +=
                fu_bytes(fu_see_value(&member(g, i)->node->values[0]));
    return kept > needed;
}

/* How many members the first of two groups is to have; 0: the group stays. */
static uint32_t find_part(const struct group *g)
{
    for (uint32_t at = 1; at < g->count && at <= g->read_early; at++)
        if (is_apart(g->window, g->members[at - 1], g->members[at]) &&
            is_better_apart(g, at))
            return at;
    for (uint32_t at = g->count; at-- > g->read_early + 1;)
        if (is_apart(g->window, g->members[at - 1], g->members[at]) &&
            is_better_apart(g, at))
            return at;
    return 0;
}

/* Nonzero if group INDEX has become two. */
static int part(struct fu_window *window, struct group *g, uint32_t index)
{
    uint32_t count;

    if (window->group_count == FU_WINDOW || !may_wait(window, index))
        return 0;
    g->index = index;
    find_members(g);
    find_reads(g);
    find_early(g);
    count = find_part(g);
    if (count)
        fu_split(window, index, count);
    return count != 0;
}

int fu_part_waiting(struct fu_window *window)
{
    const uint32_t before = window->group_count;
    uint32_t first = 0;
    struct group *g;

    while (first < before && !may_wait(window, first))
        first++;
    g = first < before ? malloc(sizeof(*g)) : NULL; /* large for a stack */
    if (!g)
        return 0;
    g->window = g->roots.window = window;
    if (fu_roots_find(&g->roots))
        for (uint32_t i = first; i < window->group_count; i++)
            while (part(window, g, i))
                ;
    fu_roots_release(&g->roots);
    free(g);
    return window->group_count != before;
}

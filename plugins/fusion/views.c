/* SPDX-License-Identifier: Apache-2.0 */
/*
 * views.c - views in the middle of groups: a group whose values are read only
 * through a view becomes part of the group that reads them. Nothing is computed
 * for the view: members before it lie otherwise over the group's space, which
 * is in the strides of what they read, and where that begins.
 *
 * Views that put dimensions in another order, turn them round, take a range of
 * them, split or join them. Where the order changes, no more inputs may be read
 * across memory than the one value that was before. Of a range only the part
 * that is read is computed. What is broadcast would be computed again.
 */
#include "views.h"

#include <hob/ops.h>

#include <string.h>

enum { MOST = HOB_FUSED_MAX_OUTPUTS };

/* ---- from one group to another ---- */

static int is_view(const struct fu_item *item)
{
    const struct fu_node *node = item->node;

    return item->class == FU_OTHER && node->fuse == HOB_FUSE_VIEW &&
           !item->match && !node->is_asked && !node->is_computed &&
           node->ret_count == 1 && node->input_count == 1 &&
           node->values[0].users;
}

/* Whether ITEM lies over its group's space as it is. */
static int lies_straight(const struct fu_item *item)
{
    return !item->frame.rank;
}

/* All the views that end with LAST. */
static int find_views(const struct fu_window *window, struct fu_item *last,
                      struct fu_views *out)
{
    struct fu_item *item = last;

    fu_views_begin(out, last);
    for (out->count = 1;; out->count++) {
        struct fu_item *before = fu_maker_of(window, &item->node->inputs[0]);

        out->value = item->node->inputs[0].value;
        if (!before || !fu_views_apply(out, item->node))
            return 0;
        if (!is_view(before) ||
            fu_only_reader(window, out->value, lies_straight) != item->group)
            return 1;
        item = before;
    }
}

/* The space that group READER has if its dimensions are split as VIEWS are:
 * FRAME is how that steps through what it has. 0: what is read of VIEWS is
 * broadcast, so elements would be computed again; or there is no room. */
static int find_space(const struct fu_group *reader,
                      const struct fu_views *views, struct fu_frame *frame,
                      int64_t *shape)
{
    const struct fu_seen view = fu_see_value(&views->last->node->values[0]);
    const uint32_t before = reader->rank - view.rank;
    uint32_t rank = 0, part = 0;

    if (reader->rank < view.rank || before + views->rank > HOB_MAX_RANK)
        return 0;
    memset(frame, 0, sizeof(*frame));
    memset(frame->from, FU_NOWHERE, sizeof(frame->from));
    for (uint32_t i = 0; i < reader->rank; i++) {
        int64_t after = 1;

        if (reader->shape[i] != (i < before ? 1 : view.shape[i - before]))
            return 0;
        if (i < before) {
            shape[rank++] = 1;
            continue;
        }
        for (; part < views->rank && views->of[part] == i - before; part++) {
            frame->from[rank] = (uint8_t)i;
            shape[rank++] = views->shape[part];
        }
        for (uint32_t k = rank; k-- > 0 && frame->from[k] == i;) {
            frame->times[k] = after;
            after *= shape[k];
        }
    }
    frame->rank = reader->rank;
    return 1;
}

/* How the RANK dimensions of group READER's space step through those of group
 * MAKER's. *OUT_TURNS if these are in another order. */
static void find_frame(const struct fu_group *maker, uint32_t rank,
                       const struct fu_views *views, struct fu_frame *out,
                       int *out_turns)
{
    const uint32_t own = views->value->rank;
    /* Of what the value has beyond the group all is of size 1. */
    const uint32_t beyond = own > maker->rank ? own - maker->rank : 0;
    uint32_t last = 0;

    memset(out, 0, sizeof(*out));
    memset(out->from, FU_NOWHERE, sizeof(out->from));
    out->rank = maker->rank;
    *out_turns = 0;
    for (uint32_t i = 0; i < views->rank; i++) {
        const uint32_t to = rank - views->rank + i;

        if (views->frame.from[i] == FU_NOWHERE)
            continue;
        out->from[to] = (uint8_t)(views->frame.from[i] + maker->rank - own);
        out->times[to] = views->frame.times[i];
        *out_turns |= out->from[to] < last || out->times[to] < 0;
        last = out->from[to];
    }
    for (uint32_t i = beyond; i < own; i++)
        out->start[i + maker->rank - own] = views->frame.start[i];
}

/* ---- joining ---- */

/* Whether members of group INDEX are there for the view of VALUE alone, were
 * not computed before, and read no product, which they could finish; and, if
 * IS_ONE, read but one other value of all elements. */
static int is_only_for_view(const struct fu_window *window, uint32_t index,
                            const struct fu_value *value, int is_one)
{
    const struct fu_group *group = &window->groups[index];
    const void *full = NULL;

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_node *node = window->items[at].node;
        const struct fu_value *own = &node->values[0];

        if (node->is_asked || node->is_computed ||
            own->users != fu_inner_users(window, own, index) + (own == value))
            return 0;
        for (uint32_t i = 0; i < node->input_count; i++) {
            const struct fu_input *input = &node->inputs[i];
            const struct fu_item *maker = fu_maker_of(window, input);
            const void *key = fu_key_of(input);

            if (maker && maker->group == index)
                continue;
            if (maker && (maker->node->op == HOB_OP_MATMUL ||
                          maker->node->op == HOB_OP_LINEAR))
                return 0;
            if (!is_one ||
                fu_bytes(fu_see(input)) < fu_bytes(fu_see_value(own)))
                continue;
            if (full && full != key)
                return 0;
            full = key;
        }
    }
    return 1;
}

/* Whether a way leads from group MAKER to group READER but by VIEWS. */
static int has_way_around(const struct fu_window *window, uint32_t maker,
                          uint32_t reader, const struct fu_views *views)
{
    uint64_t between[FU_WORDS] = {0};
    const struct fu_item *item = views->last;

    for (uint32_t i = 0; i < views->count; i++) {
        fu_set_add(between, item->group);
        item = fu_maker_of(window, &item->node->inputs[0]);
    }
    for (uint32_t i = 0; i < window->group_count; i++)
        if (i != maker && i != reader && !window->groups[i].is_gone &&
            !fu_set_has(between, i) &&
            fu_set_has(window->groups[reader].reach, i) &&
            fu_set_has(window->groups[i].reach, maker))
            return 1;
    return 0;
}

/* Whether some member of group INDEX reads a product, which the group could
 * finish over the space that it has. */
static int reads_product(const struct fu_window *window, uint32_t index)
{
    for (uint16_t at = window->groups[index].first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_node *node = window->items[at].node;

        for (uint32_t i = 0; i < node->input_count; i++) {
            const struct fu_item *maker = fu_maker_of(window, &node->inputs[i]);

            if (maker && (maker->node->op == HOB_OP_MATMUL ||
                          maker->node->op == HOB_OP_LINEAR))
                return 1;
        }
    }
    return 0;
}

/* Members of group INDEX lie by FRAME over another space. */
static void turn_members(struct fu_window *window, uint32_t index,
                         const struct fu_frame *frame)
{
    for (uint16_t at = window->groups[index].first; at < FU_WINDOW;
         at = window->items[at].next) {
        struct fu_item *item = &window->items[at];
        struct fu_frame own = *frame;

        if (item->frame.rank)
            fu_frame_through(&own, &item->frame);
        item->frame = own;
    }
}

/* Group READER has the keys of MAKER in the place of that of the view. */
static int join_keys(struct fu_group *reader, const struct fu_group *maker,
                     const void *view)
{
    const void *keys[2 * HOB_FUSED_MAX_INPUTS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < reader->key_count; i++)
        if (reader->keys[i] != view)
            keys[count++] = reader->keys[i];
    for (uint32_t i = 0; i < maker->key_count; i++) {
        uint32_t k = 0;

        while (k < count && keys[k] != maker->keys[i])
            k++;
        keys[k] = maker->keys[i];
        count += k == count;
    }
    if (count > HOB_FUSED_MAX_INPUTS)
        return 0;
    memcpy(reader->keys, keys, count * sizeof(keys[0]));
    reader->key_count = (uint16_t)count;
    return 1;
}

static int is_plain(const struct fu_group *group)
{
    return group->is_fused && !group->is_gone && !group->rows && group->rank &&
           group->count <= MOST;
}

/* Let the group that makes what LAST is a view of be part of the one that reads
 * it, if it can be. */
static void join_through(struct fu_window *window, struct fu_item *last)
{
    const struct fu_value *view = &last->node->values[0];
    const uint32_t reader = fu_only_reader(window, view, lies_straight);
    struct fu_frame frame, space;
    struct fu_group *group;
    struct fu_views views;
    struct fu_item *item;
    int64_t shape[HOB_MAX_RANK];
    uint32_t maker, rank;
    int turns;

    if (reader == FU_WINDOW || !is_plain(&window->groups[reader]) ||
        !find_views(window, last, &views))
        return;
    group = &window->groups[reader];
    item = &window->items[views.value->node->slot];
    maker = item->group;
    if (item->class != FU_STEP || item->frame.rank || maker == reader ||
        !is_plain(&window->groups[maker]) ||
        !find_space(group, &views, &space, shape))
        return;
    rank = group->rank - view->rank + views.rank;
    find_frame(&window->groups[maker], rank, &views, &frame, &turns);
    if ((rank != group->rank && reads_product(window, reader)) ||
        !is_only_for_view(window, maker, views.value, turns) ||
        has_way_around(window, maker, reader, &views) ||
        !join_keys(group, &window->groups[maker], view))
        return;
    if (rank != group->rank) {
        turn_members(window, reader, &space);
        memcpy(group->shape, shape, sizeof(shape));
        group->rank = (uint8_t)rank;
    }
    group->has_views = 1;
    turn_members(window, maker, &frame);
    fu_set_add_all(group->reach, window->groups[maker].reach);
    fu_take_members(window, reader, maker);
    for (item = last; views.count--;
         item = fu_maker_of(window, &item->node->inputs[0])) {
        fu_take_members(window, reader, item->group);
        item->class = FU_VIEW;
        memset(&item->step, 0, sizeof(item->step));
    }
}

void fu_join_views(struct fu_window *window)
{
    for (uint32_t i = 0; i < window->count; i++)
        if (is_view(&window->items[i]))
            join_through(window, &window->items[i]);
}

void fu_part_rows(struct fu_window *window)
{
    for (uint32_t i = 0; i < window->group_count; i++) {
        struct fu_group *group = &window->groups[i];
        struct fu_frame frame = {.rank = group->rank};
        uint32_t at = 0;

        if (group->is_gone || !group->parts)
            continue;
        while (!fu_has_dim(group->rows, group->rank - 1 - at))
            at++;
        for (uint32_t k = 0; k <= group->rank; k++) {
            frame.from[k] = (uint8_t)(k > at ? k - 1 : k);
            frame.times[k] = 1;
        }
        frame.times[at] = group->shape[at] / group->parts;
        turn_members(window, i, &frame);
        memmove(group->shape + at + 1, group->shape + at,
                (group->rank - at) * sizeof(group->shape[0]));
        group->shape[at] = group->parts;
        group->shape[at + 1] = frame.times[at];
        group->rank++;
    }
}

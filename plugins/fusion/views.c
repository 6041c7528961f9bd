/* SPDX-License-Identifier: Apache-2.0 */
/*
 * views.c - views in the middle of groups: a group whose values are read only
 * through a view becomes part of the group that reads them. Nothing is computed
 * for the view: members before it lie otherwise over the group's space, which
 * is in the strides of what they read.
 *
 * Views that put dimensions in another order, and such as add and drop those of
 * size 1. Where the order changes, no more inputs may be read across memory
 * than the one value that was before.
 */
#include "groups.h"

#include <hob/ops.h>

#include <string.h>

enum { MOST = HOB_FUSED_MAX_OUTPUTS, NOWHERE = HOB_MAX_RANK };

/* The views between two groups: of what LAST gives, dimension I is dimension
 * FROM[I] of what VALUE has; NOWHERE if its size is 1. */
struct views {
    struct fu_item *last;
    const struct fu_value *value;
    uint8_t from[HOB_MAX_RANK];
    uint32_t count;
};

/* ---- one view ---- */

static uint8_t dim_of(const hob_value *arg, uint32_t rank)
{
    return (uint8_t)(arg->u.i64 < 0 ? arg->u.i64 + (int64_t)rank : arg->u.i64);
}

/* Where dimensions of more than one element are those of VIEW's input in the
 * same order, what each is of. */
static int same_order(struct fu_seen x, struct fu_seen view, uint8_t *out)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < view.rank; i++) {
        out[i] = NOWHERE;
        if (view.shape[i] == 1)
            continue;
        while (at < x.rank && x.shape[at] == 1)
            at++;
        if (at == x.rank || x.shape[at] != view.shape[i])
            return 0;
        out[i] = (uint8_t)at++;
    }
    for (; at < x.rank; at++)
        if (x.shape[at] != 1)
            return 0;
    return 1;
}

/* What dimension of its input each dimension of NODE's view is; 0: it is none
 * of these views. */
static int read_view(const struct fu_node *node, uint8_t *out)
{
    const struct fu_seen x = fu_see(&node->inputs[0]);
    const struct fu_seen view = fu_see_value(&node->values[0]);

    switch (node->op) {
    case HOB_OP_SWAP_DIMS:
    case HOB_OP_PERMUTE:
        for (uint32_t i = 0; i < x.rank; i++)
            out[i] = (uint8_t)i;
        if (node->op == HOB_OP_SWAP_DIMS) {
            const uint8_t a = dim_of(&node->args[1], x.rank);
            const uint8_t b = dim_of(&node->args[2], x.rank);

            out[a] = b;
            out[b] = a;
            return 1;
        }
        for (uint32_t i = 0; i < node->args[1].count && i < x.rank; i++) {
            const int64_t dim = node->args[1].u.i64s[i];

            out[i] = (uint8_t)(dim < 0 ? dim + (int64_t)x.rank : dim);
        }
        return node->args[1].count == x.rank;
    case HOB_OP_RESHAPE:
    case HOB_OP_SQUEEZE:
    case HOB_OP_UNSQUEEZE:
        return same_order(x, view, out);
    default:
        return 0;
    }
}

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
    return !item->frame_rank;
}

/* All the views that end with LAST. */
static int find_views(const struct fu_window *window, struct fu_item *last,
                      struct views *out)
{
    struct fu_item *item = last;

    if (!read_view(item->node, out->from))
        return 0;
    out->last = last;
    for (out->count = 1;; out->count++) {
        const uint32_t rank = last->node->values[0].rank;
        struct fu_item *before = fu_maker_of(window, &item->node->inputs[0]);
        uint8_t from[HOB_MAX_RANK];

        out->value = item->node->inputs[0].value;
        if (!before || !is_view(before) ||
            fu_only_reader(window, out->value, lies_straight) != item->group ||
            !read_view(before->node, from))
            return before != NULL;
        for (uint32_t i = 0; i < rank; i++)
            if (out->from[i] != NOWHERE)
                out->from[i] = from[out->from[i]];
        item = before;
    }
}

/* MAP: which dimension of group READER's space each one of group MAKER's is.
 * *OUT_TURNS if their order differs. */
static int find_map(const struct fu_group *maker, const struct fu_group *reader,
                    const struct views *views, uint8_t *map, int *out_turns)
{
    const struct fu_value *view = &views->last->node->values[0];
    uint32_t used = 0, last = 0;

    memset(map, NOWHERE, HOB_MAX_RANK);
    for (uint32_t i = 0; i < view->rank; i++) {
        const uint32_t to = reader->rank - view->rank + i;
        const uint32_t from = maker->rank - views->value->rank + views->from[i];

        if (view->shape[i] == 1)
            continue;
        if (to >= reader->rank || from >= maker->rank ||
            reader->shape[to] != view->shape[i] ||
            maker->shape[from] != view->shape[i])
            return 0;
        map[from] = (uint8_t)to;
        used |= 1u << to;
    }
    for (uint32_t i = 0; i < reader->rank; i++)
        if (reader->shape[i] != 1 && !(used >> i & 1))
            return 0; /* broadcast: elements would be computed again */
    *out_turns = 0;
    for (uint32_t i = 0; i < maker->rank; i++) {
        if (map[i] == NOWHERE)
            continue;
        *out_turns |= map[i] < last;
        last = map[i];
    }
    return 1;
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
                          uint32_t reader, const struct views *views)
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

/* Members of group INDEX lie by MAP over another space. */
static void turn_members(struct fu_window *window, uint32_t index,
                         const uint8_t *map)
{
    const struct fu_group *group = &window->groups[index];

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next) {
        struct fu_item *item = &window->items[at];

        if (!item->frame_rank) {
            item->frame_rank = group->rank;
            memcpy(item->frame, map, sizeof(item->frame));
            continue;
        }
        for (uint32_t i = 0; i < item->frame_rank; i++)
            if (item->frame[i] != NOWHERE)
                item->frame[i] = map[item->frame[i]];
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
    return group->is_fused && !group->is_gone && !group->rows &&
           group->rank && group->count <= MOST;
}

/* Let the group that makes what LAST is a view of be part of the one that reads
 * it, if it can be. */
static void join_through(struct fu_window *window, struct fu_item *last)
{
    const struct fu_value *view = &last->node->values[0];
    const uint32_t reader = fu_only_reader(window, view, lies_straight);
    struct views views;
    struct fu_item *item;
    uint8_t map[HOB_MAX_RANK];
    uint32_t maker;
    int turns;

    if (reader == FU_WINDOW || !is_plain(&window->groups[reader]) ||
        !find_views(window, last, &views))
        return;
    item = &window->items[views.value->node->slot];
    maker = item->group;
    if (item->class != FU_STEP || item->frame_rank || maker == reader ||
        !is_plain(&window->groups[maker]) ||
        !find_map(&window->groups[maker], &window->groups[reader], &views, map,
                  &turns) ||
        !is_only_for_view(window, maker, views.value, turns) ||
        has_way_around(window, maker, reader, &views) ||
        !join_keys(&window->groups[reader], &window->groups[maker], view))
        return;
    turn_members(window, maker, map);
    fu_set_add_all(window->groups[reader].reach, window->groups[maker].reach);
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

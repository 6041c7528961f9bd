/* SPDX-License-Identifier: Apache-2.0 */
#include "match.h"

#include <stdlib.h>
#include <string.h>

/* Steps that a group may have; constants come on top. */
enum { MOST_STEPS = 56, LOOK_BACK = 16 };

int fu_window_init(struct fu_window *window, struct fu_layer *layer)
{
    memset(window, 0, sizeof(*window));
    window->layer = layer;
    window->items = malloc(FU_WINDOW * sizeof(*window->items));
    window->groups = malloc(FU_WINDOW * sizeof(*window->groups));
    window->order = malloc(FU_WINDOW * sizeof(*window->order));
    if (layer->pattern_count)
        window->matches = malloc(FU_WINDOW * sizeof(*window->matches));
    return window->items && window->groups && window->order &&
           (window->matches || !layer->pattern_count);
}

void fu_window_release(struct fu_window *window)
{
    free(window->items);
    free(window->groups);
    free(window->order);
    free(window->matches);
}

/* ---- sets of groups ---- */

static int has(const uint64_t *set, uint32_t index)
{
    return (int)(set[index / 64] >> (index % 64) & 1);
}

static void add(uint64_t *set, uint32_t index)
{
    set[index / 64] |= UINT64_C(1) << (index % 64);
}

static void add_all(uint64_t *set, const uint64_t *other)
{
    for (uint32_t i = 0; i < FU_WORDS; i++)
        set[i] |= other[i];
}

static uint32_t size_of(const uint64_t *set)
{
    uint32_t size = 0;

    for (uint32_t i = 0; i < FU_WORDS; i++)
        size += (uint32_t)__builtin_popcountll(set[i]);
    return size;
}

/* GROUP depends on OTHER, and so does all that depends on GROUP. */
static void depend(struct fu_window *window, uint32_t group, uint32_t other)
{
    uint64_t *reach = window->groups[group].reach;

    add(reach, other);
    add_all(reach, window->groups[other].reach);
    for (uint32_t i = 0; i < window->group_count; i++)
        if (has(window->groups[i].reach, group))
            add_all(window->groups[i].reach, reach);
}

/* ---- items ---- */

/* The item that makes what INPUT reads; NULL if it is there, made in an earlier
 * or later window, or a constant, which is in no group. */
static struct fu_item *maker_of(const struct fu_window *window,
                                const struct fu_input *input)
{
    const struct fu_node *node = input->value ? input->value->node : NULL;

    if (!node || input->value->tensor || node->slot >= window->count ||
        window->items[node->slot].node != node ||
        window->items[node->slot].class == FU_CONSTANT)
        return NULL;
    return &window->items[node->slot];
}

/* What identifies the elements that INPUT reads. */
static const void *key_of(const struct fu_input *input)
{
    return input->value ? (const void *)input->value
                        : hob_tensor_view(input->tensor)->data;
}

/* ---- spaces ---- */

/* Size of dimension INDEX, from the last, of a shape; 1 beyond its rank. */
static int64_t size_at(const int64_t *shape, uint32_t rank, uint32_t index)
{
    return index < rank ? shape[rank - 1 - index] : 1;
}

/* Whether a shape is GROUP's space, the last ROWS dimensions being 1. */
static int is_space(const struct fu_group *group, const int64_t *shape,
                    uint32_t rank, uint32_t rows)
{
    const uint32_t most = rank > group->rank ? rank : group->rank;

    for (uint32_t i = 0; i < most; i++)
        if (size_at(shape, rank, i) !=
            (i < rows ? 1 : size_at(group->shape, group->rank, i)))
            return 0;
    return 1;
}

/* Whether some operand of ITEM is a member of GROUP that differs in a row. */
static int reads_full(const struct fu_window *window,
                      const struct fu_item *item, uint32_t group)
{
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_item *maker = maker_of(window, &item->node->inputs[i]);

        if (maker && maker->group == group && !maker->is_row)
            return 1;
    }
    return 0;
}

/* Whether ITEM's elements are those of GROUP's space; *OUT_IS_ROW if it is one
 * for each row. */
static int fits(const struct fu_window *window, const struct fu_item *item,
                uint32_t group_index, uint8_t *out_is_row)
{
    const struct fu_group *group = &window->groups[group_index];
    const struct fu_value *value = &item->node->values[0];

    if (item->class == FU_FOLD) {
        struct fu_seen x = fu_see(&item->node->inputs[0]);

        *out_is_row = 1;
        return is_space(group, x.shape, x.rank, 0) &&
               (!group->row_rank || group->row_rank == item->rows);
    }
    *out_is_row = 0;
    if (is_space(group, value->shape, value->rank, 0))
        return 1;
    *out_is_row = 1;
    return group->row_rank &&
           is_space(group, value->shape, value->rank, group->row_rank) &&
           !reads_full(window, item, group_index);
}

/* ---- joining ---- */

static int has_key(const struct fu_group *group, const void *key)
{
    for (uint32_t i = 0; i < group->key_count; i++)
        if (group->keys[i] == key)
            return 1;
    return 0;
}

/* The bytes that ITEM saves as a member of GROUP; 0 if it cannot be one. */
static uint64_t saved_by(const struct fu_window *window,
                         const struct fu_item *item, uint32_t index,
                         uint8_t *out_is_row)
{
    const struct fu_group *group = &window->groups[index];
    uint64_t saved = 0;
    uint32_t keys = group->key_count;

    if (group->is_gone || !group->is_fused || group->count >= MOST_STEPS ||
        !fits(window, item, index, out_is_row))
        return 0;
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_input *input = &item->node->inputs[i];
        const struct fu_item *maker = maker_of(window, input);

        if (maker && maker->group == index) {
            saved += 2 * fu_bytes(fu_see(input)); /* neither written nor read */
            continue;
        }
        if (has_key(group, key_of(input)))
            saved += fu_bytes(fu_see(input));
        else
            keys++;
        if (maker && has(window->groups[maker->group].reach, index))
            return 0; /* out of the group and back */
    }
    return keys <= HOB_FUSED_MAX_INPUTS ? saved : 0;
}

static void append(struct fu_window *window, uint32_t index,
                   struct fu_item *item)
{
    struct fu_group *group = &window->groups[index];
    const uint16_t at = (uint16_t)(item - window->items);

    item->group = (uint16_t)index;
    item->next = FU_WINDOW;
    if (group->count++)
        window->items[group->last].next = at;
    else
        group->first = at;
    group->last = at;
    if (item->class == FU_FOLD)
        group->row_rank = item->rows;
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_input *input = &item->node->inputs[i];
        const struct fu_item *maker = maker_of(window, input);

        if (maker && maker->group == index)
            continue;
        if (maker)
            depend(window, index, maker->group);
        if (group->key_count < HOB_FUSED_MAX_INPUTS &&
            !has_key(group, key_of(input)))
            group->keys[group->key_count++] = key_of(input);
    }
}

static uint32_t group_new(struct fu_window *window, const struct fu_item *item)
{
    const uint32_t index = window->group_count++;
    struct fu_group *group = &window->groups[index];
    const int64_t *shape =
        item->node->values ? item->node->values[0].shape : NULL;
    uint32_t rank = 0;

    memset(group, 0, sizeof(*group));
    group->is_fused = item->class == FU_STEP || item->class == FU_FOLD;
    if (!group->is_fused)
        return index;
    rank = item->node->values[0].rank;
    if (item->class == FU_FOLD) {
        struct fu_seen x = fu_see(&item->node->inputs[0]);

        shape = x.shape;
        rank = x.rank;
    }
    group->rank = (uint8_t)rank;
    memcpy(group->shape, shape, rank * sizeof(int64_t));
    return index;
}

/* Whether groups INDEX and OTHER, both of which ITEM reads, can be one. */
static int can_join(const struct fu_window *window, const struct fu_item *item,
                    uint32_t index, uint32_t other)
{
    const struct fu_group *a = &window->groups[index];
    const struct fu_group *b = &window->groups[other];
    uint32_t keys = a->key_count;

    if (b->is_gone || !b->is_fused || a->count + b->count >= MOST_STEPS ||
        has(a->reach, other) || has(b->reach, index) ||
        !is_space(a, b->shape, b->rank, 0) ||
        (a->row_rank && b->row_rank && a->row_rank != b->row_rank))
        return 0;
    for (uint32_t i = 0; i < b->key_count; i++)
        keys += !has_key(a, b->keys[i]);
    /* Room for what ITEM reads besides. */
    if (keys + item->node->input_count > HOB_FUSED_MAX_INPUTS)
        return 0;
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_item *maker = maker_of(window, &item->node->inputs[i]);

        if (maker && (has(window->groups[maker->group].reach, other) ||
                      has(window->groups[maker->group].reach, index)))
            return 0;
    }
    return 1;
}

/* Put the members of OTHER among those of INDEX, in recorded order. */
static void merge_members(struct fu_window *window, uint32_t index,
                          uint32_t other)
{
    struct fu_group *group = &window->groups[index];
    uint16_t a = group->first;
    uint16_t b = window->groups[other].first;
    uint16_t *link = &group->first;

    while (a < FU_WINDOW || b < FU_WINDOW) {
        uint16_t *next = a < b ? &a : &b; /* FU_WINDOW is the greatest */

        *link = *next;
        group->last = *next;
        window->items[*next].group = (uint16_t)index;
        link = &window->items[*next].next;
        *next = *link;
    }
    *link = FU_WINDOW;
    group->count = (uint16_t)(group->count + window->groups[other].count);
}

static void join(struct fu_window *window, uint32_t index, uint32_t other)
{
    struct fu_group *group = &window->groups[index];
    struct fu_group *gone = &window->groups[other];

    for (uint32_t i = 0; i < gone->key_count; i++)
        if (!has_key(group, gone->keys[i]))
            group->keys[group->key_count++] = gone->keys[i];
    if (!group->row_rank)
        group->row_rank = gone->row_rank;
    merge_members(window, index, other);
    gone->is_gone = 1;
    add_all(group->reach, gone->reach);
    for (uint32_t i = 0; i < window->group_count; i++) {
        uint64_t *reach = window->groups[i].reach;

        if (has(reach, other))
            add(reach, index);
        if (has(reach, index))
            add_all(reach, group->reach);
    }
}

/* Find the group of ITEM: where it saves most, or a new one. */
static void place(struct fu_window *window, struct fu_item *item)
{
    const int is_fused = item->class == FU_STEP || item->class == FU_FOLD;
    uint64_t best = 0;
    uint32_t group = 0;
    uint32_t seen = 0;
    uint8_t is_row = item->class == FU_FOLD;

    for (uint32_t i = window->group_count; i-- > 0 && is_fused;) {
        uint8_t row = 0;
        uint64_t saved = saved_by(window, item, i, &row);

        seen += window->groups[i].is_fused;
        if (saved > best) {
            best = saved;
            group = i;
            is_row = row;
        }
        if (seen == LOOK_BACK)
            break;
    }
    if (!best)
        group = group_new(window, item);
    for (uint32_t i = 0; best && !is_row && i < item->node->input_count; i++) {
        const struct fu_item *maker = maker_of(window, &item->node->inputs[i]);

        if (maker && maker->group != group &&
            can_join(window, item, group, maker->group))
            join(window, group, maker->group);
    }
    item->is_row = is_row;
    append(window, group, item);
}

/* All members of a match make up one group. */
static void place_matched(struct fu_window *window, struct fu_item *item)
{
    struct fu_match *match = &window->matches[item->match - 1];

    if (match->group == FU_WINDOW) {
        match->group = (uint16_t)group_new(window, item);
        window->groups[match->group].match = item->match;
    }
    item->is_row = 0;
    append(window, match->group, item);
}

/* ---- what is stored ---- */

/* Of VALUE's users, those that are members of GROUP. */
static uint32_t inner_users(const struct fu_window *window,
                            const struct fu_value *value, uint32_t group)
{
    uint32_t users = 0;

    for (uint16_t at = window->groups[group].first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_node *node = window->items[at].node;

        for (uint32_t i = 0; i < node->input_count; i++)
            users += node->inputs[i].value == value;
    }
    return users;
}

int fu_is_only_for_locked(const struct fu_window *window, uint32_t index,
                          const struct fu_value *value)
{
    return !value->handles && value->users == inner_users(window, value, index);
}

/* Whether a member of GROUP that reads VALUE stays pending. */
static int is_needed_again(const struct fu_window *window,
                           const struct fu_value *value, uint32_t group)
{
    for (uint16_t at = window->groups[group].first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_item *item = &window->items[at];

        for (uint32_t i = 0; i < item->node->input_count && item->stays; i++)
            if (item->node->inputs[i].value == value)
                return 1;
    }
    return 0;
}

/*
 * A value is stored if it was asked for, if something outside the group reads
 * it, or if a handle waits for it and it is dear or was computed before. What
 * is cheap and was not asked for stays pending: it can be computed again, and
 * may never have to be.
 */
static void choose_stored(struct fu_window *window, uint32_t index)
{
    const struct fu_group *group = &window->groups[index];
    uint16_t members[FU_WINDOW];
    uint32_t count = 0;

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next)
        members[count++] = at;
    while (count--) {
        struct fu_item *item = &window->items[members[count]];
        struct fu_node *node = item->node;
        struct fu_value *value = &node->values[0];
        int again = is_needed_again(window, value, index);

        item->is_stored = 1;
        if (node->is_asked)
            item->why = HOB_FUSION_ASKED;
        else if (value->users > inner_users(window, value, index))
            item->why = HOB_FUSION_READ;
        else if ((value->handles || again) && item->class == FU_FOLD)
            item->why = HOB_FUSION_DEAR;
        else if ((value->handles || again) && node->is_computed)
            item->why = HOB_FUSION_AGAIN;
        else
            item->is_stored = 0;
        item->stays = !item->is_stored && (value->handles || again);
    }
}

/* ---- groups that no program has room for ---- */

/* How many values that are made elsewhere the members of group INDEX read. */
static uint32_t count_inputs(const struct fu_window *window, uint32_t index)
{
    const void *keys[FU_WINDOW];
    uint32_t count = 0;

    for (uint16_t at = window->groups[index].first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_node *node = window->items[at].node;

        for (uint32_t i = 0; i < node->input_count; i++) {
            const struct fu_item *maker = maker_of(window, &node->inputs[i]);
            const void *key = key_of(&node->inputs[i]);
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
    uint32_t stored = 0, scalars = 0;

    for (uint16_t at = window->groups[index].first; at < FU_WINDOW;
         at = window->items[at].next) {
        stored += window->items[at].is_stored;
        scalars += window->items[at].step.scalar_count;
    }
    return stored > HOB_FUSED_MAX_OUTPUTS || scalars > HOB_FUSED_MAX_SCALARS ||
           count_inputs(window, index) > HOB_FUSED_MAX_INPUTS;
}

/* A half without members that are the same for a whole row has no rows. */
static void look_for_rows(struct fu_window *window, uint32_t index)
{
    struct fu_group *group = &window->groups[index];
    int has_rows = 0;

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next)
        has_rows |= window->items[at].is_row;
    if (!has_rows)
        group->row_rank = 0;
}

/* Make the later half of group INDEX one of its own: what it reads of the
 * earlier one is stored then, so both are to be chosen for again. */
static void split(struct fu_window *window, uint32_t index)
{
    const uint32_t other = window->group_count++;
    struct fu_group *group = &window->groups[index];
    struct fu_group *later = &window->groups[other];
    uint16_t at = group->first;

    *later = *group;
    group->count /= 2;
    later->count = (uint16_t)(later->count - group->count);
    for (uint32_t i = 1; i < group->count; i++)
        at = window->items[at].next;
    group->last = at;
    later->first = window->items[at].next;
    window->items[at].next = FU_WINDOW;
    for (at = later->first; at < FU_WINDOW; at = window->items[at].next)
        window->items[at].group = (uint16_t)other;
    for (uint32_t i = 0; i < other; i++)
        if (has(window->groups[i].reach, index))
            add(window->groups[i].reach, other);
    add(later->reach, index);
    look_for_rows(window, index);
    look_for_rows(window, other);
}

/* Choose what group INDEX stores; of what is too large, there are more groups
 * afterwards. */
static void choose(struct fu_window *window, uint32_t index)
{
    choose_stored(window, index);
    while (window->groups[index].count > 1 && is_too_large(window, index) &&
           window->group_count < FU_WINDOW) {
        split(window, index);
        choose_stored(window, index);
    }
}

/* A constant is a tensor only if somebody outside groups wants it. */
static void choose_constant(struct fu_window *window, struct fu_item *item)
{
    struct fu_value *value = &item->node->values[0];
    uint32_t users = 0;

    for (uint32_t i = 0; i < window->count; i++) {
        const struct fu_item *user = &window->items[i];

        if (user->class != FU_STEP && user->class != FU_FOLD)
            continue;
        for (uint32_t k = 0; k < user->node->input_count; k++)
            users += user->node->inputs[k].value == value;
    }
    item->is_stored = item->node->is_asked || value->users > users;
    item->stays = !item->is_stored;
}

/* ---- the order of groups ---- */

static void emit(struct fu_window *window, uint64_t *done, uint32_t group)
{
    window->order[window->order_count++] = (uint16_t)group;
    add(done, group);
}

/* What GROUP depends on comes before it: of that, who depends on another
 * reaches more. */
static void emit_needed(struct fu_window *window, uint64_t *done,
                        uint32_t group)
{
    for (;;) {
        uint32_t least = FU_WINDOW, next = 0;

        for (uint32_t i = 0; i < window->group_count; i++) {
            const struct fu_group *needed = &window->groups[i];

            if (needed->is_gone || has(done, i) ||
                !has(window->groups[group].reach, i) ||
                size_of(needed->reach) >= least)
                continue;
            least = size_of(needed->reach);
            next = i;
        }
        if (least == FU_WINDOW)
            return;
        emit(window, done, next);
    }
}

static int is_ready(const struct fu_window *window, const uint64_t *done,
                    uint32_t group)
{
    const uint64_t *reach = window->groups[group].reach;

    for (uint32_t i = 0; i < FU_WORDS; i++)
        if (reach[i] & ~done[i])
            return 0;
    return 1;
}

/* As far as their members allow, groups run where their last one was recorded:
 * a program's own order is good to caches and memory. */
static void put_in_order(struct fu_window *window)
{
    uint64_t done[FU_WORDS] = {0};
    uint16_t by_last[FU_WINDOW];

    memset(by_last, 0xff, sizeof(by_last));
    window->order_count = 0;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (window->groups[i].is_gone)
            add(done, i);
        else
            by_last[window->groups[i].last] = (uint16_t)i;
    for (uint32_t i = 0; i < window->count; i++) {
        const uint32_t group = by_last[i];

        if (group >= FU_WINDOW || has(done, group))
            continue;
        if (!is_ready(window, done, group))
            emit_needed(window, done, group);
        emit(window, done, group);
    }
}

void fu_window_fill(struct fu_window *window, struct fu_node *const *nodes,
                    uint32_t count)
{
    window->count = count;
    window->group_count = 0;
    window->match_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        window->items[i].node = nodes[i];
        window->items[i].stays = 0;
        window->items[i].match = 0;
        nodes[i]->slot = i;
    }
}

void fu_window_plan_locked(struct fu_window *window)
{
    const uint32_t count = window->count;

    for (uint32_t i = 0; i < count; i++)
        fu_classify(window->layer, &window->items[i]);
    fu_match_check_locked(window);
    for (uint32_t i = 0; i < count; i++)
        if (window->items[i].match)
            place_matched(window, &window->items[i]);
        else if (window->items[i].class != FU_CONSTANT)
            place(window, &window->items[i]);
    for (uint32_t i = 0; i < window->group_count; i++)
        if (!window->groups[i].is_gone && window->groups[i].is_fused)
            choose(window, i);
    for (uint32_t i = 0; i < count; i++)
        if (window->items[i].class == FU_CONSTANT)
            choose_constant(window, &window->items[i]);
    put_in_order(window);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - a node finds its group: where it saves most bytes.
 */
#include "groups.h"

#include <string.h>

/* Steps that a group may have; constants come on top. */
enum { MOST_STEPS = 56, LOOK_BACK = 16 };

/* GROUP depends on OTHER, and so does all that depends on GROUP. */
static void depend(struct fu_window *window, uint32_t group, uint32_t other)
{
    uint64_t *reach = window->groups[group].reach;

    fu_set_add(reach, other);
    fu_set_add_all(reach, window->groups[other].reach);
    /* The latest one too may have taken in what others depend on. */
    for (uint32_t i = 0; i < window->group_count; i++)
        if (fu_set_has(window->groups[i].reach, group))
            fu_set_add_all(window->groups[i].reach, reach);
}

void fu_find_reach(struct fu_window *window)
{
    int is_more = 1;

    for (uint32_t i = 0; i < window->group_count; i++)
        memset(window->groups[i].reach, 0, sizeof(window->groups[i].reach));
    for (uint32_t i = 0; i < window->count; i++) {
        const struct fu_item *item = &window->items[i];

        for (uint32_t k = 0;
             item->class != FU_CONSTANT && k < item->node->input_count; k++) {
            const struct fu_item *maker =
                fu_maker_of(window, &item->node->inputs[k]);

            if (maker && maker->group != item->group)
                fu_set_add(window->groups[item->group].reach, maker->group);
        }
    }
    while (is_more) {
        is_more = 0;
        for (uint32_t i = 0; i < window->group_count; i++) {
            uint64_t before[FU_WORDS];
            uint64_t *reach = window->groups[i].reach;

            memcpy(before, reach, sizeof(before));
            for (uint32_t k = 0; k < window->group_count; k++)
                if (fu_set_has(reach, k))
                    fu_set_add_all(reach, window->groups[k].reach);
            is_more |= memcmp(before, reach, sizeof(before)) != 0;
        }
    }
}

/* ---- spaces ---- */

/* Size of dimension INDEX, from the last, of a shape; 1 beyond its rank. */
static int64_t size_at(const int64_t *shape, uint32_t rank, uint32_t index)
{
    return index < rank ? shape[rank - 1 - index] : 1;
}

/* Whether a shape is GROUP's space, the dimensions ROWS being 1. */
static int is_space(const struct fu_group *group, const int64_t *shape,
                    uint32_t rank, uint32_t rows)
{
    const uint32_t most = rank > group->rank ? rank : group->rank;

    for (uint32_t i = 0; i < most; i++)
        if (size_at(shape, rank, i) !=
            (fu_has_dim(rows, i) ? 1 : size_at(group->shape, group->rank, i)))
            return 0;
    return 1;
}

/* Whether some operand of ITEM is a member of GROUP that differs in a row. */
static int reads_full(const struct fu_window *window,
                      const struct fu_item *item, uint32_t group)
{
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_item *maker =
            fu_maker_of(window, &item->node->inputs[i]);

        if (maker && maker->group == group && !maker->is_row)
            return 1;
    }
    return 0;
}

/* Whether the rows of ITEM can be GROUP's, which may have none yet. */
static int has_rows(const struct fu_group *group, const struct fu_item *item)
{
    if (item->parts && group->rank == HOB_MAX_RANK)
        return 0;
    return !group->rows ||
           (group->rows == item->rows && group->parts == item->parts);
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
        return is_space(group, x.shape, x.rank, 0) && has_rows(group, item);
    }
    *out_is_row = 0;
    if (item->class == FU_BODY)
        return is_space(group, value->shape, value->rank, 0) &&
               has_rows(group, item);
    if (is_space(group, value->shape, value->rank, 0))
        return 1;
    *out_is_row = 1;
    return group->rows && !group->parts &&
           is_space(group, value->shape, value->rank, group->rows) &&
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

/* Whether ITEM, which is not IS_ROW, needs a result of a reduction of GROUP
 * whose rows lie apart: it comes after all of the group has been read, and
 * reads it again. */
static int reads_again(const struct fu_window *window,
                       const struct fu_item *item, uint32_t group, int is_row)
{
    if (is_row || !window->groups[group].is_apart)
        return 0;
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_item *maker =
            fu_maker_of(window, &item->node->inputs[i]);

        if (maker && maker->group == group && maker->is_row)
            return 1;
    }
    return 0;
}

/* The bytes that ITEM saves as a member of GROUP; 0 if it cannot be one. */
static uint64_t saved_by(const struct fu_window *window,
                         const struct fu_item *item, uint32_t index,
                         uint8_t *out_is_row)
{
    const struct fu_group *group = &window->groups[index];
    uint64_t cost = group->cost + item->cost;
    uint64_t saved = 0;
    uint32_t keys = group->key_count;
    int again;

    if (group->is_gone || !group->is_fused || group->count >= MOST_STEPS ||
        !fits(window, item, index, out_is_row))
        return 0;
    again = reads_again(window, item, index, *out_is_row);
    cost += again ? group->read : 0;
    /* A group finishes one product, of which nothing is written nor read. So
     * sums of many take each as it comes, and none waits for the last. */
    cost += group->finished ? 2 * fu_product_bytes(window, item) : 0;
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_input *input = &item->node->inputs[i];
        const struct fu_item *maker = fu_maker_of(window, input);

        if (maker && maker->group == index) {
            if (!again || !maker->is_row) /* neither written nor read */
                saved += 2 * fu_bytes(fu_see(input));
            continue;
        }
        if (has_key(group, fu_key_of(input)))
            saved += fu_bytes(fu_see(input));
        else
            keys++;
        if (maker && fu_set_has(window->groups[maker->group].reach, index))
            return 0; /* out of the group and back */
    }
    return keys <= HOB_FUSED_MAX_INPUTS && saved > cost ? saved - cost : 0;
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
    /* Beside others a body has saved what it costs. */
    group->cost = group->count == 1 ? item->cost : 0;
    if (!group->finished)
        group->finished = fu_product_bytes(window, item);
    if (item->class == FU_FOLD || item->class == FU_BODY) {
        group->rows = item->rows;
        group->parts = item->parts;
        group->is_apart = item->is_apart;
    }
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_input *input = &item->node->inputs[i];
        const struct fu_item *maker = fu_maker_of(window, input);

        if (maker && maker->group == index)
            continue;
        if (maker)
            depend(window, index, maker->group);
        if (group->is_fused && group->key_count < HOB_FUSED_MAX_INPUTS &&
            !has_key(group, fu_key_of(input))) {
            group->keys[group->key_count++] = fu_key_of(input);
            group->read += fu_bytes(fu_see(input));
        }
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
    group->is_fused = fu_is_fused(item);
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
    const uint64_t cost = b->cost + (a->finished ? 2 * b->finished : 0);
    uint32_t keys = a->key_count;

    if (b->is_gone || !b->is_fused || a->count + b->count >= MOST_STEPS ||
        fu_set_has(a->reach, other) || fu_set_has(b->reach, index) ||
        !is_space(a, b->shape, b->rank, 0) ||
        (a->rows && b->rows && (a->rows != b->rows || a->parts != b->parts)) ||
        (b->parts && a->rank == HOB_MAX_RANK))
        return 0;
    for (uint32_t i = 0; i < b->key_count; i++)
        keys += !has_key(a, b->keys[i]);
    /* Room for what ITEM reads besides. */
    if (keys + item->node->input_count > HOB_FUSED_MAX_INPUTS)
        return 0;
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_item *maker =
            fu_maker_of(window, &item->node->inputs[i]);

        if (maker && maker->group == other &&
            2 * fu_bytes(fu_see(&item->node->inputs[i])) <= cost)
            return 0;
        if (maker && (fu_set_has(window->groups[maker->group].reach, other) ||
                      fu_set_has(window->groups[maker->group].reach, index)))
            return 0;
    }
    return 1;
}

void fu_take_members(struct fu_window *window, uint32_t index, uint32_t other)
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
    window->groups[other].is_gone = 1;
}

static void join(struct fu_window *window, uint32_t index, uint32_t other)
{
    struct fu_group *group = &window->groups[index];
    struct fu_group *gone = &window->groups[other];

    for (uint32_t i = 0; i < gone->key_count; i++)
        if (!has_key(group, gone->keys[i]))
            group->keys[group->key_count++] = gone->keys[i];
    group->read += gone->read;
    if (!group->finished)
        group->finished = gone->finished;
    if (!group->rows) {
        group->rows = gone->rows;
        group->parts = gone->parts;
        group->is_apart = gone->is_apart;
    }
    fu_take_members(window, index, other);
    fu_set_add_all(group->reach, gone->reach);
    for (uint32_t i = 0; i < window->group_count; i++) {
        uint64_t *reach = window->groups[i].reach;

        if (fu_set_has(reach, other))
            fu_set_add(reach, index);
        if (fu_set_has(reach, index))
            fu_set_add_all(reach, group->reach);
    }
}

void fu_place(struct fu_window *window, struct fu_item *item)
{
    const int is_fused = fu_is_fused(item);
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
        const struct fu_item *maker =
            fu_maker_of(window, &item->node->inputs[i]);

        if (maker && maker->group != group &&
            can_join(window, item, group, maker->group))
            join(window, group, maker->group);
    }
    item->is_row = is_row;
    append(window, group, item);
}

void fu_place_matched(struct fu_window *window, struct fu_item *item)
{
    struct fu_match *match = &window->matches[item->match - 1];

    if (match->group == FU_WINDOW) {
        match->group = (uint16_t)group_new(window, item);
        window->groups[match->group].match = item->match;
    }
    item->is_row = 0;
    append(window, match->group, item);
}

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

#include <stdlib.h>

enum { MOST_ROOTS = 2048 };

/* Elements that are read, by themselves or as views of them. */
struct root {
    const void *key; /* NULL: none */
    const struct fu_value *value;
    uint64_t bytes;
    uint32_t users;   /* inputs in the window that are VALUE */
    uint16_t last;    /* the group of those that read it that ends last */
    uint16_t between; /* where the last of the others ends; 0: there is none */
};

/* A table by their keys, of which more than half is empty. */
struct roots {
    const struct fu_window *window;
    uint32_t size; /* a power of two */
    struct root *at;
};

static const struct fu_input *root_of(const struct fu_window *window,
                                      const struct fu_input *input)
{
    const struct fu_item *maker = fu_maker_of(window, input);

    while (maker && maker->node->fuse == HOB_FUSE_VIEW &&
           maker->node->input_count == 1) {
        input = &maker->node->inputs[0];
        maker = fu_maker_of(window, input);
    }
    return input;
}

/* What INPUT reads. */
static struct root *find_root(struct roots *roots, const struct fu_input *input)
{
    const struct fu_input *from = root_of(roots->window, input);
    const void *data = fu_key_of(from);
    const void *key = data ? data : from; /* of no elements */
    uint64_t at = (uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    struct root *root = &roots->at[at & (roots->size - 1)];

    while (root->key && root->key != key)
        root = &roots->at[++at & (roots->size - 1)];
    if (!root->key) {
        root->key = key;
        root->value = from->value;
        /* A constant has no memory, but is read as a number. */
        root->bytes = fu_tensor_of(from) || fu_maker_of(roots->window, from)
                          ? fu_bytes(fu_see(from))
                          : 0;
        root->last = FU_WINDOW;
        root->between = 0;
    }
    return root;
}

static void read_by(const struct fu_window *window, struct root *root,
                    uint16_t group)
{
    const uint16_t end = window->groups[group].last;

    if (root->last == group)
        return;
    if (root->last == FU_WINDOW || end > window->groups[root->last].last) {
        if (root->last != FU_WINDOW)
            root->between = window->groups[root->last].last;
        root->last = group;
    } else if (end > root->between) {
        root->between = end;
    }
}

/* Who reads what, until free(); 0: there is too much of it, or no memory. */
static int find_roots(struct roots *roots)
{
    const struct fu_window *window = roots->window;
    uint32_t inputs = 0;

    for (uint32_t i = 0; i < window->count; i++)
        inputs += window->items[i].node->input_count;
    for (roots->size = 1; roots->size <= 2 * inputs; roots->size *= 2)
        if (roots->size == MOST_ROOTS)
            return 0;
    roots->at = calloc(roots->size, sizeof(roots->at[0]));
    if (!roots->at)
        return 0;
    for (uint32_t i = 0; i < window->count; i++) {
        const struct fu_item *item = &window->items[i];

        for (uint32_t k = 0;
             item->class != FU_CONSTANT && k < item->node->input_count; k++) {
            struct root *root = find_root(roots, &item->node->inputs[k]);

            root->users += item->node->inputs[k].value == root->value;
            read_by(window, root, item->group);
        }
    }
    return 1;
}

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
static uint16_t place_of(struct roots *roots, uint32_t index)
{
    const struct fu_window *window = roots->window;
    const struct fu_group *group = &window->groups[index];
    const struct root *seen[FU_WINDOW];
    uint64_t freed = 0;
    uint32_t count = 0;
    uint16_t place = 0;

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_node *node = window->items[at].node;

        for (uint32_t i = 0; i < node->input_count; i++) {
            const struct fu_item *maker = fu_maker_of(window, &node->inputs[i]);
            struct root *root = find_root(roots, &node->inputs[i]);
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
            /* Others read it later, or it stays. */
            if (root->last != index ||
                (root->value && (root->value->handles || root->value->settled ||
                                 root->value->users > root->users)))
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
    struct roots roots;

    roots.window = window;
    for (uint32_t i = 0; i < window->group_count; i++)
        places[i] = window->groups[i].last;
    if (!find_roots(&roots))
        return;
    for (uint32_t i = 0; i < window->group_count; i++)
        if (!window->groups[i].is_gone)
            places[i] = place_of(&roots, i);
    free(roots.at);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roots.c - what the items of a window read, and for how long that is needed.
 */
#include "groups.h"

#include <stdlib.h>

enum { MOST_ROOTS = 2048 };

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

struct fu_root *fu_root_of(struct fu_roots *roots, const struct fu_input *input)
{
    const struct fu_input *from = root_of(roots->window, input);
    const void *data = fu_key_of(from);
    const void *key = data ? data : from; /* of no elements */
    uint64_t at = (uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    struct fu_root *root = &roots->at[at & (roots->size - 1)];

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

int fu_root_ends(const struct fu_root *root)
{
    const struct fu_value *value = root->value;

    return !value || (!value->handles && !value->settled &&
                      value->users <= root->users);
}

static void read_by(const struct fu_window *window, struct fu_root *root,
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

int fu_roots_find(struct fu_roots *roots)
{
    const struct fu_window *window = roots->window;
    uint32_t inputs = 0;

    roots->at = NULL;
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
            struct fu_root *root = fu_root_of(roots, &item->node->inputs[k]);

            root->users += item->node->inputs[k].value == root->value;
            root->last_item = (uint16_t)i;
            read_by(window, root, item->group);
        }
    }
    return 1;
}

void fu_roots_release(struct fu_roots *roots)
{
    free(roots->at);
}

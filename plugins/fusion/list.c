/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.c - steps of an optimizer for several parameters, run at once.
 *
 * On a GPU the step of a small parameter takes less time than asking for it
 * does. So such steps wait for the last of their like, if nothing needs the
 * result of one before, and the base runs all of them in one go. What that
 * keeps for longer is their gradients: of no more bytes than is said here, as
 * results lie over what they are the new ones of.
 */
#include "update.h"

#include <string.h>

enum {
    MOST = HOB_FUSED_MAX_UPDATES,
    MOST_GRADIENT = 1 << 20, /* bytes: a larger one's step is no short one */
    MOST_KEPT = 8 << 20      /* of the gradients that wait */
};

/* ---- planning ---- */

static uint64_t gradient_bytes(const struct fu_window *window, uint32_t index)
{
    const struct fu_item *item = &window->items[window->groups[index].first];

    /* Tensors come first among the arguments. */
    return fu_bytes(fu_see(&item->node->inputs[fu_update_of(item)->gradient]));
}

/* Whether group INDEX is a step that may wait for others. */
static int is_short(const struct fu_window *window, uint32_t index)
{
    const struct fu_group *group = &window->groups[index];

    return group->count == 1 && fu_update_of(&window->items[group->first]) &&
           gradient_bytes(window, index) <= MOST_GRADIENT;
}

static int can_list(const struct fu_window *window)
{
    const struct hob_fused_compute *fused = window->layer->fused;

    return fused && FU_HAS(fused, run_updates);
}

/* Steps that do not depend on each other. */
struct list {
    uint64_t set[FU_WORDS]; /* the same */
    uint64_t bytes;         /* of their gradients */
    uint32_t count;
    uint16_t groups[MOST];
};

static int depends(const struct fu_window *window, uint32_t index,
                   const struct list *list)
{
    for (uint32_t i = 0; i < FU_WORDS; i++)
        if (window->groups[index].reach[i] & list->set[i])
            return 1;
    return 0;
}

static void add(const struct fu_window *window, struct list *list,
                uint32_t index)
{
    fu_set_add(list->set, index);
    list->bytes += gradient_bytes(window, index);
    list->groups[list->count++] = (uint16_t)index;
}

/* LIST is as long as it gets: all of it runs where its last one was recorded.
 */
static void end(const struct fu_window *window, struct list *list,
                uint16_t *places)
{
    for (uint32_t i = 0; list->count > 1 && i < list->count; i++)
        places[list->groups[i]] =
            window->groups[list->groups[list->count - 1]].last;
    memset(list, 0, sizeof(*list));
}

void fu_place_lists(const struct fu_window *window, uint16_t *places)
{
    struct list list;

    if (!can_list(window))
        return;
    memset(&list, 0, sizeof(list));
    for (uint32_t i = 0; i < window->count; i++) {
        const uint32_t index = window->items[i].group;
        int is_listed;

        if (window->items[i].class == FU_CONSTANT ||
            window->groups[index].last != i)
            continue;
        is_listed = is_short(window, index);
        if (depends(window, index, &list) ||
            (is_listed &&
             (list.count == MOST ||
              list.bytes + gradient_bytes(window, index) > MOST_KEPT)))
            end(window, &list, places);
        if (is_listed)
            add(window, &list, index);
    }
    end(window, &list, places);
}

void fu_mark_lists(struct fu_window *window)
{
    struct list list;

    if (!can_list(window))
        return;
    for (uint32_t i = 0; i < window->order_count;) {
        memset(&list, 0, sizeof(list));
        for (uint32_t k = i; k < window->order_count && list.count < MOST &&
                             is_short(window, window->order[k]) &&
                             !depends(window, window->order[k], &list);
             k++)
            add(window, &list, window->order[k]);
        if (list.count > 1)
            window->groups[window->order[i]].list = (uint8_t)list.count;
        i += list.count ? list.count : 1;
    }
}

/* ---- running ---- */

static int lie_alike(const struct hob_view *a, const struct hob_view *b)
{
    const size_t bytes = a->rank * sizeof(a->shape[0]);

    return a->data == b->data && a->dtype == b->dtype && a->rank == b->rank &&
           !memcmp(a->shape, b->shape, bytes) &&
           !memcmp(a->strides, b->strides, bytes);
}

/* Whether the numbers of A and B are the same, and what they read that is not
 * of their parameters' shapes. */
static int are_alike(const struct fu_update *a, const struct fu_update *b)
{
    const struct hob_fused_update *x = &a->update, *y = &b->update;

    if (x->op != y->op || x->arg_count != y->arg_count ||
        a->views[0]->dtype != b->views[0]->dtype)
        return 0;
    for (uint32_t i = 0; i < x->arg_count; i++) {
        const hob_value *p = &x->args[i], *q = &y->args[i];

        if (p->tag != q->tag)
            return 0;
        if (p->tag == HOB_TAG_TENSOR) {
            if (i > a->item->node->ret_count &&
                !lie_alike(x->views[i], y->views[i]))
                return 0;
        } else if (p->tag != HOB_TAG_ABSENT && p->u.u64 != q->u.u64) {
            return 0;
        }
    }
    return 1;
}

/* Whether the tensors of RUN that are of its parameter's shape are also of its
 * dtype, and lie alike. */
static int is_even(const struct fu_update *run)
{
    for (uint32_t i = 0; i <= run->item->node->ret_count; i++)
        if (run->views[i]->dtype != run->views[0]->dtype ||
            !(run->views[i]->flags & HOB_VIEW_CONTIGUOUS))
            return 0;
    return 1;
}

/* Run RUNS as one; what could not be done stays to be done. */
static void run_alike(struct fu_window *window, struct fu_update *const *runs,
                      uint32_t count)
{
    struct fu_layer *layer = window->layer;
    const struct hob_fused_update *updates[MOST];
    int declined = 0;

    for (uint32_t i = 0; i < count && !declined; i++) {
        updates[i] = &runs[i]->update;
        declined = fu_update_allocate(layer, runs[i]);
    }
    if (!declined)
        declined = layer->fused->run_updates(layer->fused_instance, updates,
                                             count) != HOB_OK;
    if (!declined)
        fu_updates_publish(window, runs, count);
}

void fu_list_run(struct fu_window *window, uint32_t at)
{
    const uint16_t *groups = &window->order[at];
    const uint32_t count = window->groups[groups[0]].list;
    struct fu_update runs[MOST], *rest[MOST], *alike[MOST];
    uint32_t left = 0;

    for (uint32_t i = 0; i < count; i++)
        if (!fu_update_find(window, groups[i], &runs[i]) && is_even(&runs[i]))
            rest[left++] = &runs[i];
    while (left > 1) {
        const struct fu_update *first = rest[0];
        const uint32_t all = left;
        uint32_t found = 0;

        left = 0;
        for (uint32_t i = 0; i < all; i++)
            if (are_alike(first, rest[i]))
                alike[found++] = rest[i];
            else
                rest[left++] = rest[i];
        if (found > 1)
            run_alike(window, alike, found);
    }
    for (uint32_t i = 0; i < count; i++)
        fu_update_release(window->layer, &runs[i]);
}

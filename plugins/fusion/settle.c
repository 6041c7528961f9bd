/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle.c - handles that wait: one by one, or all of a scope.
 */
#include "node.h"

#include <stdlib.h>

/* Fill TENSOR's handle, which waited for VALUE when it was looked at. */
static hob_status fill_locked(struct fu_layer *layer, hob_tensor *tensor,
                              struct fu_value *value,
                              struct fu_garbage *garbage)
{
    hob_status status;

    if (fu_waits_for(layer, tensor) != value)
        return HOB_OK; /* another thread was faster */
    if (!value->tensor)
        return HOB_ERR_INTERNAL;
    status = layer->host->fill(tensor, layer->level, fu_settled_word(value),
                               value->tensor);
    if (!status) {
        fu_value_leave_locked(layer, value, garbage);
        value->settled++;
    }
    return status;
}

hob_status fu_settle(void *instance, hob_tensor *const *tensors, uint32_t count)
{
    struct fu_layer *layer = (struct fu_layer *)instance;
    struct fu_value *one;
    struct fu_value **asked = &one;
    struct fu_garbage garbage;
    hob_status status;

    if (count > 1) {
        asked = malloc(count * sizeof(struct fu_value *));
        if (!asked)
            return HOB_ERR_MEMORY;
    }
    fu_garbage_init(&garbage, layer->host);
    fu_lock(&layer->lock);
    for (uint32_t i = 0; i < count; i++)
        asked[i] = fu_value_of(layer->host->state(tensors[i], layer->level));
    status = fu_evaluate_locked(layer, asked, count);
    for (uint32_t i = 0; i < count && !status; i++)
        status = fill_locked(layer, tensors[i], asked[i], &garbage);
    fu_unlock(&layer->lock);
    fu_garbage_empty(&garbage);
    if (asked != &one)
        free(asked);
    return status;
}

/* Whether a flush of SCOPE, of all if that is NULL, is for NODE. One that was
 * left when it could have been stored is left again, unless its scope goes. */
static int is_flushed(const struct fu_node *node, const void *scope)
{
    return scope ? node->scope == scope : !node->is_computed;
}

/* Values to compute. */
struct values {
    struct fu_value **list;
    size_t count, capacity;
};

/* Add the values of NODE that some handle waits for to ALL. */
static hob_status add_values(const struct fu_node *node, struct values *all)
{
    for (uint32_t i = 0; i < node->ret_count; i++) {
        if (!node->values[i].handles)
            continue;
        if (all->count == all->capacity) {
            const size_t room = all->capacity ? 2 * all->capacity : 32;
            struct fu_value **more =
                realloc(all->list, room * sizeof(struct fu_value *));

            if (!more)
                return HOB_ERR_MEMORY;
            all->list = more;
            all->capacity = room;
        }
        all->list[all->count++] = &node->values[i];
    }
    return HOB_OK;
}

/* ---- what another scope has the use of ---- */

/* An inherited node is computed when so many others were recorded after it: no
 * window reaches further, and what it keeps is not to grow with a long scope.
 */
enum { OLD = 256 };

/* The scope around SCOPE, which is being closed, that has all handles which
 * wait for NODE; NULL: there is none. */
static const void *heir_of(const struct fu_layer *layer,
                           const struct fu_node *node, const void *scope)
{
    const void *heir = NULL;

    for (uint32_t i = 0; i < node->ret_count; i++) {
        const struct fu_value *value = &node->values[i];
        const hob_tensor *handle = value->handle;
        const void *own;

        if (!value->handles)
            continue;
        own = value->handles == 1 && handle ? layer->host->heir(scope, handle)
                                            : NULL;
        if (!own || (heir && heir != own))
            return NULL;
        heir = own;
    }
    return heir;
}

/* Whether SCOPE has inherited something that has waited long. */
static int has_old(struct fu_layer *layer, const void *scope)
{
    for (struct fu_node *node = *fu_list_of(layer, scope); node;
         node = node->next)
        if (node->scope == scope && node->is_inherited &&
            layer->order - node->order >= OLD)
            return 1;
    return 0;
}

/* Let scopes around SCOPE inherit what they alone have the use of: it waits for
 * their ends, and may run together with what is recorded until then. Returns
 * the one that inherits no more before what it has is computed. */
static const void *inherit_locked(struct fu_layer *layer, const void *scope)
{
    const void *known = NULL, *full = NULL;
    struct fu_node *next;

    for (struct fu_node *node = *fu_list_of(layer, scope); node; node = next) {
        const void *heir;

        next = node->next;
        if (node->scope != scope || !node->wanted)
            continue;
        heir = heir_of(layer, node, scope);
        if (!heir)
            continue;
        if (heir != known && has_old(layer, heir))
            full = heir;
        known = heir;
        if (heir != full)
            fu_node_inherit_locked(layer, node, heir);
    }
    return full;
}

hob_status fu_flush(void *instance, const void *scope)
{
    struct fu_layer *layer = (struct fu_layer *)instance;
    struct fu_node **first = scope ? fu_list_of(layer, scope) : layer->pending;
    struct fu_node **last = scope ? first + 1 : layer->pending + FU_LISTS;
    const void *full = NULL;
    struct values all = {NULL, 0, 0};
    hob_status status = HOB_OK;

    fu_lock(&layer->lock);
    if (scope)
        full = inherit_locked(layer, scope);
    for (; first < last; first++)
        for (struct fu_node *node = *first; node && !status; node = node->next)
            if (is_flushed(node, scope))
                status = add_values(node, &all);
    for (struct fu_node *node = full ? *fu_list_of(layer, full) : NULL;
         node && !status; node = node->next)
        if (node->scope == full && node->is_inherited)
            status = add_values(node, &all);
    for (size_t i = 0; i < all.count; i++)
        all.list[i]->node->refs++; /* whose handles may die meanwhile */
    if (!status && all.count)
        status = fu_evaluate_locked(layer, all.list, all.count);
    for (size_t i = 0; i < all.count; i++)
        fu_node_unref_locked(layer, all.list[i]->node);
    fu_unlock(&layer->lock);
    free(all.list);
    return status;
}

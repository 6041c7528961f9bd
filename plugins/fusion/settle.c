/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle.c - handles that wait: one by one, or all of a scope.
 */
#include "fusion.h"

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

/* Add the values of NODE that some handle waits for to LIST of COUNT. */
static hob_status add_values(const struct fu_node *node,
                             struct fu_value ***list, size_t *count,
                             size_t *capacity)
{
    for (uint32_t i = 0; i < node->ret_count; i++) {
        if (!node->values[i].handles)
            continue;
        if (*count == *capacity) {
            const size_t room = *capacity ? 2 * *capacity : 32;
            struct fu_value **more =
                realloc(*list, room * sizeof(struct fu_value *));

            if (!more)
                return HOB_ERR_MEMORY;
            *list = more;
            *capacity = room;
        }
        (*list)[(*count)++] = &node->values[i];
    }
    return HOB_OK;
}

hob_status fu_flush(void *instance, const void *scope)
{
    struct fu_layer *layer = (struct fu_layer *)instance;
    struct fu_node **first = scope ? fu_list_of(layer, scope) : layer->pending;
    struct fu_node **last = scope ? first + 1 : layer->pending + FU_LISTS;
    struct fu_value **values = NULL;
    size_t count = 0, capacity = 0;
    hob_status status = HOB_OK;

    fu_lock(&layer->lock);
    for (; first < last; first++)
        for (struct fu_node *node = *first; node && !status; node = node->next)
            if (is_flushed(node, scope))
                status = add_values(node, &values, &count, &capacity);
    for (size_t i = 0; i < count; i++)
        values[i]->node->refs++; /* whose handles may die meanwhile */
    if (!status && count)
        status = fu_evaluate_locked(layer, values, count);
    for (size_t i = 0; i < count; i++)
        fu_node_unref_locked(layer, values[i]->node);
    fu_unlock(&layer->lock);
    free(values);
    return status;
}

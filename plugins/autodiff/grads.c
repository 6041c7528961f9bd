/* SPDX-License-Identifier: Apache-2.0 */
#include "grads.h"

#include <stdlib.h>

struct ad_grads *ad_grads_new(const struct hob_host *host)
{
    struct ad_grads *grads = calloc(1, sizeof(*grads));

    if (grads)
        grads->host = host;
    return grads;
}

void ad_grads_free(struct ad_grads *grads)
{
    if (!grads)
        return;
    for (size_t i = 0; i < grads->map.capacity; i++) {
        const struct ad_map_entry *entry = &grads->map.entries[i];

        if (!entry->key)
            continue;
        grads->host->tensor_unref((hob_tensor *)entry->value);
        /* The map's keys are const; this one came from ad_grads_put(). */
        ad_node_unref(grads->host, (struct ad_node *)(uintptr_t)entry->key);
    }
    ad_map_release(&grads->map);
    free(grads);
}

int ad_grads_put(struct ad_grads *grads, struct ad_node *leaf, hob_tensor *grad)
{
    if (ad_map_put(&grads->map, leaf, grad)) {
        grads->host->tensor_unref(grad);
        return 1;
    }
    ad_node_ref(leaf);
    return 0;
}

hob_tensor *ad_grads_get(const struct ad_grads *grads,
                         const struct ad_node *leaf)
{
    return (hob_tensor *)ad_map_get(&grads->map, leaf);
}

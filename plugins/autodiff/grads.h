/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grads.h - gradients by leaf, as hob_backward() gives them out.
 *
 * Holds a reference to each leaf and to each gradient. Constant once the walk
 * is over, so threads may read it.
 */
#ifndef HOB_AUTODIFF_GRADS_H
#define HOB_AUTODIFF_GRADS_H

#include "graph.h"
#include "map.h"

struct ad_grads {
    const struct hob_host *host;
    struct ad_map map; /* struct ad_node * of a leaf -> hob_tensor * */
};

/* NULL without memory. */
struct ad_grads *ad_grads_new(const struct hob_host *host);
void ad_grads_free(struct ad_grads *grads); /* accepts NULL */

/* Add the gradient of LEAF, which has none yet; takes the caller's reference
 * to GRAD, also on failure. Nonzero without memory. */
int ad_grads_put(struct ad_grads *grads, struct ad_node *leaf,
                 hob_tensor *grad);

/* The gradient of LEAF, borrowed; NULL if none reached it. */
hob_tensor *ad_grads_get(const struct ad_grads *grads,
                         const struct ad_node *leaf);

#endif

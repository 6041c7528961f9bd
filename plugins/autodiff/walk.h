/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - one backward pass.
 *
 * A walk is one thread's. Gradients that wait for their node, and results
 * that were computed again, live in it until their node has run.
 */
#ifndef HOB_AUTODIFF_WALK_H
#define HOB_AUTODIFF_WALK_H

#include "grads.h"
#include "layer.h"
#include "map.h"

/* A node that gradients have reached. */
struct ad_entry {
    struct ad_node *node; /* counted */
    hob_tensor *grads[];  /* one a result; NULL: none yet */
};

struct ad_walk {
    const struct ad_layer *layer;
    hob_scope *scope; /* the caller's; every step opens a child */
    int consume;
    char **out_message;
    struct ad_node *running; /* whose rule runs now, claimed */
    struct ad_map pending;   /* node -> struct ad_entry */
    struct ad_entry **heap;  /* the same, the greatest order first */
    size_t heap_count;
    size_t heap_capacity;
    /* Replayed: node -> hob_tensor *[ret_count]; the node is counted. */
    struct ad_map values;
    struct ad_grads *grads;
    char *scratch; /* the arrays of one struct hob_grad_call */
    size_t scratch_bytes;
};

/*
 * The result that SLOT stands for, computed again one level down from what
 * its node kept, and from what the nodes behind kept, as far as needed.
 * Borrowed from WALK until ad_values_drop(). On failure the message is set.
 */
hob_status ad_replay(struct ad_walk *walk, const struct ad_slot *slot,
                     hob_tensor **out_tensor);

/* Give back the replayed results of NODE, if there are any. */
void ad_values_drop(struct ad_walk *walk, struct ad_node *node);

/* Give back all replayed results. */
void ad_values_release(struct ad_walk *walk);

/* Add GRAD to what waits for SLOT; SCOPE is one of a step. */
hob_status ad_add_grad(struct ad_walk *walk, hob_scope *scope,
                       const struct ad_slot *slot, hob_tensor *grad);

/* Run the segment of ENTRY's node again, recorded, and let the gradients of
 * its results wait for the nodes that made them now. */
hob_status ad_segment_again(struct ad_walk *walk, const struct ad_entry *entry);

/* The message of a graph that is not there any more; returns its status. */
hob_status ad_consumed(const struct ad_walk *walk, const struct ad_node *node);

/* See struct hob_autodiff_interface. */
hob_status ad_backward(const struct ad_layer *layer, hob_scope *scope,
                       struct ad_slot *root, hob_tensor *tensor, uint32_t flags,
                       struct ad_grads **out_grads, char **out_message);

#endif

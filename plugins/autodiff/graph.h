/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - what autodiff remembers of the calls it saw.
 *
 * A node is one recorded call, or a leaf. Its results' handles carry a state
 * word, which is the address of one of the node's slots. Edges point from a
 * node to the slots that its tracked inputs carried, so the graph is owned
 * from its end towards its leaves:
 *
 *   handle --state--> slot in node --edge--> slot in parent --> ... --> leaf
 *
 * - A node lives while a handle carries one of its slots, a child has an edge
 *   to it, or a walk stands on it. All counts are atomic, so threads may
 *   build on each other's graphs.
 * - Saved tensors are aliases one level down. They carry no state word of
 *   this level, hence no cycle can form.
 * - order is one more than the greatest order of the parents: walking by
 *   falling order meets every child before its parents.
 * - Freeing uses a list threaded through the dead nodes, never recursion.
 */
#ifndef HOB_AUTODIFF_GRAPH_H
#define HOB_AUTODIFF_GRAPH_H

#include "pool.h"

#include <hob/ext/autodiff.h>
#include <hob/ext/plugin.h>

#include <stdatomic.h>

struct ad_node;

/* The state word of a handle points at one of these. */
struct ad_slot {
    struct ad_node *node; /* whose memory this is in */
    uint32_t index;       /* of the result */
    uint32_t reserved;
};

enum ad_input_flags {
    AD_INPUT_NEEDED = 1, /* the rule reads this input's elements */
    AD_INPUT_SOURCE = 2, /* replaying the call reads them */
    AD_INPUT_REPLAY = 4  /* not saved: the edge's node is replayed for them */
};

struct ad_input {
    struct ad_slot *edge; /* NULL if the input was not tracked */
    hob_tensor *saved;    /* one level down; NULL if not saved */
    uint16_t flags;       /* enum ad_input_flags; constant once recorded */
    uint16_t counted;     /* it is one of the users of the edge's node */
    uint32_t param;       /* which argument it is, or is in */
};

enum ad_node_flags {
    AD_NODE_LEAF = 1,
    AD_NODE_REPLAYS = 2,    /* its results can be had again by replaying it */
    AD_NODE_REPLAY_RETS = 4 /* its own rule gets its results that way */
};

/* ad_node.claim: readers in the low bits, and this. */
#define AD_CONSUMED UINT32_C(0x80000000)

/*
 * One allocation, laid out behind the struct: inputs, saved results, slots,
 * args, plains, packed metadata (inputs first, then results), payloads of args.
 */
struct ad_node {
    atomic_uint refs;    /* edges, walks, and one for all handles */
    atomic_uint handles; /* handles that carry a slot */
    atomic_uint claim;   /* walks that read what is saved; AD_CONSUMED */
    atomic_uint users;   /* who may yet ask to replay this: one for all
                            handles, one a child that relies on it */
    uint64_t order;
    struct ad_node *next_dead;
    struct ad_pool *pool; /* whose memory this is; outlives all nodes */
    const struct hob_backward *rule; /* NULL for a leaf and a segment */
    struct hob_segment *segment;     /* to be run again, or NULL; owned */
    const char *op_name;             /* borrowed from the runtime */
    uint32_t op;
    uint32_t flags; /* enum ad_node_flags */
    uint16_t arg_count;
    uint16_t input_count;
    uint16_t ret_count;
    uint16_t plain_count;
    uint32_t bytes; /* of the allocation */
    struct ad_input *inputs;
    hob_tensor **rets; /* saved results, NULL where not saved */
    struct ad_slot *slots;
    hob_value *args;   /* without tensors; the tags and counts stay */
    hob_value *plains; /* the results that are no tensors */
    int64_t *metas;    /* of the inputs; see ad_node_meta_next() */
    int64_t *ret_metas;
};

/* A leaf with one slot and one handle. NULL without memory. */
struct ad_node *ad_leaf_new(struct ad_pool *pool);

/*
 * A node for CALL, with its attributes and the metadata of its inputs and
 * results, but without edges, saved tensors or handles: one reference for
 * the handles to come. NULL without memory.
 */
struct ad_node *ad_node_new(struct ad_pool *pool, const struct hob_call *call);

/* Write the metadata of a result again, in order from 0 on, where it is known
 * only now; NULL is one that is absent. *CURSOR starts at node->ret_metas. */
void ad_node_ret_meta_put(int64_t **cursor, hob_tensor *tensor);

/* Read the metadata at *CURSOR and move it on. Start at node->metas. */
void ad_node_meta_next(const int64_t **cursor, struct hob_meta *out);

static inline void ad_node_ref(struct ad_node *node)
{
    atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
}

/* Give back one reference; frees NODE and what only it kept, iteratively. */
void ad_node_unref(const struct hob_host *host, struct ad_node *node);

/* INPUT of a node relies on replaying its edge's node. */
static inline void ad_input_set_replay(struct ad_input *input)
{
    input->flags |= AD_INPUT_REPLAY;
    input->counted = 1;
    atomic_fetch_add_explicit(&input->edge->node->users, 1,
                              memory_order_relaxed);
}

/* A handle more, or less, carries a slot of NODE. */
static inline void ad_node_retain_handle(struct ad_node *node)
{
    atomic_fetch_add_explicit(&node->handles, 1, memory_order_relaxed);
}
void ad_node_release_handle(const struct hob_host *host, struct ad_node *node);

/*
 * Begin to read what NODE saved; with CONSUME nobody may begin after this.
 * Nonzero if it was consumed before; nothing is claimed then.
 */
int ad_node_claim(struct ad_node *node, int consume);
/* End what ad_node_claim() began; the last of a consumed node frees. */
void ad_node_unclaim(const struct hob_host *host, struct ad_node *node);

#endif

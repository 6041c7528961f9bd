/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer.h - one autodiff layer of one device stack.
 *
 * A layer holds no graph: graphs hang from tensors. But for the memory pool
 * it is constant once it is open, so any number of threads may use it.
 */
#ifndef HOB_AUTODIFF_LAYER_H
#define HOB_AUTODIFF_LAYER_H

#include "graph.h"
#include "rules/rules.h"

#include <hob/ext/autodiff.h>
#include <hob/ext/plugin.h>

struct ad_layer {
    const struct hob_host *host;
    hob_device *below; /* borrowed: the core keeps it */
    int32_t level;
    uint32_t balanced;    /* memory-bound results are recomputed, not saved */
    struct ad_pool *pool; /* of its nodes */
    /* By op number; NULL where there is no rule. */
    const struct hob_backward *rules[AD_OP_LIMIT];
};

/* The slot that TENSOR carries at LAYER; NULL if it is not tracked. */
static inline struct ad_slot *ad_slot_of(const struct ad_layer *layer,
                                         const hob_tensor *tensor)
{
    return (struct ad_slot *)layer->host->state(tensor, layer->level);
}

/* As hob_say(), but the first text stays. */
hob_status ad_message(const struct hob_host *host, char **out_message,
                      hob_status status, const char *format, ...)
    HOB_PRINTF(4, 5);

/* Read OPTIONS, a JSON object or NULL, into LAYER. */
hob_status ad_options_read(struct ad_layer *layer, const char *text,
                           char **out_message);

/* A handle on TENSOR's elements, on its device, without the state words of
 * this layer and of those above. The caller's reference; NULL without memory.
 */
hob_tensor *ad_hide(const struct ad_layer *layer, hob_tensor *tensor);

/* Let SCOPE own such a handle that carries SLOT at this layer, taking a count
 * of SLOT's handles. SLOT may be NULL. */
hob_status ad_rehandle(const struct ad_layer *layer, hob_scope *scope,
                       hob_tensor *tensor, struct ad_slot *slot,
                       hob_tensor **out);

/* See struct hob_autodiff_interface. */
hob_status ad_checkpoint(void *layer, hob_scope *scope,
                         struct hob_segment *segment, hob_tensor *const *inputs,
                         uint32_t input_count, hob_tensor **out);

/* The decorator's call; see struct hob_decorator. */
int32_t ad_call(void *layer, struct hob_call *call,
                const struct hob_op_impl *impl, hob_status *out_status);

/* The interface "autodiff.backward" of any layer. */
extern const struct hob_autodiff_interface ad_interface;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.h - an optimizer's step on its way: as one with the product that is
 * its gradient (update.c), or with other steps (list.c).
 */
#ifndef HOB_FUSION_UPDATE_H
#define HOB_FUSION_UPDATE_H

#include "groups.h"

/* Which of an op's arguments is the gradient, and of which argument each result
 * is the new one. */
struct fu_update_op {
    uint32_t op;
    uint8_t gradient;
    uint8_t old[3];
};

/* What a run of a step is made of. */
struct fu_update {
    const struct fu_update_op *is;
    const struct fu_item *item;
    uint32_t group;
    uint32_t in_place; /* results over what they are the new ones of */
    struct hob_fused_update update;
    const struct hob_view *views[HOB_MAX_PARAMS];
    const struct hob_view *outs[3];
    hob_tensor *old[3];  /* borrowed: what result k is the new one of */
    hob_tensor *made[3]; /* our reference */
    uint64_t read_bytes, written_bytes;
};

/* What ITEM's op is as an update; NULL: none. */
const struct fu_update_op *fu_update_of(const struct fu_item *item);

/* Let RUN be group INDEX: nonzero if an argument is a failure, or lies as the
 * base cannot have it. RUN stays where it is. */
int fu_update_find(const struct fu_window *window, uint32_t index,
                   struct fu_update *run);
/* Make the results, over what they are the new ones of where that is not needed
 * any more. Nonzero without memory. */
int fu_update_allocate(struct fu_layer *layer, struct fu_update *run);
/* The COUNT groups of RUNS have run as one: tell of it, and give out what they
 * give. */
void fu_updates_publish(struct fu_window *window, struct fu_update *const *runs,
                        uint32_t count);
/* After fu_update_find(), whatever came of it. */
void fu_update_release(const struct fu_layer *layer, struct fu_update *run);

#endif

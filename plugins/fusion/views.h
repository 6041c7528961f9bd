/* SPDX-License-Identifier: Apache-2.0 */
/*
 * views.h - what views between two groups do to dimensions.
 */
#ifndef HOB_FUSION_VIEWS_H
#define HOB_FUSION_VIEWS_H

#include "groups.h"

enum { FU_NOWHERE = HOB_MAX_RANK }; /* of a frame */

/* The views between two groups. What LAST gives has RANK parts of dimensions,
 * each of which steps through a dimension of VALUE, as a frame says. */
struct fu_views {
    struct fu_item *last;
    const struct fu_value *value;
    struct fu_frame frame;
    int64_t shape[HOB_MAX_RANK]; /* of the parts */
    uint8_t of[HOB_MAX_RANK];    /* the dimension that each is of */
    uint32_t rank;
    uint32_t count;
};

/* VIEWS of none: LAST, a view, as it is. */
void fu_views_begin(struct fu_views *views, struct fu_item *last);
/* The view of NODE comes before those that VIEWS has. 0: it is none that steps
 * through dimensions. */
int fu_views_apply(struct fu_views *views, const struct fu_node *node);
/* FRAME, of what has the dimensions of INNER's own space, goes on through
 * that. */
void fu_frame_through(struct fu_frame *frame, const struct fu_frame *inner);

#endif

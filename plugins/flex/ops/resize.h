/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.h - one axis of a resize: how each result along it is a sum of a few
 * elements.
 */
#ifndef FLEX_RESIZE_H
#define FLEX_RESIZE_H

#include "../flex.h"

enum flex_resize_mode {
    FLEX_RESIZE_NEAREST, /* this far as interpolate numbers them */
    FLEX_RESIZE_NEAREST_EXACT,
    FLEX_RESIZE_BILINEAR,
    FLEX_RESIZE_BICUBIC,
    FLEX_RESIZE_LANCZOS3,
    FLEX_RESIZE_AVERAGE /* of the windows of adaptive_avg_pool */
};

struct flex_resize_rule {
    enum flex_resize_mode mode;
    int align_corners;
    int64_t in, out;
};

/*
 * Result i is the sum of element at[k * out + i] times weight[k * out + i],
 * for TAPS of k; those that it has not have weight 0. Between its first and
 * its last element lie less than SPAN.
 */
struct flex_resize_axis {
    int64_t in, out, taps, span;
    int is_same; /* in, element by element */
    int32_t *at;
    void *weights; /* f64 if SIZE is 8, else f32 */
    uint32_t size;
    uint64_t bytes; /* of both, at AT */
};

/*
 * Lay out RULE, or (is_transposed) the sums by which the gradient of what it
 * makes becomes that of what it reads. HOB_ERR_MEMORY without memory.
 */
hob_status flex_resize_axis_make(struct flex_device *device,
                                 const struct flex_resize_rule *rule,
                                 int is_transposed, uint32_t size,
                                 struct flex_resize_axis *out);
/* Accepts one that was zeroed. */
void flex_resize_axis_release(struct flex_device *device,
                              struct flex_resize_axis *axis);

#endif

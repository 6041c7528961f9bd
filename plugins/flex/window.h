/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - the attributes of ops that lay windows over planes. Index 0 is the
 * height, 1 the width.
 */
#ifndef FLEX_WINDOW_H
#define FLEX_WINDOW_H

#include "flex.h"

#include <hob/ext/window.h>

struct flex_window {
    int64_t size[2];
    int64_t stride[2];
    int64_t padding[2];
    int64_t dilation[2];
    int64_t in[2];  /* sizes of the plane that windows lie over */
    int64_t out[2]; /* how many windows */
};

/*
 * The windows along AXIS whose tap TAP lies inside the plane: *OUT_FIRST up
 * to but not including *OUT_LAST.
 */
static inline void flex_window_valid(const struct flex_window *window, int axis,
                                     int64_t tap, int64_t *out_first,
                                     int64_t *out_last)
{
    const int64_t stride = window->stride[axis];
    /* Window i reads position i * stride + offset. */
    const int64_t offset = tap * window->dilation[axis] - window->padding[axis];
    const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const int64_t room = window->in[axis] - 1 - offset;
    const int64_t last = room < 0 ? 0 : room / stride + 1;

    *out_first = flex_clamp(first, 0, window->out[axis]);
    *out_last = flex_clamp(last, *out_first, window->out[axis]);
}

#endif

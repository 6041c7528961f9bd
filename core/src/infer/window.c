/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

#include <hob/ext/window.h>

int hob__window_pair(const int64_t *list, uint32_t count,
                     const int64_t fallback[2], int64_t out[2])
{
    if (count > 2)
        return 0;
    out[0] = count ? list[0] : fallback[0];
    out[1] = count ? list[count - 1] : fallback[1];
    return 1;
}

int64_t hob__window_extent(const struct hob__window *window, int axis)
{
    return hob_window_extent(window->size[axis], window->dilation[axis]);
}

int64_t hob__window_count(const struct hob__window *window, int axis,
                          int64_t in, int ceil)
{
    int64_t stride = window->stride[axis], padding = window->padding[axis];
    int64_t count =
        hob_window_count(ceil ? in + stride - 1 : in,
                         hob__window_extent(window, axis), stride, padding);

    if (ceil && count && (count - 1) * stride >= in + padding)
        count--;
    return count;
}

/*
 * A window starts before the end of the elements and reaches their first, so
 * it can miss them only if it starts before them and steps over them. The loop
 * goes on while windows hit, so it is no longer than the result.
 */
int hob__window_misses(const struct hob__window *window, int axis, int64_t in,
                       int64_t windows)
{
    int64_t dilation = window->dilation[axis];
    int64_t start = -window->padding[axis];

    if (dilation <= in)
        return 0;
    for (int64_t i = 0; i < windows && start < 0; i++) {
        int64_t first = (dilation - -start % dilation) % dilation;
        if (first >= in)
            return 1;
        start += window->stride[axis];
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/window.h - windows of convolutions and pooling.
 *
 *     int64_t extent = hob_window_extent(weight->shape[2], dilation);
 *     int64_t windows = hob_window_count(x->shape[2], extent, stride, padding);
 *
 *     if (!windows)
 *         return host->fail(call, HOB_ERR_SHAPE, "no window fits");
 *
 * - Sizes are at least 1, paddings at least 0, on both sides each, and small
 *   enough for their sum not to overflow.
 */
#ifndef HOB_EXT_WINDOW_H
#define HOB_EXT_WINDOW_H

#include <hob/ext/plugin.h>

HOB_BEGIN_DECLS

/* Elements from the first to the last of SIZE taps that lie DILATION apart;
 * INT64_MAX / 4 where it would be more. */
static inline int64_t hob_window_extent(int64_t size, int64_t dilation)
{
    const int64_t gaps = size - 1;

    if (gaps > 0 && dilation > INT64_MAX / 4 / gaps - 1)
        return INT64_MAX / 4;
    return dilation * gaps + 1;
}

/* How many windows of EXTENT fit into IN elements, one STRIDE after the other;
 * 0 if none does. */
static inline int64_t hob_window_count(int64_t in, int64_t extent,
                                       int64_t stride, int64_t padding)
{
    const int64_t room = in + 2 * padding - extent;

    return room < 0 ? 0 : room / stride + 1;
}

/* List argument INDEX, of one number for both axes or of two, as height and
 * width; FALLBACK for an empty one. */
static inline void hob_window_pair(const struct hob_call *call, uint32_t index,
                                   const int64_t fallback[2], int64_t out[2])
{
    const hob_value *list = &call->args[index];
    const uint32_t count = list->tag == HOB_TAG_I64S ? list->count : 0;

    out[0] = count ? list->u.i64s[0] : fallback[0];
    out[1] = count ? list->u.i64s[count - 1] : fallback[1];
}

HOB_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "slice.h"

static int64_t clamp_position(int64_t position, int64_t size)
{
    if (position < 0)
        position += size;
    if (position < 0)
        return 0;
    return position > size ? size : position;
}

struct hob__range hob__range_resolve(int64_t start, int64_t end, int64_t step,
                                     int64_t size)
{
    int64_t low = clamp_position(start, size);
    int64_t high = clamp_position(end, size);
    /* Unsigned, for the one step whose opposite is no i64. */
    uint64_t stride = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    struct hob__range range = {low, 0, step};

    if (high <= low)
        return range;
    range.count = (int64_t)(((uint64_t)(high - low) - 1) / stride + 1);
    if (step < 0)
        range.first = high - 1;
    return range;
}

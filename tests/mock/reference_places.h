/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference_places.h - where an element is, for the reference backend.
 */
#ifndef REFERENCE_PLACES_H
#define REFERENCE_PLACES_H

#include <hob/ext/plugin.h>

/* Turn position FLAT of VIEW, in row-major order, into INDEX. */
static inline void place_index(const struct hob_view *view, int64_t flat,
                               int64_t *index)
{
    for (uint32_t i = view->rank; i-- > 0;) {
        index[i] = flat % view->shape[i];
        flat /= view->shape[i];
    }
}

/* The offset of INDEX, which has RANK numbers, in VIEW broadcast to it. */
static inline int64_t place_offset(const struct hob_view *view,
                                   const int64_t *index, uint32_t rank)
{
    int64_t offset = 0;

    for (uint32_t i = 0; i < view->rank; i++)
        if (view->shape[i] != 1)
            offset += index[rank - view->rank + i] * view->strides[i];
    return offset;
}

/* The offset of position FLAT. */
static inline int64_t place_flat(const struct hob_view *view, int64_t flat)
{
    int64_t index[HOB_MAX_RANK];

    place_index(view, flat, index);
    return place_offset(view, index, view->rank);
}

static inline uint32_t place_axis(const struct hob_view *view, int64_t dim)
{
    return (uint32_t)(dim < 0 ? dim + view->rank : dim);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * element.h - single elements of views whose dtype is known at run time.
 */
#ifndef VISION_ELEMENT_H
#define VISION_ELEMENT_H

#include <hob/view.h>

/* What vision_load() does for f16 and bf16. */
double vision_load_half(const struct hob_view *view, int64_t offset);

/* The element OFFSET elements from VIEW's first, a float: exact. */
static inline double vision_load(const struct hob_view *view, int64_t offset)
{
    if (view->dtype == HOB_DTYPE_F32)
        return (double)((const float *)view->data)[offset];
    if (view->dtype == HOB_DTYPE_F64)
        return ((const double *)view->data)[offset];
    return vision_load_half(view, offset);
}

/* Write NUMBER, rounded to nearest even, to the float at OFFSET of VIEW. */
void vision_store(const struct hob_view *view, int64_t offset, double number);

/* NUMBER as vision_store() would round it for VIEW. */
double vision_round(const struct hob_view *view, double number);

/* Write NUMBER, which fits, as the only element of VIEW, an integer. */
void vision_store_int(const struct hob_view *view, int64_t number);

/* Fill VIEW, which is contiguous, with zeros. */
void vision_zero(const struct hob_view *view);

/* FROM's element at AT is copied to TO's at TO_AT, of the same dtype. */
void vision_copy(const struct hob_view *to, int64_t to_at,
                 const struct hob_view *from, int64_t at);

#endif

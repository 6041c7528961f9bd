/* SPDX-License-Identifier: Apache-2.0 */
/*
 * element.h - single elements of strided tensors, of any float or int dtype.
 */
#ifndef VISION_ELEMENT_H
#define VISION_ELEMENT_H

#include <hob/view.h>

/* The element OFFSET elements from VIEW's first, a float: exact. */
double vision_load(const struct hob_view *view, int64_t offset);

/* Write NUMBER, rounded to nearest even, to the float at OFFSET of VIEW. */
void vision_store(const struct hob_view *view, int64_t offset, double number);

/* NUMBER as vision_store() would round it for VIEW. */
double vision_round(const struct hob_view *view, double number);

/* The only element of VIEW, an integer, and writing one that fits. As for
 * u64, beyond INT64_MAX is INT64_MAX. */
int64_t vision_load_int(const struct hob_view *view);
void vision_store_int(const struct hob_view *view, int64_t number);

/* FROM's element at AT is copied to TO's at TO_AT, of the same dtype. */
void vision_copy(const struct hob_view *to, int64_t to_at,
                 const struct hob_view *from, int64_t at);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* sort.h - stable sorting along a dimension, for ops that need it. */
#ifndef CUBE_SORT_H
#define CUBE_SORT_H

#include "launch.h"

/*
 * VALUES and INDICES, row-major and of X's shape, get X sorted along DIM and
 * where its elements were. NaN is above all, -0 equal to +0; equal elements
 * keep their order.
 */
hob_status cube_sort_run(struct cube_device *device, struct hob_call *call,
                         const struct hob_view *values,
                         const struct hob_view *indices,
                         const struct hob_view *x, uint32_t dim,
                         int is_descending);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* group_norm.h - a row of group_norm: for the op, and for programs with it. */
#ifndef FLEX_GROUP_NORM_H
#define FLEX_GROUP_NORM_H

#include "flex.h"
#include "kernels/rows.h"

/* Numbers of the computing type, each for PLACES elements one after the other;
 * DATA is NULL if there are none. */
struct flex_channels {
    const void *data;
    int64_t places;
};

/* X, a row of N elements of SIZE bytes, normalized, times WEIGHT, plus BIAS, to
 * OUT. The number of places of one divides that of the other, and N. */
void flex_group_norm_row(const struct flex_row_kernels *kernels, uint32_t size,
                         void *out, const void *x, struct flex_channels weight,
                         struct flex_channels bias, double epsilon, int64_t n);

#endif

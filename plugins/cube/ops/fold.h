/* SPDX-License-Identifier: Apache-2.0 */
/* fold.h - sums, products, extremes along any dimensions. */
#ifndef CUBE_OPS_FOLD_H
#define CUBE_OPS_FOLD_H

#include "../cube.h"

enum cube_fold_kind {
    CUBE_FOLD_SUM,
    CUBE_FOLD_PRODUCT,
    CUBE_FOLD_MAX, /* NaN if any is */
    CUBE_FOLD_MIN,
    CUBE_FOLD_ANY,
    CUBE_FOLD_ALL,
    CUBE_FOLD_ARG_MAX, /* the first NaN, then the lowest index */
    CUBE_FOLD_ARG_MIN
};

/*
 * Fold X along DIMS, a bit for each dimension. Extremes are of at least one
 * element. f16 and bf16 are folded in f32; sums of floats keep what they round
 * away. The same on a device every time.
 */
struct cube_fold {
    struct cube_device *device;
    struct hob_call *call;
    struct hob_view x;
    uint32_t dims;
    uint32_t kind;    /* enum cube_fold_kind */
    uint32_t is_mean; /* of SUM: divide it by the number of elements */
    uint32_t reserved;
    const struct hob_view *values;  /* row-major; NULL for indices alone */
    const struct hob_view *indices; /* of ARG_... */
    int64_t length;                 /* set by cube_fold_run */
};

hob_status cube_fold_run(struct cube_fold *fold);

/* The type in which a fold of KIND of elements of DTYPE is accumulated on a
 * device of LIMITS. */
enum cube_type cube_fold_accum(uint32_t kind, uint32_t is_mean,
                               const struct cube_limits *limits,
                               uint32_t dtype);

#endif

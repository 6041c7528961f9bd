/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.h - what reduce.c, arg.c and scan.c share: a tensor read in blocks
 * of the dtype that is computed in, and the shape of a reduction.
 */
#ifndef FLEX_REDUCE_H
#define FLEX_REDUCE_H

#include "flex.h"

/* Elements of a block; a block of f64 fills the first-level cache. */
enum { FLEX_FOLD_BLOCK = 4096 };

/* Room for one block. */
struct flex_fold_buffer {
    _Alignas(FLEX_ALIGN) unsigned char stored[FLEX_FOLD_BLOCK * 8];
    _Alignas(FLEX_ALIGN) float single[FLEX_FOLD_BLOCK];
};

/* Elements of LOOP, N from FIRST on, converted with LOAD if it is not NULL. */
static inline const void *flex_fold_fetch(const struct flex_loop *loop,
                                          flex_cast_fn load, int64_t first,
                                          int64_t n,
                                          struct flex_fold_buffer *buffer)
{
    const void *data = flex_loop_fetch(loop, first, n, buffer->stored);

    if (!load)
        return data;
    load(buffer->single, data, n);
    return buffer->single;
}

/* A reduction along one dimension: COUNT results, each from N elements that
 * lie STRIDE apart; OUTER walks over the first of them. */
struct flex_axis {
    struct flex_loop outer;
    int64_t n;
    int64_t stride;
    int columns; /* nonzero: neighbouring results are closer than neighbours
                    along the axis, so go through many results at once */
};

void flex_axis_init(struct flex_axis *axis, const struct hob_view *view,
                    int64_t dim);

/* The elements that make result INDEX, as a loop of N. */
void flex_axis_row(const struct flex_axis *axis, int64_t index,
                   struct flex_loop *out);

/* Element K along the axis of all results, as a loop of COUNT. */
static inline void flex_axis_slice(const struct flex_axis *axis, int64_t k,
                                   struct flex_loop *out)
{
    *out = axis->outer;
    out->data += k * axis->stride * (int64_t)out->size;
}

/* Results to go through at once from FIRST on, LIMIT at most: none beyond the
 * end of a row of OUTER, so that rows need no copy. */
int64_t flex_axis_chunk(const struct flex_axis *axis, int64_t first,
                        int64_t last, int64_t limit);

/* Results of a piece of parallel work. */
int64_t flex_axis_grain(const struct flex_axis *axis);

#endif

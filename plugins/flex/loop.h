/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - a view as a loop over its elements.
 *
 * A struct flex_loop is a view with its dimensions collapsed: size-1
 * dimensions gone, neighbours that walk memory as one merged. Elements are
 * numbered in the view's row-major order ("logical" indices).
 */
#ifndef FLEX_LOOP_H
#define FLEX_LOOP_H

#include <hob/view.h>

struct flex_loop {
    char *data;
    uint32_t size; /* of an element, in bytes */
    uint32_t rank; /* 0 for a single element */
    int64_t count;
    int64_t shape[HOB_MAX_RANK];
    int64_t strides[HOB_MAX_RANK]; /* in elements */
};

/* Describe VIEW. */
void flex_loop_init(struct flex_loop *loop, const struct hob_view *view);

/*
 * Describe VIEW broadcast to RANK sizes SHAPE (aligned on the right, size 1
 * or an absent dimension repeats), then collapsed.
 */
void flex_loop_broadcast(struct flex_loop *loop, const struct hob_view *view,
                         uint32_t rank, const int64_t *shape);

/*
 * Describe the elements of VIEW in an order of our own choice: strides made
 * positive, dimensions sorted by stride. For whole reductions whose result
 * does not depend on the order.
 */
void flex_loop_unordered(struct flex_loop *loop, const struct hob_view *view);

/* Describe VIEW without dimension DIM (at index 0 of it). */
void flex_loop_without(struct flex_loop *loop, const struct hob_view *view,
                       uint32_t dim);

/* Nonzero if the elements lie one after the other. */
static inline int flex_loop_dense(const struct flex_loop *loop)
{
    return loop->rank == 0 || (loop->rank == 1 && loop->strides[0] == 1);
}

/* The offset in elements of logical element INDEX. */
int64_t flex_loop_offset(const struct flex_loop *loop, int64_t index);

/*
 * Logical elements FIRST .. FIRST + COUNT - 1 as contiguous memory: a pointer
 * into the view where they already are, else a copy in BUFFER.
 */
const void *flex_loop_fetch(const struct flex_loop *loop, int64_t first,
                            int64_t count, void *buffer);

/*
 * What N logical elements from FIRST on depend on, where LOOP repeats elements:
 * equal keys, equal elements. -1 where it does not.
 */
int64_t flex_loop_repeat_key(const struct flex_loop *loop, int64_t first,
                             int64_t n);

/* Copy logical elements FIRST .. FIRST + COUNT - 1 to or from contiguous
 * memory. */
void flex_loop_gather(const struct flex_loop *loop, int64_t first,
                      int64_t count, void *out);
void flex_loop_scatter(const struct flex_loop *loop, int64_t first,
                       int64_t count, const void *from);

/* Copy COUNT elements of SIZE bytes; strides in elements. */
void flex_copy_strided(void *out, int64_t out_stride, const void *in,
                       int64_t in_stride, int64_t count, uint32_t size);

#endif

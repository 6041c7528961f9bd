/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move.h - elements copied from one layout to another.
 *
 * Whatever the strides, a copy is cut into planes that a kernel moves line by
 * line of both sides: runs, transposed squares, or elements one by one.
 */
#ifndef FLEX_MOVE_H
#define FLEX_MOVE_H

#include "flex.h"
#include "kernels/move.h"

/* Copy IN to OUT, views of the same shape and dtype that do not overlap; no
 * two elements of OUT are one. On the host's threads. */
void flex_move(struct flex_device *device, const struct hob_view *out,
               const struct hob_view *in);
/* The same on this thread, as a part of a result of RESULT_BYTES. */
void flex_move_here(struct flex_device *device, const struct hob_view *out,
                    const struct hob_view *in, uint64_t result_bytes);
/* Copy IN to row-major memory OUT, on the host's threads. */
void flex_move_dense(struct flex_device *device, void *out,
                     const struct hob_view *in);
/* Copy logical elements FIRST .. FIRST + COUNT - 1 of LOOP to contiguous
 * memory OUT, on this thread. */
void flex_move_range(struct flex_device *device, const struct flex_loop *loop,
                     int64_t first, int64_t count, void *out);

/* Whether a walk along LOOP skips about in memory, or goes in runs so short,
 * that flex_move_range of many elements is faster than fetching blocks. */
int flex_loop_skips(const struct flex_loop *loop);

/* Elements of a run that blocks of a map stay within. */
enum { FLEX_RUN_LEAST = 256 };

/* Whether an operand of a map is to be brought together in parts: not if it
 * repeats short rows or single elements, which blocks keep. */
int flex_loop_is_parted(const struct flex_loop *loop);

/* OUT's first rank sizes as row-major strides, in elements. */
void flex_row_major(struct hob_view *out);

/* The moves of DEVICE's instruction set. */
const struct flex_move_kernels *
flex_move_kernels(const struct flex_device *device);

/* Whether a result of BYTES goes past the caches: it would not be in them any
 * more when it is read. */
static inline int flex_goes_past(const struct flex_device *device,
                                 uint64_t bytes)
{
    return bytes > device->l3_bytes / 2;
}

#endif

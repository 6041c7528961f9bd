/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h - index tensors, read and checked.
 */
#ifndef FLEX_INDEX_H
#define FLEX_INDEX_H

#include "flex.h"

/*
 * Read logical elements FIRST .. FIRST + COUNT - 1 of an index tensor of
 * DTYPE into OUT. Returns the position, less FIRST, of the first that is not
 * in 0..SIZE-1, which is then in OUT at that position; -1 if all are.
 */
int64_t flex_index_read(const struct flex_device *device,
                        const struct flex_loop *loop, uint32_t dtype,
                        int64_t first, int64_t count, int64_t size,
                        int64_t *out);

/*
 * An index tensor that is read and checked piece by piece, by any thread, while
 * it is used: no copy of all of it, and memory is read once.
 */
struct flex_indices {
    struct flex_device *device;
    const struct hob_view *view;
    struct flex_loop loop;
    int64_t size;    /* they are 0 .. SIZE - 1 */
    int32_t outside; /* set once one is not */
};

void flex_indices_open(struct flex_indices *out, struct flex_device *device,
                       const struct hob_view *view, int64_t size);
/* COUNT (at most FLEX_BLOCK) from logical element FIRST on, where they lie or
 * in BUFFER; NULL if one is outside, which is remembered. */
const int64_t *flex_indices_read(struct flex_indices *indices, int64_t first,
                                 int64_t count, int64_t *buffer);
/* When all are read: fails, with a message that names the first element that is
 * outside. */
hob_status flex_indices_close(struct hob_call *call,
                              struct flex_indices *indices);

/* All of VIEW, read and checked, row-major: where it lies, or in memory; the
 * caller gives either back with *OUT_BYTES to flex_index_give. On failure CALL
 * has a message that names element and place. */
hob_status flex_index_take(struct hob_call *call, struct flex_device *device,
                           const struct hob_view *view, int64_t size,
                           const int64_t **out_indices, uint64_t *out_bytes);
void flex_index_give(struct flex_device *device, const int64_t *indices,
                     uint64_t bytes);

/*
 * The rows of VIEW [.., k], read and checked one coordinate at a time against
 * the first k sizes of X, as offsets in elements: the sum of coordinates times
 * STRIDES. *OUT_OFFSETS, one a row, is given back with *OUT_BYTES.
 */
hob_status flex_index_take_rows(struct hob_call *call,
                                struct flex_device *device,
                                const struct hob_view *view,
                                const struct hob_view *x,
                                const int64_t *strides, int64_t **out_offsets,
                                uint64_t *out_bytes);

#endif

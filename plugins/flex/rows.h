/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - a float tensor as rows along one dimension, in the type that it
 * is computed in (f64 for f64, else f32).
 *
 * A row that is not where it lies as it is to be computed on is copied to the
 * job's buffers. Where rows lie side by side, as columns of a matrix do, they
 * are copied a group at a time, for a line of memory holds elements of many:
 * so a job asks for rows in order, beginning at a multiple of FLEX_ROWS_GROUP.
 */
#ifndef FLEX_ROWS_DRIVER_H
#define FLEX_ROWS_DRIVER_H

#include "flex.h"
#include "kernels/rows.h"

enum { FLEX_ROWS_GROUP = 32 };

struct flex_rows {
    const struct flex_device *device;
    struct flex_loop outer; /* a row's first element, by row number */
    int64_t n;              /* elements in a row */
    int64_t stride;         /* between them, in elements */
    uint32_t dtype;
    uint32_t size;   /* bytes of an element of the computing type */
    int64_t group;   /* rows that are copied at a time, a power of two */
    int64_t pitch;   /* elements from row to row in the buffer */
    uint64_t buffer; /* where the buffer begins, see flex_rows_reserve */
    const struct flex_move_kernels *past; /* see flex_rows_past; or NULL */
};

/* The row kernels of DEVICE for DTYPE. */
const struct flex_row_kernels *
flex_row_kernels(const struct flex_device *device, uint32_t dtype);

/* Bytes of an element of the type that DTYPE is computed in. */
static inline uint32_t flex_row_size(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64 ? 8 : 4;
}

/* VIEW's rows along DIM; for rank 0, one row of one element. */
void flex_rows_init(struct flex_rows *rows, const struct flex_device *device,
                    const struct hob_view *view, uint32_t dim);
/* The same for VIEW broadcast to OUT's shape. */
void flex_rows_broadcast(struct flex_rows *rows,
                         const struct flex_device *device,
                         const struct hob_view *view,
                         const struct hob_view *out, uint32_t dim);

/* If the result OUT, whose rows ROWS are, is too large for the caches and not
 * written over one of its COUNT arguments IN: compute on its rows in a buffer,
 * and store them past the caches. Before flex_rows_reserve. */
void flex_rows_past(struct flex_rows *rows, const struct hob_view *out,
                    const struct hob_view *const *in, uint32_t count);

/* Row INDEX, contiguous in the computing type: in place or in the buffer that
 * flex_rows_reserve gave ROWS. Without that BUFFERS has room for one row, 8
 * bytes for each element, and rows come in any order. */
const void *flex_rows_get(const struct flex_rows *rows, int64_t index,
                          char *buffers);
/* Where to compute row INDEX: in place, or in the buffer; then flex_rows_put
 * stores it. */
void *flex_rows_target(const struct flex_rows *rows, int64_t index,
                       char *buffers);
void flex_rows_put(const struct flex_rows *rows, int64_t index, char *buffers);

/* All of rank-1 VIEW as contiguous numbers of the computing type in memory
 * that the caller gives back; NULL without memory. */
void *flex_vector_take(struct flex_device *device, const struct hob_view *view,
                       uint64_t *out_bytes);

/* One float element of VIEW, at its first address. */
double flex_float_load(const struct hob_view *view);
/* Round VALUE to the dtype of VIEW and store it at its first address. */
void flex_float_store(const struct hob_view *view, double value);

/*
 * Run FN over COUNT rows in pieces, each of which has buffers of its own.
 * Answers HOB_ERR_MEMORY if a piece got none.
 */
struct flex_rows_job {
    struct flex_device *device;
    void (*fn)(const struct flex_rows_job *job, int64_t row, char *buffers);
    const void *context;
    uint64_t buffer_bytes; /* of all buffers together; flex_rows_reserve */
    int64_t group;         /* the largest of the rows; likewise, 0: 1 */
    const struct flex_move_kernels *past; /* likewise; NULL: none goes past */
    int32_t failed;        /* set from any thread */
};
hob_status flex_rows_run(struct flex_rows_job *job, int64_t count,
                         int64_t row_elements);

/* Give ROWS a place in the buffers of JOB. */
void flex_rows_reserve(struct flex_rows_job *job, struct flex_rows *rows);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - a float tensor as rows along one dimension, in the type that it
 * is computed in (f64 for f64, else f32).
 */
#ifndef FLEX_ROWS_DRIVER_H
#define FLEX_ROWS_DRIVER_H

#include "flex.h"
#include "kernels/rows.h"

struct flex_rows {
    const struct flex_device *device;
    struct flex_loop outer; /* a row's first element, by row number */
    int64_t n;              /* elements in a row */
    int64_t stride;         /* between them, in elements */
    uint32_t dtype;
    uint32_t size; /* bytes of an element of the computing type */
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

/* Bytes of one buffer for flex_rows_get and _put. */
static inline uint64_t flex_rows_buffer_bytes(const struct flex_rows *rows)
{
    return ((uint64_t)rows->n * 8 + 2 * FLEX_ALIGN - 1) / FLEX_ALIGN *
           FLEX_ALIGN;
}

/* Row INDEX, contiguous in the computing type: in place or in BUFFER. */
const void *flex_rows_get(const struct flex_rows *rows, int64_t index,
                          void *buffer);
/* Where to compute row INDEX: in place, or in BUFFER; then flex_rows_put
 * stores it. */
void *flex_rows_target(const struct flex_rows *rows, int64_t index,
                       void *buffer);
void flex_rows_put(const struct flex_rows *rows, int64_t index,
                   const void *target);

/* All of rank-1 VIEW as contiguous numbers of the computing type in memory
 * that the caller gives back; NULL without memory. */
void *flex_vector_take(struct flex_device *device, const struct hob_view *view,
                       uint64_t *out_bytes);

/* One float element of VIEW, at its first address. */
double flex_float_load(const struct hob_view *view);
/* Round VALUE to the dtype of VIEW and store it at its first address. */
void flex_float_store(const struct hob_view *view, double value);

/*
 * Run FN over COUNT rows in pieces; each piece gets BUFFERS buffers of
 * BUFFER_BYTES. Answers HOB_ERR_MEMORY if a piece got none.
 */
struct flex_rows_job {
    struct flex_device *device;
    void (*fn)(const struct flex_rows_job *job, int64_t row, char *buffers);
    const void *context;
    uint64_t buffer_bytes; /* of all buffers together */
    int32_t failed;        /* set from any thread */
};
hob_status flex_rows_run(struct flex_rows_job *job, int64_t count,
                         int64_t row_elements);

#endif

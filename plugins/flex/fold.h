/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.h - a reduction's accumulators: how they begin, join and end.
 */
#ifndef FLEX_FOLD_H
#define FLEX_FOLD_H

#include "flex.h"

/* An accumulator of any fold. */
union flex_cell {
    double f64;
    uint64_t u64;
    uint8_t bytes[8];
};

struct flex_reduction {
    flex_fold_fn fold;         /* elements to an accumulator */
    flex_fold_rows_fn rows;    /* elements to many accumulators */
    flex_fold_rows_fn combine; /* accumulators to accumulators */
    flex_fold_fn join;         /* accumulators to one */
    flex_cast_fn load;         /* f16, bf16 to f32, or NULL */
    flex_cast_fn finish;       /* accumulators to results */
    enum flex_fold kind;
    int mean;
    uint32_t dtype; /* of the elements */
    uint32_t out_dtype;
    uint32_t acc_dtype;
    uint32_t acc_size;
};

/* KIND over elements of DTYPE; MEAN: of their sum. */
void flex_reduction_init(struct flex_reduction *reduction,
                         const struct flex_kernels *kernels,
                         enum flex_fold kind, int mean, uint32_t dtype,
                         uint32_t out_dtype);
/* The accumulator of no elements; max and min have none. */
void flex_reduction_identity(const struct flex_reduction *reduction,
                             union flex_cell *out);
/* COUNT accumulators, each of N elements, as results. CELLS is written to. */
void flex_reduction_finish(const struct flex_reduction *reduction, void *out,
                           void *cells, int64_t count, int64_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decompose.h - what decompose.c (det, lu) and qr.c share: matrices of a batch
 * as f64, and products that use all threads.
 */
#ifndef FLEX_OPS_DECOMPOSE_H
#define FLEX_OPS_DECOMPOSE_H

#include "../flex.h"

/* The matrices of a call. */
struct flex_matrices {
    struct flex_device *device;
    struct hob_call *call;
    struct flex_loop in;
    uint32_t dtype;
    int64_t m, n, k;
    int64_t count;  /* columns of q */
    uint64_t bytes; /* of scratch for one matrix */
    void (*decompose)(struct flex_matrices *job, int64_t at, double *scratch);
    int32_t failed; /* no memory; set from any thread */
};

struct flex_matrices flex_matrices_of(struct flex_device *device,
                                      struct hob_call *call);
/* Matrices in the last two dimensions of VIEW. */
int64_t flex_matrices_count(const struct hob_view *view);
/* Decompose all BATCH, each with DOUBLES of scratch; on failure the call has a
 * message. */
hob_status flex_matrices_run(struct flex_matrices *job, int64_t batch,
                             int64_t doubles);

/* Matrix AT of the argument into A. */
void flex_matrices_load(const struct flex_matrices *job, int64_t at, double *a);
/* COUNT numbers as elements of result INDEX from FIRST on. */
void flex_matrices_store(const struct flex_matrices *job, uint32_t index,
                         int64_t first, const double *from, int64_t count);

/* A, minus the product of a column V and a row T. */
struct flex_outer {
    double *a; /* [rows, stride], at its first element */
    int64_t stride, columns;
    const double *v, *t;
};

void flex_minus_outer(struct flex_device *device,
                      const struct flex_outer *outer, int64_t rows);

/* A matrix among rows that are STRIDE apart. */
struct flex_part {
    double *at;
    int64_t stride;
};

/* C [m, n] = ALPHA A B + BETA C for A [m, k], or [k, m] that IS_TURNED. */
void flex_part_multiply(struct flex_matrices *job, int64_t m, int64_t n,
                        int64_t k, double alpha, struct flex_part a,
                        int is_turned, struct flex_part b, double beta,
                        struct flex_part c);

/* ---- qr.c ---- */

hob_status flex_qr(void *device, struct hob_call *call);

#endif

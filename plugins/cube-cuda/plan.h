/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - what cuBLASLt is asked for products: descriptions, and its choice of
 * a kernel, kept by all that they depend on.
 */
#ifndef CCU_PLAN_H
#define CCU_PLAN_H

#include "blas.h"

/* cublasLtMatmulHeuristicResult_t */
struct ccu_heuristic {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

/*
 * What is asked of cuBLASLt, all that its choice depends on. It is
 * column-major: our row-major c is its n x m matrix, b comes first.
 */
struct ccu_key {
    int64_t m, n, k, count;
    int64_t a_stride, b_stride; /* from one row, or column, to the next */
    int64_t a_batch, b_batch, c_batch;
    int64_t aux_stride;
    uint32_t dtype;
    uint8_t is_a_turned, is_b_turned;
    uint8_t a_alignment, b_alignment, c_alignment; /* powers of two */
    uint8_t has_workspace;
    uint8_t epilogue; /* enum ccu_epilogue */
    uint8_t bias_alignment, aux_alignment;
    uint8_t reserved[3];
};

struct ccu_plan {
    struct ccu_key key;
    void *desc;
    void *a, *b, *c; /* layouts */
    struct ccu_heuristic heuristic;
    uint32_t is_there; /* there is a kernel */
};

/* All with the lock of the device's blas held, which is open. */

/* The plan of PRODUCT. One is kept a hash: a newer one takes the place of an
 * older. NULL: cuBLASLt has no kernel for it, or there is no memory. */
const struct ccu_plan *ccu_plan_find(struct ccu_device *device,
                                     const struct ccu_product *product);
/* The bias and aux of PRODUCT are those of the next one; the library's status.
 */
int ccu_plan_set_pointers(const struct ccu_blas *blas,
                          const struct ccu_plan *plan,
                          const struct ccu_product *product);
/* Accepts NULL. */
void ccu_plan_free(struct ccu_blas *blas, struct ccu_plan *plan);

#endif

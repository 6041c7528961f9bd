/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.h - a product of matrices as its kernels take it.
 */
#ifndef CUBE_OPS_PRODUCT_H
#define CUBE_OPS_PRODUCT_H

#include "../cube.h"

/* OUT[m, n] = the sum over k of A[m, k] B[k, n], for all places of a batch. */
struct cube_product {
    struct cube_space batch; /* operands a, b: their strides */
    const struct hob_view *views[2];
    int64_t rows[2], columns[2]; /* strides of A, then of B */
    int64_t m, n, k;
    int64_t out_row, out_column, out_batch, out_split;
    void *out;
    uint32_t dtype, out_dtype;
    int64_t splits, split_k;
};

/* Buffers and parameters of all its kernels. */
#define CUBE_PRODUCT_BUFFERS(flags)                                            \
    {"out", CUBE_WRITTEN}, {"a", (flags)},                                     \
    {                                                                          \
        "b", (flags)                                                           \
    }
#define CUBE_PRODUCT_PARAMS                                                    \
    CUBE_SPACE_PARAMS, CUBE_OPERAND_PARAMS("a"), CUBE_OPERAND_PARAMS("b"),     \
        {"m_size", CUBE_INDEX, 0}, {"n_size", CUBE_INDEX, 0},                  \
        {"k_size", CUBE_INDEX, 0}, {"a_row", CUBE_INDEX, 0},                   \
        {"a_column", CUBE_INDEX, 0}, {"b_row", CUBE_INDEX, 0},                 \
        {"b_column", CUBE_INDEX, 0}, {"c_row", CUBE_INDEX, 0},                 \
        {"c_column", CUBE_INDEX, 0}, {"c_batch", CUBE_INDEX, 0},               \
        {"c_split", CUBE_INDEX, 0}, {"splits", CUBE_INDEX, 0},                 \
        {"split_k", CUBE_INDEX, 0}, {"tiles_m", CUBE_INDEX, 0},                \
        {"tiles_n", CUBE_INDEX, 0},                                            \
    {                                                                          \
        "items", CUBE_INDEX, 0                                                 \
    }

void cube_product_buffers(struct cube_job *job,
                          const struct cube_product *product);
/* For ITEMS groups, TILES_M by TILES_N of them a part. */
void cube_product_params(struct cube_job *job,
                         const struct cube_product *product, int64_t tiles_m,
                         int64_t tiles_n, int64_t items);

/* How an operand is read: along k or across it, and in vectors of WIDTH. */
struct cube_reading {
    int along_k;
    uint32_t width;
};

/* Of OPERAND (0: a, 1: b), with vectors of MOST elements or fewer. */
struct cube_reading cube_product_reading(const struct cube_product *product,
                                         uint32_t operand, uint32_t most);

/* Sides of a tile of the result and of its inner dimension, and what one
 * invocation, or with cooperative matrices one subgroup, has of it. */
struct cube_tiling {
    int32_t m, n, k, part;
};

/* ---- matmul_matrix.c: by cooperative matrices ---- */

/* Whether DEVICE has them for PRODUCT. */
int cube_matrices_take(const struct cube_device *device,
                       const struct cube_product *product);
struct cube_tiling cube_matrices_tiling(const struct cube_device *device,
                                        const struct cube_product *product);
hob_status cube_matrices_run(struct cube_device *device, struct hob_call *call,
                             const struct cube_product *product,
                             struct cube_tiling tiling);

#endif

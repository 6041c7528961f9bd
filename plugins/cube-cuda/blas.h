/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blas.h - matrix products by cuBLASLt.
 *
 * The library is half a gigabyte. Where it is missing, products are the
 * portable kernel's. What cuBLASLt is asked for is decided by the call alone,
 * so a product is computed by the same kernel every time.
 */
#ifndef CCU_BLAS_H
#define CCU_BLAS_H

#include "driver.h"
#include "library.h"

#include <hob/ext/plugin.h>

struct ccu_device;
struct cublasLtContext;
struct ccu_plan;

enum { CCU_PLANS = 256, CCU_WORKSPACE_BYTES = 32 << 20 };

struct ccu_cublas {
#define CCU_CUBLAS(member, name, parameters) int(*member) parameters;
#include "symbols.def"
};

struct ccu_blas {
    struct ccu_cublas cublas;
    struct cublasLtContext *handle; /* NULL: not to be had */
    struct ccu_library library;     /* its lock is held for each product, too */
    ccu_address workspace;
    struct ccu_plan *plans[CCU_PLANS]; /* by hash; NULL: none yet */
};

/* One operand of a product: a matrix of a batch, row-major or transposed. */
struct ccu_matrix {
    const void *data;
    int64_t row, column; /* strides in elements; one of the two is 1 */
    int64_t batch;       /* stride of the batch */
};

/* What becomes of a product before it is stored. */
enum ccu_epilogue {
    CCU_BIAS = 1, /* a bias is added to each row */
    CCU_RELU = 2,
    CCU_GELU_TANH = 4, /* the approximation by tanh, which the op gelu is not */
    CCU_SUM_B = 8, /* alone: the sum of b's rows is written to bias besides */
    CCU_KEEP = 16, /* aux is written, with RELU or GELU_TANH */
    CCU_RELU_SLOPE = 32, /* times the slope of what aux was kept of */
    CCU_GELU_TANH_SLOPE = 64,
    CCU_SUM_C = 128, /* with a slope: c's sum of rows is written to bias */

    CCU_WITH_BIAS = CCU_BIAS | CCU_SUM_B | CCU_SUM_C,
    CCU_WITH_AUX = CCU_KEEP | CCU_RELU_SLOPE | CCU_GELU_TANH_SLOPE
};

/* c (m x n, row-major, ldc = n) = a (m x k) b (k x n), COUNT times. */
struct ccu_product {
    uint32_t dtype;    /* F32, F16, BF16 or F64 */
    uint32_t epilogue; /* enum ccu_epilogue, or'ed; COUNT is 1 then */
    const void *bias;  /* n elements one after the other */
    const void *aux;
    int64_t aux_stride; /* from row to row: elements, of relu bits */
    int64_t m, n, k, count;
    struct ccu_matrix a, b;
    void *c;
    int64_t c_batch;
};

/* Begin to open the library. */
hob_status ccu_blas_init(struct ccu_device *device);
void ccu_blas_release(struct ccu_device *device);

/* Whether it multiplies elements of DTYPE. */
int ccu_blas_takes_dtype(uint32_t dtype);
/* Whether cuBLASLt can be given MATRIX of ROWS by COLUMNS as it lies. */
int ccu_blas_takes(const struct ccu_matrix *matrix, int64_t rows,
                   int64_t columns);
/* Whether cuBLASLt is there and has a kernel for PRODUCT. The context is
 * current. */
int ccu_blas_has(struct ccu_device *device, const struct ccu_product *product);
/*
 * Ask for PRODUCT, whose sizes are above 0 and whose operands are taken. The
 * context is current. HOB_ERR_UNSUPPORTED: cuBLASLt is not there or has no
 * kernel for it.
 */
hob_status ccu_blas_multiply(struct ccu_device *device,
                             const struct ccu_product *product,
                             char **out_message);

#endif

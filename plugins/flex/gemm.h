/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.h - the parts of flex_gemm(): own kernels and OpenBLAS.
 *
 *   gemm.c          checks, conversion of dtypes, choice of the way
 *   gemm_small.c    own kernels, for what one thread does in microseconds
 *   gemm_blocked.c  own kernels: pack what is large, then tiles of C at once
 *   gemm_skinny.c   up to 16 rows: streams a large B once, without packing
 *   gemm_blas.c     OpenBLAS, opened at run time, one thread a block of C
 *
 * Internally every dtype but bool is accepted, not only f32 and f64.
 */
#ifndef FLEX_GEMM_H
#define FLEX_GEMM_H

#include "flex.h"
#include "kernels/gemm_tile.h"

struct flex_openblas; /* one a process; gemm_blas.c */

/* The matmul family's part of a device. */
struct flex_blas {
    const struct flex_gemm_kernels *kernels; /* by enum flex_gemm_type */
    const struct flex_openblas *library; /* NULL: not found, or not the best */
};

/* The type that DTYPE, not bool, is multiplied in. */
static inline enum flex_gemm_type flex_gemm_type_of(uint32_t dtype)
{
    switch (dtype) {
    case HOB_DTYPE_F64:
        return FLEX_GEMM_F64;
    case HOB_DTYPE_F32:
    case HOB_DTYPE_F16:
    case HOB_DTYPE_BF16:
        return FLEX_GEMM_F32;
    case HOB_DTYPE_I64:
    case HOB_DTYPE_U64:
        return FLEX_GEMM_U64;
    default:
        return FLEX_GEMM_U32;
    }
}

/* Nonzero if DTYPE is multiplied as it is stored. */
static inline int flex_gemm_native(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64 || dtype == HOB_DTYPE_F32 ||
           hob_dtype_size(dtype) == 8 || dtype == HOB_DTYPE_I32 ||
           dtype == HOB_DTYPE_U32;
}

/* ---- ops/matmul.c ---- */

/*
 * OUT = LHS @ RHS + BIAS, which may be NULL, row-major, f32 or f64, with relu
 * and epilogue of HOOKS, and its bias where there is none. Nothing is done and
 * HOB_ERR_UNSUPPORTED returned unless it is one product of two matrices.
 */
hob_status flex_product(struct flex_device *device, const struct hob_view *lhs,
                        const struct hob_view *rhs, const struct hob_view *bias,
                        const struct hob_view *out, struct flex_gemm *hooks);

/* ---- gemm.c ---- */

/* RUN GEMM, whose C is NULL, with all of C in scratch memory. */
typedef hob_status (*flex_gemm_run_fn)(struct flex_device *device,
                                       const struct flex_gemm *gemm);
hob_status flex_gemm_in_scratch(struct flex_device *device,
                                const struct flex_gemm *gemm,
                                flex_gemm_run_fn run);

/* ---- gemm_blocked.c ---- */

/* Run GEMM, whose dtype is native and beta 0 or 1, on own kernels. Fails with
 * HOB_ERR_MEMORY only. */
hob_status flex_gemm_blocked(struct flex_device *device,
                             const struct flex_gemm *gemm);

/* ---- gemm_small.c ---- */

/* Nonzero if flex_gemm_small() serves GEMM, whose dtype is native and beta 0 or
 * 1. It gives what flex_gemm_blocked() would. */
int flex_gemm_is_small(const struct flex_gemm *gemm,
                       const struct flex_gemm_kernels *kernels);
void flex_gemm_small(const struct flex_gemm *gemm,
                     const struct flex_gemm_kernels *kernels);

/* The same where C is NULL: its rows pass through memory of a thread's own. */
int flex_gemm_has_strips(const struct flex_gemm *gemm,
                         const struct flex_gemm_kernels *kernels);
void flex_gemm_strips(struct flex_device *device, const struct flex_gemm *gemm,
                      const struct flex_gemm_kernels *kernels);

/* ---- gemm_skinny.c ---- */

/* Nonzero if flex_gemm_skinny() serves GEMM and is the better way. */
int flex_gemm_is_skinny(const struct flex_gemm *gemm);
hob_status flex_gemm_skinny(struct flex_device *device,
                            const struct flex_gemm *gemm);

/* ---- gemm_blas.c ---- */

/* OpenBLAS, opened once a process; NULL if it cannot be, or if DEVICE's own
 * kernels use wider vectors. Logs the choice. */
const struct flex_openblas *flex_openblas_find(struct flex_device *device);
/* Nonzero if OpenBLAS can take GEMM (f32 or f64, beta 0 or 1) as it is. */
int flex_openblas_serves(const struct flex_openblas *library,
                         const struct flex_gemm *gemm);
void flex_openblas_run(struct flex_device *device,
                       const struct flex_openblas *library,
                       const struct flex_gemm *gemm);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.h - products of matrices, for ops that are made of them. */
#ifndef CUBE_OPS_MATMUL_H
#define CUBE_OPS_MATMUL_H

#include "../cube.h"

/*
 * OUT, row-major, = LHS by RHS, batches of them in leading dimensions: by the
 * runtime's library where it has one that takes them. Dtypes of floats may
 * differ.
 */
hob_status cube_matmul(struct cube_device *device, struct hob_call *call,
                       const struct hob_view *lhs, const struct hob_view *rhs,
                       const struct hob_view *out);
/* The same by kernels alone. */
hob_status cube_matmul_portable(struct cube_device *device,
                                struct hob_call *call,
                                const struct hob_view *lhs,
                                const struct hob_view *rhs,
                                const struct hob_view *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* product.h - matmul by cuBLASLt where it can, else by the portable kernel. */
#ifndef CCU_PRODUCT_H
#define CCU_PRODUCT_H

#include "blas.h"

#include <cube/runtime.h>

/* As in struct cube_runtime. */
hob_status ccu_matmul(struct cube_device *device, struct hob_call *call,
                      const struct hob_view *lhs, const struct hob_view *rhs,
                      const struct hob_view *out);

/* VIEW's last two dimensions. What has one row or column lies as we like. */
struct ccu_matrix ccu_matrix_of(const struct hob_view *view);

#endif

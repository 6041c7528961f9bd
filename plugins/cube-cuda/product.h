/* SPDX-License-Identifier: Apache-2.0 */
/* product.h - matmul by cuBLASLt where it can, else by the portable kernel. */
#ifndef CCU_PRODUCT_H
#define CCU_PRODUCT_H

#include "blas.h"

/* Put this runtime's own kernels in the place of portable ones among COUNT
 * ENTRIES. */
void ccu_matmul_install(struct hob_entry *entries, uint32_t count);

/* VIEW's last two dimensions. What has one row or column lies as we like. */
struct ccu_matrix ccu_matrix_of(const struct hob_view *view);

#endif

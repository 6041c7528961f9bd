/* SPDX-License-Identifier: Apache-2.0 */
/* product.h - matmul by cuBLASLt where it can, else by the portable kernel. */
#ifndef CCU_PRODUCT_H
#define CCU_PRODUCT_H

#include <hob/ext/plugin.h>

/* Put this runtime's own kernels in the place of portable ones among COUNT
 * ENTRIES. */
void ccu_matmul_install(struct hob_entry *entries, uint32_t count);

#endif

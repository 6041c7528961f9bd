/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.h - conv2d and its gradients: of f16, bf16 and f32 by kernels of their
 * own on devices of compute capability 9.0, of single taps by cuBLASLt. All
 * else is the portable kernels' work.
 */
#ifndef CCU_CONV_H
#define CCU_CONV_H

#include <hob/ext/plugin.h>

/* Put these before the portable kernels among COUNT ENTRIES. */
void ccu_conv_install(struct hob_entry *entries, uint32_t count);

#endif

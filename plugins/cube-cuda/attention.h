/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.h - attention and its gradients by kernels of their own on devices
 * of compute capability 9.0: of f16 and bf16, rows of 64 or 128 elements, with
 * a mask or without, causal or not. All else is the portable kernels' work.
 */
#ifndef CCU_ATTENTION_H
#define CCU_ATTENTION_H

#include <hob/ext/plugin.h>

/* Put these kernels before the portable ones among COUNT ENTRIES. */
void ccu_attention_install(struct hob_entry *entries, uint32_t count);

#endif

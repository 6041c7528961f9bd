/* SPDX-License-Identifier: Apache-2.0 */
/* attention_job.h - a call of attention as its kernels take it. */
#ifndef CCU_ATTENTION_JOB_H
#define CCU_ATTENTION_JOB_H

#include "device.h"
#include "kernels/attention_params.h"

struct ccu_attention {
    struct ccu_device *device;
    const struct hob_view *views[ATTENTION_MAPS];
    const struct hob_view *mask; /* or NULL */
    int64_t rows[ATTENTION_MAPS];
    int64_t row_strides[ATTENTION_MAPS];
    int64_t strides[ATTENTION_MAPS][ATTENTION_LEAD]; /* 0: repeated */
    int64_t width, batches;
    uint32_t maps; /* operands: three, or four with the gradient */
    int32_t is_causal;
    int32_t mask_kind; /* as in attention_batch.cu */
    struct attention_params params;
};

/*
 * Fill in JOB, but for params.results, lse, delta, blocks and tasks. CALL's
 * attributes scale, softcap, causal begin at FIRST; GRAD is NULL forward.
 * Returns 0 where the call is for the portable kernels.
 */
int ccu_attention_take(struct ccu_attention *job, struct ccu_device *device,
                       const struct hob_call *call, const struct hob_view *grad,
                       uint32_t first);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward.h - the gradients of attention by kernels of this runtime.
 */
#ifndef CCU_ATTENTION_BACKWARD_H
#define CCU_ATTENTION_BACKWARD_H

#include "attention_job.h"

/* The workspace that JOB wants. */
uint64_t ccu_attention_backward_bytes(const struct ccu_attention *job);

/* The results of CALL, of which JOB was made; CALL has that workspace. */
hob_status ccu_attention_backward(struct ccu_attention *job,
                                  const struct hob_call *call,
                                  char **out_message);

#endif

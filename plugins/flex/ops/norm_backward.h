/* SPDX-License-Identifier: Apache-2.0 */
/* norm_backward.h - entries of norm.c that live in norm_backward.c and
 * batch_norm_backward.c. */
#ifndef FLEX_NORM_BACKWARD_H
#define FLEX_NORM_BACKWARD_H

#include "flex.h"

hob_status flex_layer_norm_backward(void *device, struct hob_call *call);
hob_status flex_rms_norm_backward(void *device, struct hob_call *call);
hob_status flex_batch_norm_backward_prepare(void *device,
                                            const struct hob_call *call,
                                            struct hob_prepare *out);
hob_status flex_batch_norm_backward(void *device, struct hob_call *call);

#endif

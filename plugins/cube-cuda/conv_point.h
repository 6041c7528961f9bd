/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_point.h - conv2d of single taps, without strides and padding, which is a
 * product of matrices for each image, by cuBLASLt.
 */
#ifndef CCU_CONV_POINT_H
#define CCU_CONV_POINT_H

#include "device.h"

/* Whether CALL, conv2d or one of its gradients, is for cuBLASLt if that is
 * there. */
int ccu_point_takes(struct ccu_device *device, const struct hob_call *call);
/* Compute it; failures are put on the call but for HOB_ERR_UNSUPPORTED: it is
 * not for cuBLASLt. */
hob_status ccu_point_run(struct ccu_device *device, struct hob_call *call);

#endif

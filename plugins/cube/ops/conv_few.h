/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_few.h - the gradient of a convolution with respect to x of few channels.
 */
#ifndef CUBE_OPS_CONV_FEW_H
#define CUBE_OPS_CONV_FEW_H

#include "../conv_phase.h"

/* Run CALL, a conv2d_x_backward of CONV with a result that is not empty.
 * HOB_ERR_UNSUPPORTED, and no message, where it is not for this kernel. */
hob_status cube_conv_few(struct cube_device *device, struct hob_call *call,
                         const struct cube_conv *conv);

#endif

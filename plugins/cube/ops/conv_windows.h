/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_windows.h - convolutions of f16 and bf16 on devices whose subgroups
 * multiply matrices of them: windows are written out, and a product is the
 * rest.
 */
#ifndef CUBE_OPS_CONV_WINDOWS_H
#define CUBE_OPS_CONV_WINDOWS_H

#include "../conv_phase.h"

/* Run CALL, a conv2d, a conv2d_x_backward or a conv2d_weight_backward of CONV
 * with a result that is not empty. HOB_ERR_UNSUPPORTED, and no message, where
 * another kernel is to do it. */
hob_status cube_conv_windows(struct cube_device *device, struct hob_call *call,
                             const struct cube_conv *conv);
hob_status cube_conv_windows_x(struct cube_device *device,
                               struct hob_call *call,
                               const struct cube_conv *conv);
hob_status cube_conv_windows_weight(struct cube_device *device,
                                    struct hob_call *call,
                                    const struct cube_conv *conv);

#endif

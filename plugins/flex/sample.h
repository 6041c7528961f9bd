/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - which of the kernels of kernels/sample.h a device uses, and when.
 */
#ifndef FLEX_SAMPLE_DRIVER_H
#define FLEX_SAMPLE_DRIVER_H

#include "flex.h"
#include "kernels/sample.h"

/* The kernels of DEVICE for the type that DTYPE is computed in. */
const struct flex_sample_kernels *
flex_sample_kernels(const struct flex_device *device, uint32_t dtype);

/* For ops that sample argument 0, [n, c, h, w]. Positions in a plane are
 * 32-bit, and along a side exact in the type that they are computed in; a plane
 * that is larger, or empty, is the body's. */
hob_status flex_sample_prepare(void *device, const struct hob_call *call,
                               struct hob_prepare *out);

#endif

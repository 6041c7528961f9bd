/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - which of the kernels of kernels/sample.h a device uses. */
#ifndef FLEX_SAMPLE_DRIVER_H
#define FLEX_SAMPLE_DRIVER_H

#include "flex.h"
#include "kernels/sample.h"

/* The kernels of DEVICE for the type that DTYPE is computed in. */
const struct flex_sample_kernels *
flex_sample_kernels(const struct flex_device *device, uint32_t dtype);

#endif

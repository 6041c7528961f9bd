/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shaped_calls.h - calls of ops whose arguments must fit each other, for tests
 * that look at what is launched: pooling, convolution, attention, losses.
 */
#ifndef SHAPED_CALLS_H
#define SHAPED_CALLS_H

#include "fake_host.h"

/*
 * Run them all, for each float dtype, on DEVICE, a struct cube_device of HOST.
 * BEFORE gets CONTEXT and the name of each call, as in "conv2d-3-f16".
 */
void shaped_calls_run(struct fake_host *host, void *device,
                      void (*before)(void *context, const char *name),
                      void *context);

#endif

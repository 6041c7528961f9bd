/* SPDX-License-Identifier: Apache-2.0 */
/* fused_calls.h - runs of fused programs, of any op, dtype and layout. */
#ifndef FUSED_CALLS_H
#define FUSED_CALLS_H

#include <cube/runtime.h>

/* Run some on DEVICE, which does no work; SET_ASKS is told which. */
void fused_calls_run(struct cube_device *device,
                     void (*set_asks)(void *context, const char *name),
                     void *context);

#endif

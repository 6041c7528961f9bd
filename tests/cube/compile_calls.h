/* SPDX-License-Identifier: Apache-2.0 */
/* compile_calls.h - calls of ops whose tensors differ in shape or dtype. */
#ifndef COMPILE_CALLS_H
#define COMPILE_CALLS_H

#include "fake_host.h"

#include <cube/cube.h>

/* Run them, or those of the op ONLY, on DEVICE, whose host is HOST; *ASKS says
 * which runs. */
void compile_calls_run(struct cube_device *device, struct fake_host *host,
                       const char *only, const char **asks);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_fixture.h - the CUDA runtime's plugin on the driver of fake_cuda.h, for
 * tests of it: a checked fixture, which also sees that nothing is left behind.
 */
#ifndef CUDA_FIXTURE_H
#define CUDA_FIXTURE_H

#include "fake_cuda.h"
#include "fake_host.h"

#include <cube-cuda/device.h>

extern struct fake_host cuda_host;
extern struct ccu_instance *cuda_instance;
/* All that was logged since setup, one text after the other: threads that
 * open libraries have something to say as well. */
extern char cuda_logged[4096];

void cuda_setup(void);
void cuda_teardown(void);

/* Device ORDINAL; the test fails where it cannot be opened. */
struct ccu_device *cuda_open_device(uint32_t ordinal, const char *options);
/* Let KERNEL, of the fake compiler, work at COUNT ints from TO on. */
hob_status cuda_launch(struct ccu_device *device, void *kernel, void *to,
                       int count, const char *op_name, char **out_message);

#endif

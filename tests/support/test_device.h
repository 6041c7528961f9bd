/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device.h - the backend's device that tests of ops run on: flex, unless
 * HOB_TEST_DEVICE names another, as in "cube-vulkan:0".
 */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include <hob/hob.h>

/* As in "flex". */
const char *test_device(void);
/* Whether it is flex: some tests are about what flex alone promises. */
int test_device_is_flex(void);
/* Whether tests open it once: where all of them are one process, a GPU's
 * kernels would be compiled again for each. */
int test_device_is_kept(void);
/* Whether its compiler takes seconds over a kernel, so that tests leave out
 * what runs the same code with another dtype: HOB_TEST_FEW says so. */
int test_device_is_slow(void);
/* Whether such tests leave out way WAY of WAYS to call an op with DTYPE: f32
 * goes all ways, each other dtype one. */
int test_device_skips(hob_dtype dtype, int way, int ways);

/* Options of a runtime of two threads that reports and finds the plugins of
 * test_device_paths() alone. */
struct hob_runtime_options test_options(void);

/* Open SPEC, in which each "flex" stands for the device: "autodiff(flex)" may
 * be autodiff(cube-vulkan:0). */
hob_status test_device_open(hob_runtime *runtime, const char *spec,
                            hob_device **out_device, hob_error *error);

/* Let programs on DEVICE wait for compilers, so that groups are fused the first
 * time. */
void test_device_wait(hob_scope *scope, hob_device *device);

/* Whether it opens, and offers that interface. */
int test_device_offers(const char *interface, uint32_t version);

/* The folder where its plugin and the others are, for plugin_paths; *OUT_COUNT
 * is 0 where HOB_TEST_PLUGIN_DIR is not set. It lives as long as the
 * environment. */
const char *const *test_device_paths(uint32_t *out_count);

#endif

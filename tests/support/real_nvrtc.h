/* SPDX-License-Identifier: Apache-2.0 */
/* real_nvrtc.h - NVIDIA's compiler of kernels, which needs no GPU. */
#ifndef HOB_TESTS_REAL_NVRTC_H
#define HOB_TESTS_REAL_NVRTC_H

/* The library that HOB_TEST_NVRTC names, else what the loader finds, opened for
 * the rest of the process; NULL if there is none. */
void *real_nvrtc_open(void);

#endif

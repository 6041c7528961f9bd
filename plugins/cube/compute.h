/* SPDX-License-Identifier: Apache-2.0 */
/* compute.h - the interface "cube.compute" of hob/ext/cube.h. */
#ifndef CUBE_COMPUTE_H
#define CUBE_COMPUTE_H

#include "runtime.h"

/* As hob_backend.interface; DEVICE is a struct cube_device. */
const void *cube_compute_find(void *device, const char *name, uint32_t version);

/* VIEW with all dimensions but the last as rows; 0 if they are not at one
 * distance. */
int cube_as_matrix(const struct hob_view *view, struct hob_view *out);

/* Its gemm; INSTANCE is a struct cube_device. */
hob_status cube_gemm(void *instance, struct hob_call *call,
                     const struct hob_cube_gemm *gemm);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* linear.h - products with an epilogue: the op linear, and cube.compute's. */
#ifndef CCU_LINEAR_H
#define CCU_LINEAR_H

#include <cube/cube.h>

extern const struct cube_entries ccu_linear_entries;

/* As in struct cube_runtime. */
hob_status ccu_gemm(struct cube_device *device, const char *name,
                    const struct hob_cube_gemm *gemm, char **out_message);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* compile.h - GLSL to SPIR-V, by hob-glslang.so. */
#ifndef CVK_COMPILE_H
#define CVK_COMPILE_H

#include <cube/runtime.h>

struct cvk_device;

/* Set DEVICE's identity: what SPIR-V depends on. No library is opened. */
void cvk_compile_identify(struct cvk_device *device);

/* As in struct cube_runtime. */
const char *cvk_compile_identity(struct cube_device *device);
hob_status cvk_compile(struct cube_device *device,
                       const struct cube_source *source, void **out_binary,
                       uint64_t *out_bytes, char **out_message);

#endif

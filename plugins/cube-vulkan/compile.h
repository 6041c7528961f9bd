/* SPDX-License-Identifier: Apache-2.0 */
/* compile.h - GLSL to SPIR-V, by hob-glslang.so. */
#ifndef CVK_COMPILE_H
#define CVK_COMPILE_H

#include <cube/runtime.h>

/* What SPIR-V depends on; no library is opened for it. */
const char *cvk_compile_identity(struct cube_device *device);

/* As in struct cube_runtime. */
hob_status cvk_compile(struct cube_device *device,
                       const struct cube_source *source, void **out_binary,
                       uint64_t *out_bytes, char **out_message);

#endif

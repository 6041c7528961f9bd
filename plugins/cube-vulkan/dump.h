/* SPDX-License-Identifier: Apache-2.0 */
/* dump.h - kernels as files, for people: the option "dump_dir". */
#ifndef CVK_DUMP_H
#define CVK_DUMP_H

#include <cube/runtime.h>

struct cvk_device;

/* Write SOURCE and its SPIR-V into the folder of the option, if it is given,
 * as NAME-HASH.comp and .spv. What cannot be written is logged. */
void cvk_dump(struct cvk_device *device, const struct cube_source *source,
              const void *binary, uint64_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "interface.h"

#include "compute.h"
#include "fuse/fuse.h"

#include <string.h>

const void *cube_interface_find(void *device, const char *name,
                                uint32_t version)
{
    if (strcmp(name, HOB_FUSED_COMPUTE) == 0)
        return version == HOB_FUSED_COMPUTE_VERSION ? &cube_fused_compute
                                                    : NULL;
    return cube_compute_find(device, name, version);
}

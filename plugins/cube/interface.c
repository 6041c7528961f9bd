/* SPDX-License-Identifier: Apache-2.0 */
#include "interface.h"

#include "compute.h"
#include "fuse/fuse.h"

#include <string.h>

const void *cube_interface_find(void *device, const char *name,
                                uint32_t version)
{
    if (strcmp(name, HOB_FUSED_COMPUTE) == 0) {
        if (version != HOB_FUSED_COMPUTE_VERSION)
            return NULL;
        return ((struct cube_device *)device)->runtime->gemm
                   ? &cube_fused_products
                   : &cube_fused_compute;
    }
    return cube_compute_find(device, name, version);
}

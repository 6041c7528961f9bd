/* SPDX-License-Identifier: Apache-2.0 */
/* interface.h - what the GPU backends offer to extensions and layers. */
#ifndef CUBE_INTERFACE_H
#define CUBE_INTERFACE_H

#include <stdint.h>

/* As hob_backend.interface; DEVICE is a struct cube_device. */
const void *cube_interface_find(void *device, const char *name,
                                uint32_t version);

#endif

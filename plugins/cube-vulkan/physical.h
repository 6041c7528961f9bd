/* SPDX-License-Identifier: Apache-2.0 */
/* physical.h - what a device can do, and making it. */
#ifndef CVK_PHYSICAL_H
#define CVK_PHYSICAL_H

#include "instance.h"

/* Fill in OUT, with what the device lacks in words. */
void cvk_physical_read(const struct cvk_instance_api *api,
                       VkPhysicalDevice handle, struct cvk_physical *out);

/* Make a logical device with one queue and all that PHYSICAL has of what is
 * read above. */
VkResult cvk_physical_create(const struct cvk_instance_api *api,
                             const struct cvk_physical *physical,
                             VkDevice *out_device);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - the functions of Vulkan, found at run time.
 *
 * The library is opened when first needed and never closed: drivers keep
 * threads and thread-local storage. What is missing is said in words.
 */
#ifndef CVK_LOADER_H
#define CVK_LOADER_H

#include <stddef.h>

#include "vulkan_added.h"

/* Room for a reason in words. */
enum { CVK_REASON = 512 };

struct cvk_loader {
    PFN_vkGetInstanceProcAddr get;
#define CVK_GLOBAL(name) PFN_vk##name name;
#include "symbols.def"
};

struct cvk_instance_api {
#define CVK_INSTANCE(name) PFN_vk##name name;
#define CVK_EXTENSION(name) PFN_vk##name name; /* NULL: it is not there */
#include "symbols.def"
};

struct cvk_device_api {
#define CVK_DEVICE(name) PFN_vk##name name;
#include "symbols.def"
};

/*
 * Fill in LOADER from libvulkan.so.1, or from GET where it is not NULL, which
 * is how tests bring their own. Returns 0 and says why in REASON where
 * something is missing; so do the others.
 */
int cvk_loader_open(struct cvk_loader *loader, PFN_vkGetInstanceProcAddr get,
                    char reason[CVK_REASON]);
int cvk_loader_instance(const struct cvk_loader *loader, VkInstance instance,
                        struct cvk_instance_api *out, char reason[CVK_REASON]);
int cvk_loader_device(const struct cvk_instance_api *instance, VkDevice device,
                      struct cvk_device_api *out, char reason[CVK_REASON]);

/* As in "VK_ERROR_DEVICE_LOST". */
const char *cvk_result_name(VkResult result);

#endif

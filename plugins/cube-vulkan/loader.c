/* SPDX-License-Identifier: Apache-2.0 */
#include "loader.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char library_name[] = "libvulkan.so.1";

static int missing(const char *name, char reason[CVK_REASON])
{
    snprintf(reason, CVK_REASON,
             "the Vulkan library lacks vk%s; it must be of version 1.2 or "
             "later",
             name);
    return 0;
}

static PFN_vkGetInstanceProcAddr open_library(char reason[CVK_REASON])
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    PFN_vkGetInstanceProcAddr get = NULL;
    void *symbol;

    if (!library) {
        snprintf(reason, CVK_REASON,
                 "%s cannot be opened (%s); install the Vulkan library (on "
                 "Debian: libvulkan1) and a driver (mesa-vulkan-drivers, or "
                 "the GPU vendor's)",
                 library_name, dlerror());
        return NULL;
    }
    symbol = dlsym(library, "vkGetInstanceProcAddr");
    if (symbol)
        memcpy(&get, &symbol, sizeof(get)); /* as POSIX has it */
    else
        missing("GetInstanceProcAddr", reason);
    return get;
}

/* All that there is are filled in even where one is missing: what is open by
 * then can be closed. */
int cvk_loader_open(struct cvk_loader *loader, PFN_vkGetInstanceProcAddr get,
                    char reason[CVK_REASON])
{
    int has_all = 1;

    memset(loader, 0, sizeof(*loader));
    loader->get = get ? get : open_library(reason);
    if (!loader->get)
        return 0;
#define CVK_GLOBAL(name)                                                       \
    loader->name = (PFN_vk##name)loader->get(NULL, "vk" #name);                \
    if (!loader->name)                                                         \
        has_all = missing(#name, reason);
#include "symbols.def"
    return has_all;
}

int cvk_loader_instance(const struct cvk_loader *loader, VkInstance instance,
                        struct cvk_instance_api *out, char reason[CVK_REASON])
{
    int has_all = 1;

#define CVK_INSTANCE(name)                                                     \
    out->name = (PFN_vk##name)loader->get(instance, "vk" #name);               \
    if (!out->name)                                                            \
        has_all = missing(#name, reason);
#define CVK_EXTENSION(name)                                                    \
    out->name = (PFN_vk##name)loader->get(instance, "vk" #name);
#include "symbols.def"
    return has_all;
}

int cvk_loader_device(const struct cvk_instance_api *instance, VkDevice device,
                      struct cvk_device_api *out, char reason[CVK_REASON])
{
    int has_all = 1;

#define CVK_DEVICE(name)                                                       \
    out->name = (PFN_vk##name)instance->GetDeviceProcAddr(device, "vk" #name); \
    if (!out->name)                                                            \
        has_all = missing(#name, reason);
#include "symbols.def"
    return has_all;
}

const char *cvk_result_name(VkResult result)
{
    static const struct {
        VkResult result;
        const char *name;
    } names[] = {
        {VK_SUCCESS, "VK_SUCCESS"},
        {VK_NOT_READY, "VK_NOT_READY"},
        {VK_TIMEOUT, "VK_TIMEOUT"},
        {VK_INCOMPLETE, "VK_INCOMPLETE"},
        {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
        {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
        {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
        {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
        {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED"},
        {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"},
        {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
        {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
        {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
        {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
        {VK_ERROR_FRAGMENTATION, "VK_ERROR_FRAGMENTATION"},
        {VK_ERROR_INVALID_SHADER_NV, "VK_ERROR_INVALID_SHADER_NV"},
        {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].result == result)
            return names[i].name;
    return "an unknown VkResult";
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "physical.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* A launch has at most as many groups: they are counted with an int. */
    MAX_GROUPS = 0x7fffffff,
    /* More would only make command buffers larger. */
    MAX_PUSH_BYTES = 256
};

static const VkSubgroupFeatureFlags subgroup_needs =
    VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
    VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;

/* Everything that is asked of a device, chained. */
struct features {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceSubgroupSizeControlFeatures sizes;
    struct cvk_matrix_features matrices;
};

struct properties {
    VkPhysicalDeviceProperties2 base;
    VkPhysicalDeviceVulkan11Properties v11;
    VkPhysicalDeviceVulkan12Properties v12;
    VkPhysicalDeviceSubgroupSizeControlProperties sizes;
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV sms;
};

static void chain_features(struct features *features,
                           const struct cvk_physical *physical)
{
    memset(features, 0, sizeof(*features));
    features->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features->base.pNext = cvk_matrices_chain(
        &features->matrices, &physical->matrix_extensions, &features->v11);
    features->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    features->v11.pNext = &features->v12;
    features->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features->v12.pNext = physical->has_size_control ? &features->sizes : NULL;
    features->sizes.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
}

static void chain_properties(struct properties *properties, int has_sizes,
                             int has_sms)
{
    void **next = &properties->v12.pNext;

    memset(properties, 0, sizeof(*properties));
    properties->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties->base.pNext = &properties->v11;
    properties->v11.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    properties->v11.pNext = &properties->v12;
    properties->v12.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    properties->sizes.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
    properties->sms.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
    if (has_sizes) {
        *next = &properties->sizes;
        next = &properties->sizes.pNext;
    }
    if (has_sms)
        *next = &properties->sms;
}

/* Add NAME to the list of what is lacking. */
static void lack(struct cvk_physical *out, const char *name)
{
    size_t used = strlen(out->lacks);

    snprintf(out->lacks + used, sizeof(out->lacks) - used, "%s%s",
             used ? ", " : "", name);
}

static void need(struct cvk_physical *out, VkBool32 has, const char *name)
{
    if (!has)
        lack(out, name);
}

/* The extensions of OUT, until free(), and how many; NULL: none are known. */
static VkExtensionProperties *
find_extensions(const struct cvk_instance_api *api,
                const struct cvk_physical *out, uint32_t *out_count)
{
    VkExtensionProperties *extensions = NULL;

    if (api->EnumerateDeviceExtensionProperties(out->handle, NULL, out_count,
                                                NULL) == VK_SUCCESS)
        extensions = calloc(*out_count, sizeof(*extensions));
    if (extensions && api->EnumerateDeviceExtensionProperties(
                          out->handle, NULL, out_count, extensions) < 0) {
        free(extensions);
        return NULL;
    }
    return extensions;
}

/* Which of the extensions that matter there are: none has to be. */
static void read_extensions(const struct cvk_instance_api *api,
                            struct cvk_physical *out)
{
    uint32_t count = 0;
    VkExtensionProperties *extensions = find_extensions(api, out, &count);

    for (uint32_t i = 0; i < count && extensions; i++) {
        const char *name = extensions[i].extensionName;

        if (!strcmp(name, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME))
            out->has_size_control = 1;
        if (!strcmp(name, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME))
            out->has_sm_count = 1;
        cvk_matrices_note(&out->matrix_extensions, name);
    }
    free(extensions);
}

static void read_features(const struct cvk_instance_api *api,
                          struct cvk_physical *out)
{
    struct features has;

    chain_features(&has, out);
    api->GetPhysicalDeviceFeatures2(out->handle, &has.base);
    need(out, has.v12.bufferDeviceAddress, "bufferDeviceAddress");
    need(out, has.v12.timelineSemaphore, "timelineSemaphore");
    need(out, has.v12.storageBuffer8BitAccess, "storageBuffer8BitAccess");
    need(out, has.v11.storageBuffer16BitAccess, "storageBuffer16BitAccess");
    out->has_f64 = has.base.features.shaderFloat64 != 0;
    out->has_i64 = has.base.features.shaderInt64 != 0;
    out->has_i16 = has.base.features.shaderInt16 != 0;
    out->has_i8 = has.v12.shaderInt8 != 0;
    out->has_f16 = has.v12.shaderFloat16 != 0;
    out->has_size_control = out->has_size_control &&
                            has.sizes.subgroupSizeControl &&
                            has.sizes.computeFullSubgroups;
    if (has.v12.vulkanMemoryModel)
        out->matrices = cvk_matrices_read(api, out->handle, &has.matrices);
    if (!out->has_f16)
        out->matrices &= ~HOB_DTYPE_BIT(HOB_DTYPE_F16);
}

/* One size for all subgroups: the usual one, which is asked for where there are
 * others. Asking limits the subgroups of a group. */
static void choose_subgroup_size(struct cvk_physical *out,
                                 const struct properties *has)
{
    out->subgroup_size = has->v11.subgroupSize;
    if (!(has->sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT))
        out->has_size_control = 0;
    if (!out->has_size_control)
        return;
    if (out->subgroup_size < has->sizes.minSubgroupSize)
        out->subgroup_size = has->sizes.minSubgroupSize;
    if (out->subgroup_size > has->sizes.maxSubgroupSize)
        out->subgroup_size = has->sizes.maxSubgroupSize;
    out->asks_size = has->sizes.minSubgroupSize != has->sizes.maxSubgroupSize;
}

/* What can be promised about numbers, as sums of widths. */
static void read_float_controls(const VkPhysicalDeviceVulkan12Properties *has,
                                struct cube_float_controls *out)
{
    out->nan_preserve = (has->shaderSignedZeroInfNanPreserveFloat16 ? 16 : 0) +
                        (has->shaderSignedZeroInfNanPreserveFloat32 ? 32 : 0) +
                        (has->shaderSignedZeroInfNanPreserveFloat64 ? 64 : 0);
    out->denorm_preserve = (has->shaderDenormPreserveFloat16 ? 16 : 0) +
                           (has->shaderDenormPreserveFloat32 ? 32 : 0) +
                           (has->shaderDenormPreserveFloat64 ? 64 : 0);
    out->nearest_even = has->shaderRoundingModeRTEFloat16 ? 16 : 0;
}

/* Whether the device rounds f32 to f16 as the kernels have it. What is asked
 * for of f16 says nothing of other widths. There is no such promise of bf16:
 * NVIDIA's driver truncates. */
static int rounds_f16(const struct cvk_physical *physical,
                      const VkPhysicalDeviceVulkan12Properties *has)
{
    const struct cube_float_controls *controls = &physical->controls;

    return physical->has_f16 &&
           has->denormBehaviorIndependence ==
               VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL &&
           has->roundingModeIndependence ==
               VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL &&
           (controls->denorm_preserve & controls->nan_preserve &
            controls->nearest_even & 16);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void read_properties(const struct cvk_instance_api *api,
                            struct cvk_physical *out)
{
    const VkPhysicalDeviceLimits *limits;
    struct properties has;

    chain_properties(&has, (int)out->has_size_control, (int)out->has_sm_count);
    api->GetPhysicalDeviceProperties2(out->handle, &has.base);
    limits = &has.base.properties.limits;
    choose_subgroup_size(out, &has);
    read_float_controls(&has.v12, &out->controls);
    out->rounds_f16 = (uint32_t)rounds_f16(out, &has.v12);
    need(out, has.v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT,
         "subgroup operations in compute shaders");
    need(out,
         (has.v11.subgroupSupportedOperations & subgroup_needs) ==
             subgroup_needs,
         "basic, arithmetic, ballot and shuffle operations of subgroups");
    out->group_size = smaller(limits->maxComputeWorkGroupInvocations,
                              limits->maxComputeWorkGroupSize[0]);
    out->groups = smaller(limits->maxComputeWorkGroupCount[0], MAX_GROUPS);
    out->shared_bytes = limits->maxComputeSharedMemorySize;
    out->push_bytes = smaller(limits->maxPushConstantsSize, MAX_PUSH_BYTES);
    if (out->asks_size)
        out->group_size = smaller(out->group_size,
                                  out->subgroup_size *
                                      has.sizes.maxComputeWorkgroupSubgroups);
    out->processors = has.sms.shaderSMCount;
    out->alloc_bytes = has.v11.maxMemoryAllocationSize;
    memcpy(out->cache_uuid, has.base.properties.pipelineCacheUUID,
           sizeof(out->cache_uuid));
}

static void read_memory(const struct cvk_instance_api *api,
                        struct cvk_physical *out)
{
    VkPhysicalDeviceMemoryProperties memory;

    api->GetPhysicalDeviceMemoryProperties(out->handle, &memory);
    for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
        if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) &&
            memory.memoryHeaps[i].size > out->memory_bytes)
            out->memory_bytes = memory.memoryHeaps[i].size;
    if (out->alloc_bytes > out->memory_bytes)
        out->alloc_bytes = out->memory_bytes;
}

/* A family for compute alone, where there is one, is not used: on it some
 * drivers have fewer of the processors. */
static void choose_queue(const struct cvk_instance_api *api,
                         struct cvk_physical *out)
{
    VkQueueFamilyProperties families[16];
    uint32_t count = 16;

    api->GetPhysicalDeviceQueueFamilyProperties(out->handle, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueCount &&
            (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) {
            out->queue_family = i;
            return;
        }
    lack(out, "a queue for compute");
}

void cvk_physical_read(const struct cvk_instance_api *api,
                       VkPhysicalDevice handle, struct cvk_physical *out)
{
    VkPhysicalDeviceProperties basic;

    memset(out, 0, sizeof(*out));
    out->handle = handle;
    api->GetPhysicalDeviceProperties(handle, &basic);
    out->type = basic.deviceType;
    out->driver_version = basic.driverVersion;
    out->vendor = basic.vendorID;
    out->product = basic.deviceID;
    snprintf(out->name, sizeof(out->name), "%.*s", (int)sizeof(out->name) - 1,
             basic.deviceName);
    if (basic.apiVersion < VK_API_VERSION_1_2) {
        char version[64];

        snprintf(version, sizeof(version), "Vulkan 1.2 (its driver has %u.%u)",
                 VK_API_VERSION_MAJOR(basic.apiVersion),
                 VK_API_VERSION_MINOR(basic.apiVersion));
        lack(out, version);
        return;
    }
    read_extensions(api, out);
    read_features(api, out);
    read_properties(api, out);
    read_memory(api, out);
    choose_queue(api, out);
}

VkResult cvk_physical_create(const struct cvk_instance_api *api,
                             const struct cvk_physical *physical,
                             VkDevice *out_device)
{
    const char *extensions[3];
    uint32_t extension_count = 0;
    const float priority = 1;
    struct features wanted;
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = physical->queue_family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &wanted.base,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .ppEnabledExtensionNames = extensions,
    };

    if (physical->has_size_control)
        extensions[extension_count++] =
            VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
    if (physical->matrix_extensions.matrices)
        extensions[extension_count++] =
            VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
    if (physical->matrix_extensions.bfloat16)
        extensions[extension_count++] = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME;
    info.enabledExtensionCount = extension_count;
    chain_features(&wanted, physical);
    wanted.base.features.shaderFloat64 = physical->has_f64;
    wanted.base.features.shaderInt64 = physical->has_i64;
    wanted.base.features.shaderInt16 = physical->has_i16;
    wanted.v11.storageBuffer16BitAccess = VK_TRUE;
    wanted.v12.bufferDeviceAddress = VK_TRUE;
    wanted.v12.timelineSemaphore = VK_TRUE;
    wanted.v12.storageBuffer8BitAccess = VK_TRUE;
    wanted.v12.shaderFloat16 = physical->has_f16;
    wanted.v12.shaderInt8 = physical->has_i8;
    wanted.v12.vulkanMemoryModel = physical->matrices != 0;
    wanted.matrices.matrices.cooperativeMatrix = physical->matrices != 0;
    wanted.matrices.bfloat16.shaderBFloat16Type =
        wanted.matrices.bfloat16.shaderBFloat16CooperativeMatrix =
            (physical->matrices & HOB_DTYPE_BIT(HOB_DTYPE_BF16)) != 0;
    wanted.sizes.subgroupSizeControl = VK_TRUE;
    wanted.sizes.computeFullSubgroups = VK_TRUE;
    *out_device = VK_NULL_HANDLE;
    return api->CreateDevice(physical->handle, &info, NULL, out_device);
}

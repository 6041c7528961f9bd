/* SPDX-License-Identifier: Apache-2.0 */
#include "pipelines.h"

#include "device.h"
#include "dump.h"

#include <cube/cache.h>
#include <cube/kernels.h>
#include <hob/ext/message.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static VkResult make_layout(struct cvk_device *device, VkPipelineLayout *out)
{
    VkPushConstantRange range = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = device->physical->push_bytes & ~3u,
    };
    VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range,
    };
    VkResult result =
        device->api.CreatePipelineLayout(device->handle, &info, NULL, out);

    if (result)
        *out = VK_NULL_HANDLE;
    return result;
}

static VkResult make_pipeline(struct cvk_device *device,
                              const struct cube_source *source,
                              VkShaderModule module, VkPipeline *out)
{
    const struct cvk_physical *physical = device->physical;
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType =
            VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = physical->subgroup_size,
    };
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage =
            {
                .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = physical->asks_size ? &size : NULL,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = "main",
            },
        .layout = device->pipelines.layout,
    };
    VkResult result;

    /* Whole subgroups number the invocations in order. */
    if (physical->has_size_control &&
        source->group_size % physical->subgroup_size == 0)
        info.stage.flags =
            VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    result = device->api.CreateComputePipelines(
        device->handle, device->pipelines.cache, 1, &info, NULL, out);

    if (result)
        *out = VK_NULL_HANDLE;
    return result;
}

hob_status cvk_kernel_open(struct cube_device *opened,
                           const struct cube_source *source, const void *binary,
                           uint64_t bytes, void **out_kernel,
                           char **out_message)
{
    struct cvk_device *device = (struct cvk_device *)opened;
    const struct hob_host *host = opened->host;
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = (size_t)bytes,
        .pCode = binary,
    };
    const char *call = "vkCreateShaderModule";
    struct cvk_kernel *kernel;
    VkShaderModule module;
    VkResult result;
    hob_status status = cvk_queue_check(&device->queue, out_message);

    *out_kernel = NULL;
    if (status)
        return status;
    cvk_dump(device, source, binary, bytes);
    kernel = host->mem_alloc(host, sizeof(*kernel));
    if (!kernel)
        return HOB_ERR_MEMORY;
    memset(kernel, 0, sizeof(*kernel));
    result =
        device->api.CreateShaderModule(device->handle, &info, NULL, &module);
    if (!result) {
        call = "vkCreateComputePipelines";
        result = make_pipeline(device, source, module, &kernel->pipeline);
        device->api.DestroyShaderModule(device->handle, module, NULL);
    }
    if (result) {
        host->mem_free(host, kernel);
        return hob_say(host, out_message,
                       result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                               result == VK_ERROR_OUT_OF_HOST_MEMORY
                           ? HOB_ERR_MEMORY
                           : HOB_ERR_DEVICE,
                       "%s: kernel %s: %s: %s", device->name, source->name,
                       call, cvk_result_name(result));
    }
    atomic_fetch_add(&device->pipelines.opened_count, 1);
    *out_kernel = kernel;
    return HOB_OK;
}

void cvk_kernel_close(struct cube_device *opened, void *closed)
{
    struct cvk_device *device = (struct cvk_device *)opened;
    struct cvk_kernel *kernel = closed;

    if (!kernel)
        return;
    /* On a lost device nothing runs any more. */
    (void)!cvk_queue_wait(&device->queue, kernel->number);
    device->api.DestroyPipeline(device->handle, kernel->pipeline, NULL);
    opened->host->mem_free(opened->host, kernel);
}

/* ---- the driver's own form of kernels, on disk ---- */

/* What it is fit for: the very same device and driver. */
static void key_of(const struct cvk_device *device, struct cube_cache_key *key)
{
    const struct cvk_physical *physical = device->physical;
    char identity[128];
    size_t used;

    used = (size_t)snprintf(identity, sizeof(identity),
                            "%08" PRIx32 " %08" PRIx32 " %08" PRIx32 " ",
                            physical->vendor, physical->product,
                            physical->driver_version);
    for (uint32_t i = 0; i < VK_UUID_SIZE; i++)
        used += (size_t)snprintf(identity + used, sizeof(identity) - used,
                                 "%02x", physical->cache_uuid[i]);
    cube_cache_key_init(key, identity, "VkPipelineCache", "", 0);
}

/* Drivers look whether the data are theirs; the checksum says that they are
 * whole. */
static void open_cache(struct cvk_pipelines *pipelines)
{
    struct cvk_device *device = pipelines->device;
    VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    struct cube_cache_key key;
    void *data;

    key_of(device, &key);
    pipelines->disk = cube_cache_of(&device->cube);
    data = cube_cache_read(pipelines->disk, &key, &pipelines->disk_bytes);
    info.pInitialData = data;
    info.initialDataSize = data ? (size_t)pipelines->disk_bytes : 0;
    /* It is for speed only. */
    if (device->api.CreatePipelineCache(device->handle, &info, NULL,
                                        &pipelines->cache))
        pipelines->cache = VK_NULL_HANDLE;
    free(data);
}

static void save_cache(struct cvk_pipelines *pipelines)
{
    struct cvk_device *device = pipelines->device;
    const struct cvk_device_api *api = &device->api;
    struct cube_cache_key key;
    size_t size = 0;
    void *data;

    if (!pipelines->cache || !pipelines->disk ||
        !atomic_load(&pipelines->opened_count) || device->queue.is_lost ||
        api->GetPipelineCacheData(device->handle, pipelines->cache, &size,
                                  NULL) ||
        !size || size == pipelines->disk_bytes)
        return;
    data = malloc(size);
    if (!data)
        return;
    key_of(device, &key);
    if (!api->GetPipelineCacheData(device->handle, pipelines->cache, &size,
                                   data))
        (void)!cube_cache_write(pipelines->disk, &key, data, size);
    free(data);
}

hob_status cvk_pipelines_init(struct cvk_pipelines *pipelines,
                              struct cvk_device *device, char **out_message)
{
    VkResult result;

    pipelines->device = device;
    atomic_init(&pipelines->opened_count, 0);
    result = make_layout(device, &pipelines->layout);
    if (result)
        return hob_say(device->cube.host, out_message, HOB_ERR_DEVICE,
                       "%s: vkCreatePipelineLayout: %s", device->name,
                       cvk_result_name(result));
    open_cache(pipelines);
    return HOB_OK;
}

void cvk_pipelines_release(struct cvk_pipelines *pipelines)
{
    struct cvk_device *device = pipelines->device;

    if (!device)
        return;
    save_cache(pipelines);
    cube_cache_close(pipelines->disk);
    if (pipelines->cache)
        device->api.DestroyPipelineCache(device->handle, pipelines->cache,
                                         NULL);
    if (pipelines->layout)
        device->api.DestroyPipelineLayout(device->handle, pipelines->layout,
                                          NULL);
    pipelines->device = NULL;
}

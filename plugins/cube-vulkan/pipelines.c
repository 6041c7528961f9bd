/* SPDX-License-Identifier: Apache-2.0 */
#include "pipelines.h"

#include "device.h"
#include "dump.h"
#include "message.h"

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
                .pNext = physical->has_size_control ? &size : NULL,
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
        return cvk_say(host, out_message,
                       result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                               result == VK_ERROR_OUT_OF_HOST_MEMORY
                           ? HOB_ERR_MEMORY
                           : HOB_ERR_DEVICE,
                       "%s: kernel %s: %s: %s", device->name, source->name,
                       call, cvk_result_name(result));
    }
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

hob_status cvk_pipelines_init(struct cvk_pipelines *pipelines,
                              struct cvk_device *device, char **out_message)
{
    VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    VkResult result;

    pipelines->device = device;
    result = make_layout(device, &pipelines->layout);
    if (result)
        return cvk_say(device->cube.host, out_message, HOB_ERR_DEVICE,
                       "%s: vkCreatePipelineLayout: %s", device->name,
                       cvk_result_name(result));
    /* It is for speed only. */
    if (device->api.CreatePipelineCache(device->handle, &info, NULL,
                                        &pipelines->cache))
        pipelines->cache = VK_NULL_HANDLE;
    return HOB_OK;
}

void cvk_pipelines_release(struct cvk_pipelines *pipelines)
{
    struct cvk_device *device = pipelines->device;

    if (!device)
        return;
    if (pipelines->cache)
        device->api.DestroyPipelineCache(device->handle, pipelines->cache,
                                         NULL);
    if (pipelines->layout)
        device->api.DestroyPipelineLayout(device->handle, pipelines->layout,
                                          NULL);
    memset(pipelines, 0, sizeof(*pipelines));
}

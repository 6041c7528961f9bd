/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_vulkan.h"
#include "hob_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COMMANDS = 1024, MAX_BATCHES = 4096, MAX_SPANS = 4096 };

struct fake_vulkan fake_vulkan;

/* ---- objects ---- */

struct memory {
    uint64_t bytes;
    int is_own; /* the device's */
    char *data;
};

struct buffer {
    uint64_t bytes;
    char *data; /* of its memory */
};

enum kind { DISPATCH, COPY, BARRIER };

struct command {
    enum kind kind;
    struct fake_params params; /* a is 0: they are at address to */
    char *to;
    const char *from;
    uint64_t bytes;
};

struct commands {
    struct command list[MAX_COMMANDS];
    uint32_t count;
    uint32_t dispatches;
    uint64_t number; /* of the batch that it was last, or 0 */
    uint64_t seen; /* when it was handed over, that much had been waited for */
    char push[256];
};

struct pool {
    struct commands *commands;
};

struct span {
    const char *begin, *end;
    int is_written;
    uint64_t batch;
};

/* The one queue of a device. */
struct device {
    struct commands *batches[MAX_BATCHES]; /* copies of what was handed over */
    uint64_t submitted, completed;
    uint64_t seen;                /* what the host knows to be completed */
    uint32_t looks;               /* whether they are, since the last batch */
    struct span spans[MAX_SPANS]; /* since the last barrier */
    uint32_t span_count;
};

/* Whether this call of FUNCTION fails, and how. */
static VkResult outcome(const char *function)
{
    struct fake_vulkan *fake = &fake_vulkan;

    if (fake->failing && strcmp(fake->failing, function) != 0)
        return VK_SUCCESS;
    return ++fake->calls == fake->fail_at ? fake->fail_result : VK_SUCCESS;
}

/* What a call that fails leaves behind is not defined. */
static void *garbage(void)
{
    return (void *)(uintptr_t)0xbad;
}

static void *make(size_t bytes)
{
    void *object = calloc(1, bytes);

    ck_assert_ptr_nonnull(object);
    fake_vulkan.live++;
    return object;
}

static void destroy(void *object)
{
    ck_assert_ptr_nonnull(object);
    fake_vulkan.live--;
    free(object);
}

/* ---- running ---- */

static void touch(struct device *device, const void *begin, uint64_t bytes,
                  int is_written)
{
    struct span span = {begin, (const char *)begin + bytes, is_written,
                        device->completed + 1};

    ck_assert_uint_lt(device->span_count, MAX_SPANS);
    device->spans[device->span_count++] = span;
}

/* Work that was handed over after the host had waited for other work does not
 * race with it. */
static void look_for_races(struct device *device, uint64_t seen, uint32_t first)
{
    for (uint32_t i = first; i < device->span_count; i++)
        for (uint32_t k = 0; k < first; k++) {
            const struct span *a = &device->spans[i], *b = &device->spans[k];

            fake_vulkan.races += b->batch > seen &&
                                 (a->is_written || b->is_written) &&
                                 a->begin < b->end && b->begin < a->end;
        }
}

static void run_kernel(const struct fake_params *params)
{
    float *to = (float *)(uintptr_t)params->to;
    const float *a = (const float *)(uintptr_t)params->a;
    const float *b = (const float *)(uintptr_t)params->b;

    for (int32_t i = 0; i < params->count; i++)
        to[i] = a[i] + params->scale * b[i];
}

static void run_command(struct device *device, uint64_t seen,
                        const struct command *command)
{
    const uint32_t first = device->span_count;
    struct fake_params params = command->params;
    uint64_t bytes;

    if (command->kind == BARRIER) {
        device->span_count = 0;
    } else if (command->kind == COPY) {
        touch(device, command->to, command->bytes, 1);
        touch(device, command->from, command->bytes, 0);
        memcpy(command->to, command->from, command->bytes);
    } else {
        if (!params.a)
            params = *(const struct fake_params *)(uintptr_t)params.to;
        bytes = 4 * (uint64_t)params.count;
        touch(device, (void *)(uintptr_t)params.to, bytes, 1);
        touch(device, (void *)(uintptr_t)params.a, bytes, 0);
        touch(device, (void *)(uintptr_t)params.b, bytes, 0);
        run_kernel(&params);
    }
    look_for_races(device, seen, first);
}

static void run_until(struct device *device, uint64_t number)
{
    while (device->completed < number &&
           device->completed < device->submitted) {
        struct commands *batch = device->batches[device->completed];

        for (uint32_t i = 0; i < batch->count; i++)
            run_command(device, batch->seen, &batch->list[i]);
        device->completed++;
        free(batch);
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeQueueSubmit(
    VkQueue queue, uint32_t count, const VkSubmitInfo *submits, VkFence fence)
{
    struct device *device = (struct device *)queue;
    struct commands *from = (struct commands *)submits->pCommandBuffers[0];
    const VkTimelineSemaphoreSubmitInfo *values = submits->pNext;
    VkResult result = outcome("vkQueueSubmit");
    struct commands *batch;

    device->looks = 0;
    (void)fence;
    ck_assert_uint_eq(count, 1);
    if (result)
        return result;
    ck_assert_uint_eq(values->pSignalSemaphoreValues[0], device->submitted + 1);
    batch = malloc(sizeof(*batch));
    ck_assert_ptr_nonnull(batch);
    memcpy(batch, from, sizeof(*batch));
    batch->seen = device->seen;
    from->number = device->submitted + 1;
    ck_assert_uint_lt(device->submitted, MAX_BATCHES);
    device->batches[device->submitted++] = batch;
    fake_vulkan.batches++;
    if (batch->dispatches > fake_vulkan.max_dispatches)
        fake_vulkan.max_dispatches = batch->dispatches;
    if (!fake_vulkan.is_slow)
        run_until(device, device->submitted);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeWaitSemaphores(
    VkDevice opened, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
    struct device *device = (struct device *)opened;
    VkResult result = outcome("vkWaitSemaphores");

    (void)timeout;
    fake_vulkan.waits++;
    if (fake_vulkan.meanwhile) {
        void (*meanwhile)(void) = fake_vulkan.meanwhile;

        fake_vulkan.meanwhile = NULL;
        meanwhile();
    }
    if (result)
        return result;
    ck_assert_uint_le(info->pValues[0], device->submitted);
    run_until(device, info->pValues[0]);
    device->seen = info->pValues[0];
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeGetSemaphoreCounterValue(
    VkDevice opened, VkSemaphore semaphore, uint64_t *value)
{
    struct device *device = (struct device *)opened;

    (void)semaphore;
    /* Time passes for who does nothing but look. */
    if (++device->looks > FAKE_LOOKS)
        run_until(device, device->submitted);
    /* Time passes for who does nothing but look. */
    if (++device->looks > FAKE_LOOKS)
        run_until(device, device->submitted);
    *value = device->seen = device->completed;
    return outcome("vkGetSemaphoreCounterValue");
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeDeviceWaitIdle(VkDevice opened)
{
    struct device *device = (struct device *)opened;

    run_until(device, device->submitted);
    return outcome("vkDeviceWaitIdle");
}

/* ---- recording ---- */

static struct command *record(VkCommandBuffer buffer, enum kind kind)
{
    struct commands *commands = (struct commands *)buffer;
    struct command *command = &commands->list[commands->count++];

    ck_assert_uint_lt(commands->count, MAX_COMMANDS);
    memset(command, 0, sizeof(*command));
    command->kind = kind;
    return command;
}

static VKAPI_ATTR void VKAPI_CALL fakeCmdPushConstants(
    VkCommandBuffer buffer, VkPipelineLayout layout, VkShaderStageFlags stages,
    uint32_t offset, uint32_t size, const void *values)
{
    struct commands *commands = (struct commands *)buffer;

    (void)layout;
    (void)stages;
    ck_assert_uint_le(offset + size, 128);
    memset(commands->push, 0, sizeof(commands->push));
    memcpy(commands->push + offset, values, size);
}

static VKAPI_ATTR void VKAPI_CALL fakeCmdDispatch(VkCommandBuffer buffer,
                                                  uint32_t x, uint32_t y,
                                                  uint32_t z)
{
    struct commands *commands = (struct commands *)buffer;
    struct command *command = record(buffer, DISPATCH);

    ck_assert_uint_ge(x, 1);
    ck_assert_uint_eq(y * z, 1);
    memcpy(&command->params, commands->push, sizeof(command->params));
    commands->dispatches++;
    fake_vulkan.dispatches++;
}

static VKAPI_ATTR void VKAPI_CALL fakeCmdCopyBuffer(VkCommandBuffer buffer,
                                                    VkBuffer from, VkBuffer to,
                                                    uint32_t count,
                                                    const VkBufferCopy *regions)
{
    const struct buffer *source = (struct buffer *)from;
    const struct buffer *target = (struct buffer *)to;
    struct command *command = record(buffer, COPY);

    ck_assert_uint_eq(count, 1);
    ck_assert_uint_gt(regions->size, 0);
    ck_assert_uint_le(regions->srcOffset + regions->size, source->bytes);
    ck_assert_uint_le(regions->dstOffset + regions->size, target->bytes);
    command->from = source->data + regions->srcOffset;
    command->to = target->data + regions->dstOffset;
    command->bytes = regions->size;
    fake_vulkan.copies++;
}

static VKAPI_ATTR void VKAPI_CALL fakeCmdPipelineBarrier(
    VkCommandBuffer buffer, VkPipelineStageFlags from, VkPipelineStageFlags to,
    VkDependencyFlags flags, uint32_t count, const VkMemoryBarrier *barriers,
    uint32_t buffer_count, const VkBufferMemoryBarrier *buffers,
    uint32_t image_count, const VkImageMemoryBarrier *images)
{
    (void)from;
    (void)flags;
    (void)count;
    (void)barriers;
    (void)buffer_count;
    (void)buffers;
    (void)image_count;
    (void)images;
    if (to == VK_PIPELINE_STAGE_HOST_BIT)
        return; /* orders nothing on the device */
    record(buffer, BARRIER);
    fake_vulkan.barriers++;
}

static VKAPI_ATTR void VKAPI_CALL fakeCmdBindPipeline(VkCommandBuffer buffer,
                                                      VkPipelineBindPoint point,
                                                      VkPipeline pipeline)
{
    (void)buffer;
    (void)point;
    ck_assert(pipeline != VK_NULL_HANDLE);
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeBeginCommandBuffer(
    VkCommandBuffer buffer, const VkCommandBufferBeginInfo *info)
{
    (void)buffer;
    (void)info;
    return outcome("vkBeginCommandBuffer");
}

static VKAPI_ATTR VkResult VKAPI_CALL
fakeEndCommandBuffer(VkCommandBuffer buffer)
{
    (void)buffer;
    return outcome("vkEndCommandBuffer");
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeResetCommandPool(
    VkDevice device, VkCommandPool pool, VkCommandPoolResetFlags flags)
{
    struct commands *commands = ((struct pool *)pool)->commands;

    (void)flags;
    ck_assert_uint_le(commands->number, ((struct device *)device)->completed);
    commands->count = 0;
    commands->dispatches = 0;
    return outcome("vkResetCommandPool");
}

/* ---- memory ---- */

static uint64_t memory_bytes(void)
{
    return fake_vulkan.devices[0].memory_bytes
               ? fake_vulkan.devices[0].memory_bytes
               : UINT64_C(32) << 20;
}

static VKAPI_ATTR VkResult VKAPI_CALL
fakeCreateBuffer(VkDevice device, const VkBufferCreateInfo *info,
                 const VkAllocationCallbacks *callbacks, VkBuffer *out)
{
    VkResult result = outcome("vkCreateBuffer");
    struct buffer *buffer;

    (void)device;
    (void)callbacks;
    *out = (VkBuffer)garbage();
    if (result)
        return result;
    buffer = make(sizeof(*buffer));
    buffer->bytes = info->size;
    *out = (VkBuffer)buffer;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL fakeGetBufferMemoryRequirements(
    VkDevice device, VkBuffer buffer, VkMemoryRequirements *out)
{
    (void)device;
    out->size = ((struct buffer *)buffer)->bytes;
    out->alignment = 256;
    out->memoryTypeBits = 7;
}

static VKAPI_ATTR VkResult VKAPI_CALL
fakeAllocateMemory(VkDevice device, const VkMemoryAllocateInfo *info,
                   const VkAllocationCallbacks *callbacks, VkDeviceMemory *out)
{
    VkResult result = outcome("vkAllocateMemory");
    struct memory *memory;
    void *data = NULL;

    (void)device;
    (void)callbacks;
    *out = (VkDeviceMemory)garbage();
    if (result)
        return result;
    /* Types 1 and 2 are the host's, which has enough. */
    if (info->memoryTypeIndex == 0 &&
        info->allocationSize > memory_bytes() - fake_vulkan.held_bytes)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    memory = make(sizeof(*memory));
    memory->bytes = info->allocationSize;
    ck_assert_int_eq(posix_memalign(&data, 4096, memory->bytes), 0);
    memory->data = data;
    memory->is_own = info->memoryTypeIndex == 0;
    fake_vulkan.held_bytes += memory->is_own ? memory->bytes : 0;
    *out = (VkDeviceMemory)memory;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL
fakeFreeMemory(VkDevice device, VkDeviceMemory freed,
               const VkAllocationCallbacks *callbacks)
{
    struct memory *memory = (struct memory *)freed;

    (void)device;
    (void)callbacks;
    fake_vulkan.held_bytes -= memory->is_own ? memory->bytes : 0;
    free(memory->data);
    destroy(memory);
}

static VKAPI_ATTR VkResult VKAPI_CALL
fakeBindBufferMemory(VkDevice device, VkBuffer buffer, VkDeviceMemory memory,
                     VkDeviceSize offset)
{
    (void)device;
    ck_assert_uint_eq(offset, 0);
    ((struct buffer *)buffer)->data = ((struct memory *)memory)->data;
    return outcome("vkBindBufferMemory");
}

static VKAPI_ATTR VkResult VKAPI_CALL
fakeMapMemory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
              VkDeviceSize size, VkMemoryMapFlags flags, void **out)
{
    (void)device;
    (void)size;
    (void)flags;
    ck_assert_uint_eq(offset, 0);
    *out = ((struct memory *)memory)->data;
    return outcome("vkMapMemory");
}

static VKAPI_ATTR VkDeviceAddress VKAPI_CALL fakeGetBufferDeviceAddress(
    VkDevice device, const VkBufferDeviceAddressInfo *info)
{
    (void)device;
    return (uintptr_t)((struct buffer *)info->buffer)->data;
}

/* ---- objects without a life of their own ---- */

#define CREATE(name, handle, info_type)                                        \
    static VKAPI_ATTR VkResult VKAPI_CALL fakeCreate##name(                    \
        VkDevice device, const info_type *info,                                \
        const VkAllocationCallbacks *callbacks, handle *out)                   \
    {                                                                          \
        VkResult result = outcome("vkCreate" #name);                           \
                                                                               \
        (void)device;                                                          \
        (void)info;                                                            \
        (void)callbacks;                                                       \
        *out = (handle)(result ? garbage() : make(64));                        \
        return result;                                                         \
    }
#define DESTROY(name, handle)                                                  \
    static VKAPI_ATTR void VKAPI_CALL fakeDestroy##name(                       \
        VkDevice device, handle object,                                        \
        const VkAllocationCallbacks *callbacks)                                \
    {                                                                          \
        (void)device;                                                          \
        (void)callbacks;                                                       \
        destroy((void *)object);                                               \
    }

CREATE(PipelineLayout, VkPipelineLayout, VkPipelineLayoutCreateInfo)
CREATE(Semaphore, VkSemaphore, VkSemaphoreCreateInfo)
CREATE(ShaderModule, VkShaderModule, VkShaderModuleCreateInfo)
DESTROY(Buffer, VkBuffer)
DESTROY(Pipeline, VkPipeline)
DESTROY(PipelineCache, VkPipelineCache)
DESTROY(PipelineLayout, VkPipelineLayout)
DESTROY(Semaphore, VkSemaphore)
DESTROY(ShaderModule, VkShaderModule)
#undef CREATE
#undef DESTROY

static VKAPI_ATTR VkResult VKAPI_CALL fakeCreateComputePipelines(
    VkDevice device, VkPipelineCache cache, uint32_t count,
    const VkComputePipelineCreateInfo *infos,
    const VkAllocationCallbacks *callbacks, VkPipeline *out)
{
    VkResult result = outcome("vkCreateComputePipelines");

    (void)device;
    (void)cache;
    (void)infos;
    (void)callbacks;
    ck_assert_uint_eq(count, 1);
    if (!result)
        *out = (VkPipeline)make(64);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeCreatePipelineCache(
    VkDevice device, const VkPipelineCacheCreateInfo *info,
    const VkAllocationCallbacks *callbacks, VkPipelineCache *out)
{
    VkResult result = outcome("vkCreatePipelineCache");
    const char *data = info->pInitialData;

    (void)device;
    (void)callbacks;
    for (size_t i = 0; i < info->initialDataSize; i++)
        ck_assert_int_eq(data[i], 7);
    fake_vulkan.cache_bytes = info->initialDataSize;
    *out = (VkPipelineCache)(result ? garbage() : make(64));
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeGetPipelineCacheData(
    VkDevice device, VkPipelineCache cache, size_t *size, void *data)
{
    (void)device;
    (void)cache;
    if (data)
        memset(data, 7, *size);
    else
        *size = 100;
    return outcome("vkGetPipelineCacheData");
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeCreateCommandPool(
    VkDevice device, const VkCommandPoolCreateInfo *info,
    const VkAllocationCallbacks *callbacks, VkCommandPool *out)
{
    VkResult result = outcome("vkCreateCommandPool");

    (void)device;
    (void)info;
    (void)callbacks;
    *out = (VkCommandPool)(result ? garbage() : make(sizeof(struct pool)));
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeAllocateCommandBuffers(
    VkDevice device, const VkCommandBufferAllocateInfo *info,
    VkCommandBuffer *out)
{
    struct pool *pool = (struct pool *)info->commandPool;
    VkResult result = outcome("vkAllocateCommandBuffers");

    (void)device;
    *out = (VkCommandBuffer)garbage();
    if (result)
        return result;
    pool->commands = make(sizeof(*pool->commands));
    *out = (VkCommandBuffer)pool->commands;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL
fakeDestroyCommandPool(VkDevice device, VkCommandPool destroyed,
                       const VkAllocationCallbacks *callbacks)
{
    struct pool *pool = (struct pool *)destroyed;

    (void)device;
    (void)callbacks;
    if (pool->commands)
        destroy(pool->commands);
    destroy(pool);
}

/* ---- devices ---- */

static const struct fake_device *fake_of(VkPhysicalDevice handle)
{
    return (const struct fake_device *)handle;
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeEnumeratePhysicalDevices(
    VkInstance instance, uint32_t *count, VkPhysicalDevice *out)
{
    (void)instance;
    ck_assert_uint_ge(*count, fake_vulkan.device_count);
    *count = fake_vulkan.device_count;
    for (uint32_t i = 0; i < *count; i++)
        out[i] = (VkPhysicalDevice)&fake_vulkan.devices[i];
    return outcome("vkEnumeratePhysicalDevices");
}

static VKAPI_ATTR VkResult VKAPI_CALL fakeEnumerateDeviceExtensionProperties(
    VkPhysicalDevice device, const char *layer, uint32_t *count,
    VkExtensionProperties *out)
{
    (void)device;
    (void)layer;
    (void)out;
    *count = 0;
    return outcome("vkEnumerateDeviceExtensionProperties");
}

static VKAPI_ATTR void VKAPI_CALL fakeGetPhysicalDeviceProperties(
    VkPhysicalDevice handle, VkPhysicalDeviceProperties *out)
{
    const struct fake_device *device = fake_of(handle);
    VkPhysicalDeviceLimits *limits = &out->limits;

    memset(out, 0, sizeof(*out));
    out->apiVersion = device->version ? device->version : VK_API_VERSION_1_2;
    out->deviceType = device->type;
    out->pipelineCacheUUID[3] = device->uuid;
    snprintf(out->deviceName, sizeof(out->deviceName), "Fake %d",
             (int)(device - fake_vulkan.devices));
    limits->maxComputeWorkGroupInvocations = 1024;
    limits->maxComputeWorkGroupSize[0] = 1024;
    limits->maxComputeWorkGroupCount[0] =
        device->groups ? device->groups : 65535;
    limits->maxComputeSharedMemorySize = 32768;
    limits->maxPushConstantsSize = 128;
}

static VKAPI_ATTR void VKAPI_CALL fakeGetPhysicalDeviceProperties2(
    VkPhysicalDevice handle, VkPhysicalDeviceProperties2 *out)
{
    const struct fake_device *device = fake_of(handle);
    VkPhysicalDeviceVulkan11Properties *v11 = out->pNext;
    const int is_poor = device->lacks && strstr(device->lacks, "subgroup");

    fakeGetPhysicalDeviceProperties(handle, &out->properties);
    v11->subgroupSize = 32;
    v11->subgroupSupportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
    v11->subgroupSupportedOperations = is_poor ? 1 : 0xff;
    v11->maxMemoryAllocationSize =
        device->alloc_bytes ? device->alloc_bytes : memory_bytes();
}

static VKAPI_ATTR void VKAPI_CALL fakeGetPhysicalDeviceFeatures2(
    VkPhysicalDevice handle, VkPhysicalDeviceFeatures2 *out)
{
    const char *lacks = fake_of(handle)->lacks ? fake_of(handle)->lacks : "";
    VkPhysicalDeviceVulkan11Features *v11 = out->pNext;
    VkPhysicalDeviceVulkan12Features *v12 = v11->pNext;

    out->features.shaderInt64 = !strstr(lacks, "shaderInt64");
    v11->storageBuffer16BitAccess = !strstr(lacks, "16Bit");
    v12->storageBuffer8BitAccess = !strstr(lacks, "8Bit");
    v12->bufferDeviceAddress = !strstr(lacks, "bufferDeviceAddress");
    v12->timelineSemaphore = !strstr(lacks, "timelineSemaphore");
}

static VKAPI_ATTR void VKAPI_CALL fakeGetPhysicalDeviceMemoryProperties(
    VkPhysicalDevice handle, VkPhysicalDeviceMemoryProperties *out)
{
    const VkMemoryPropertyFlags seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags near = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;

    memset(out, 0, sizeof(*out));
    out->memoryTypeCount = 3;
    out->memoryTypes[0].propertyFlags =
        fake_of(handle)->type == VK_PHYSICAL_DEVICE_TYPE_CPU ? near | seen
                                                             : near;
    out->memoryTypes[1].propertyFlags = seen;
    out->memoryTypes[2].propertyFlags =
        seen | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    out->memoryHeapCount = 1;
    out->memoryHeaps[0].flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    out->memoryHeaps[0].size = memory_bytes();
}

static VKAPI_ATTR void VKAPI_CALL fakeGetPhysicalDeviceQueueFamilyProperties(
    VkPhysicalDevice handle, uint32_t *count, VkQueueFamilyProperties *out)
{
    const char *lacks = fake_of(handle)->lacks ? fake_of(handle)->lacks : "";

    memset(out, 0, 2 * sizeof(*out));
    *count = 2;
    out[0].queueCount = out[1].queueCount = 1;
    out[0].queueFlags = VK_QUEUE_TRANSFER_BIT;
    out[1].queueFlags = strstr(lacks, "queue") ? 0 : VK_QUEUE_COMPUTE_BIT;
}

static VKAPI_ATTR VkResult VKAPI_CALL
fakeCreateDevice(VkPhysicalDevice handle, const VkDeviceCreateInfo *info,
                 const VkAllocationCallbacks *callbacks, VkDevice *out)
{
    VkResult result = outcome("vkCreateDevice");

    (void)handle;
    (void)callbacks;
    ck_assert_uint_eq(info->pQueueCreateInfos[0].queueFamilyIndex, 1);
    *out = (VkDevice)garbage();
    if (!result)
        *out = fake_vulkan.device = make(sizeof(struct device));
    return result;
}

static VKAPI_ATTR void VKAPI_CALL
fakeDestroyDevice(VkDevice opened, const VkAllocationCallbacks *callbacks)
{
    struct device *device = (struct device *)opened;

    (void)callbacks;
    run_until(device, device->submitted);
    destroy(device);
}

static VKAPI_ATTR void VKAPI_CALL fakeGetDeviceQueue(VkDevice device,
                                                     uint32_t family,
                                                     uint32_t index,
                                                     VkQueue *out)
{
    ck_assert_uint_eq(family, 1);
    ck_assert_uint_eq(index, 0);
    *out = (VkQueue)device;
}

/* ---- instances ---- */

static VKAPI_ATTR VkResult VKAPI_CALL
fakeCreateInstance(const VkInstanceCreateInfo *info,
                   const VkAllocationCallbacks *callbacks, VkInstance *out)
{
    VkResult result = outcome("vkCreateInstance");

    (void)info;
    (void)callbacks;
    *out = (VkInstance)garbage();
    if (!result)
        *out = fake_vulkan.instance = make(64);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL
fakeDestroyInstance(VkInstance instance, const VkAllocationCallbacks *callbacks)
{
    (void)callbacks;
    destroy(instance);
}

static VKAPI_ATTR VkResult VKAPI_CALL
fakeEnumerateInstanceLayerProperties(uint32_t *count, VkLayerProperties *out)
{
    (void)out;
    *count = 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
fakeGetDeviceProcAddr(VkDevice device, const char *name)
{
    (void)device;
    return fake_vulkan_get(NULL, name);
}

/* ---- public ---- */

void fake_vulkan_reset(VkPhysicalDeviceType type)
{
    memset(&fake_vulkan, 0, sizeof(fake_vulkan));
    fake_vulkan.device_count = 1;
    for (uint32_t i = 0; i < FAKE_DEVICES; i++)
        fake_vulkan.devices[i].type = type;
}

void fake_vulkan_drop(void *object)
{
    destroy(object);
}

void fake_vulkan_fail(const char *function, uint32_t at, VkResult result)
{
    fake_vulkan.failing = function;
    fake_vulkan.fail_at = at;
    fake_vulkan.fail_result = result;
    fake_vulkan.calls = 0;
}

PFN_vkVoidFunction VKAPI_CALL fake_vulkan_get(VkInstance instance,
                                              const char *name)
{
#define ENTRY(name) {"vk" #name, (PFN_vkVoidFunction)fake##name},
#define CVK_GLOBAL ENTRY
#define CVK_INSTANCE ENTRY
#define CVK_DEVICE ENTRY
    static const struct {
        const char *name;
        PFN_vkVoidFunction function;
    } table[] = {
#include <cube-vulkan/symbols.def>
    };
#undef ENTRY

    (void)instance;
    if (fake_vulkan.missing && strcmp(fake_vulkan.missing, name) == 0)
        return NULL;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].function;
    return NULL;
}

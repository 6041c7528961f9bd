/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include "device.h"

#include <cube/flag.h>
#include <hob/ext/message.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    ARENA_BYTES = CVK_BATCHES * CVK_BATCH_BYTES, /* flags are behind it */
    /* An idle device gets its first launches in groups of so many. */
    FIRST_LAUNCHES = 4,
    /* Whether it has become idle is looked at after so many. */
    LOOK_LAUNCHES = 16,
    /* Who waits looks so long before it sleeps. */
    LOOK_NS = 200000
};

static const VkPipelineStageFlags work_stages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
static const VkAccessFlags work_writes =
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
static const VkAccessFlags work_reads =
    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

static const struct cvk_device_api *api_of(const struct cvk_queue *queue)
{
    return &queue->device->api;
}

static struct cvk_batch *batch_of(struct cvk_queue *queue, uint64_t number)
{
    return &queue->batches[number % CVK_BATCHES];
}

/* ---- failures ---- */

static hob_status say_lost(struct cvk_queue *queue, char **out_message)
{
    return hob_say(queue->device->cube.host, out_message, HOB_ERR_DEVICE, "%s",
                   queue->lost);
}

/* The device does no more work: CALL answered RESULT. */
static hob_status lose_locked(struct cvk_queue *queue, const char *call,
                              VkResult result, char **out_message)
{
    const struct hob_host *host = queue->device->cube.host;
    const struct cvk_batch *batch;

    if (queue->is_lost)
        return say_lost(queue, out_message);
    /* The oldest batch that is not done is the one that failed. */
    batch = batch_of(queue, queue->completed + 1);
    queue->is_lost = 1;
    snprintf(queue->lost, sizeof(queue->lost),
             "%s (%s) is lost: %s: %s, in a batch of %" PRIu32
             " launches (%s); nothing runs on it before it is opened anew",
             queue->device->name, queue->device->physical->name, call,
             cvk_result_name(result), batch->launches,
             batch->ops.used ? batch->ops.text : "none");
    if (host->log_write)
        host->log_write(host, 3, "%s", queue->lost);
    return say_lost(queue, out_message);
}

/* ---- batches ---- */

/* Bring queue->completed up to date. */
static hob_status look_locked(struct cvk_queue *queue, char **out_message)
{
    uint64_t value = 0;
    VkResult result = api_of(queue)->GetSemaphoreCounterValue(
        queue->device->handle, queue->timeline, &value);

    if (result)
        return lose_locked(queue, "vkGetSemaphoreCounterValue", result,
                           out_message);
    if (value > queue->completed && value <= queue->submitted)
        queue->completed = value;
    return HOB_OK;
}

/* Whether batch NUMBER is done within LOOK_NS, SUBMITTED being the last one
 * that was handed over: to be woken by the driver takes longer than most
 * batches do. A device that is a processor has better use for the time. */
static int is_soon_done(const struct cvk_queue *queue, uint64_t number,
                        uint64_t submitted)
{
    struct timespec now;
    uint64_t value, end = 0, at;

    if (queue->device->physical->type == VK_PHYSICAL_DEVICE_TYPE_CPU)
        return 0;
    do {
        if (api_of(queue)->GetSemaphoreCounterValue(queue->device->handle,
                                                    queue->timeline, &value))
            return 0;
        if (value >= number && value <= submitted)
            return 1;
        clock_gettime(CLOCK_MONOTONIC, &now);
        at =
            (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
        end = end ? end : at + LOOK_NS;
    } while (at < end);
    return 0;
}

/* Wait for batch NUMBER, which is handed over. The lock is not held
 * meanwhile. */
static hob_status wait_unlocking(struct cvk_queue *queue, uint64_t number,
                                 char **out_message)
{
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &queue->timeline,
        .pValues = &number,
    };
    const uint64_t submitted = queue->submitted;
    VkResult result = VK_SUCCESS;

    if (queue->is_lost)
        return say_lost(queue, out_message);
    if (queue->completed >= number)
        return HOB_OK;
    pthread_mutex_unlock(&queue->lock);
    if (!is_soon_done(queue, number, submitted))
        result = api_of(queue)->WaitSemaphores(queue->device->handle, &info,
                                               UINT64_MAX);
    pthread_mutex_lock(&queue->lock);
    if (queue->is_lost)
        return say_lost(queue, out_message);
    if (result)
        return lose_locked(queue, "vkWaitSemaphores", result, out_message);
    if (queue->completed < number)
        queue->completed = number;
    return HOB_OK;
}

/* Begin batch submitted + 1, unless it is begun already. */
static hob_status begin_locked(struct cvk_queue *queue, char **out_message)
{
    const struct cvk_device_api *api = api_of(queue);
    VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    struct cvk_batch *batch;
    VkResult result;

    if (queue->is_lost)
        return say_lost(queue, out_message);
    /* Others may begin or hand over batches while this one waits. */
    while (!queue->is_recording &&
           queue->completed + CVK_BATCHES < queue->submitted + 1) {
        hob_status status = wait_unlocking(
            queue, queue->submitted + 1 - CVK_BATCHES, out_message);

        if (status)
            return status;
    }
    if (queue->is_recording)
        return HOB_OK;
    batch = batch_of(queue, queue->submitted + 1);
    result = api->ResetCommandPool(queue->device->handle, batch->pool, 0);
    if (!result)
        result = api->BeginCommandBuffer(batch->commands, &info);
    if (result)
        return hob_say(queue->device->cube.host, out_message, HOB_ERR_MEMORY,
                       "%s: vkBeginCommandBuffer: %s", queue->device->name,
                       cvk_result_name(result));
    batch->bytes_used = 0;
    batch->launches = 0;
    batch->op_name = NULL;
    cube_names_clear(&batch->ops);
    queue->is_recording = 1;
    return HOB_OK;
}

static void barrier(const struct cvk_queue *queue, VkCommandBuffer commands,
                    VkPipelineStageFlags stages, VkAccessFlags accesses)
{
    VkMemoryBarrier info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = work_writes,
        .dstAccessMask = accesses,
    };

    api_of(queue)->CmdPipelineBarrier(commands, work_stages, stages, 0, 1,
                                      &info, 0, NULL, 0, NULL);
}

/* Hand over what is recorded. It becomes the batch queue->submitted. */
static hob_status submit_locked(struct cvk_queue *queue, char **out_message)
{
    const struct cvk_device_api *api = api_of(queue);
    const uint64_t number = queue->submitted + 1;
    const struct cvk_batch *batch = batch_of(queue, number);
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &number,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .commandBufferCount = 1,
        .pCommandBuffers = &batch->commands,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &queue->timeline,
    };
    VkResult result;

    if (queue->is_lost)
        return say_lost(queue, out_message);
    if (!queue->is_recording)
        return HOB_OK;
    /* What is recorded is promised: if it is not done, what comes after it
     * would compute with garbage. */
    result = api->EndCommandBuffer(batch->commands);
    if (result)
        return lose_locked(queue, "vkEndCommandBuffer", result, out_message);
    result = api->QueueSubmit(queue->handle, 1, &info, VK_NULL_HANDLE);
    if (result)
        return lose_locked(queue, "vkQueueSubmit", result, out_message);
    queue->is_recording = 0;
    queue->submitted = number;
    return HOB_OK;
}

/* BYTES bytes of the memory of the batch that is recorded; the next one is
 * begun where this one's is used up. */
static hob_status arena_locked(struct cvk_queue *queue, const void *data,
                               uint64_t bytes, uint64_t *out_offset,
                               char **out_message)
{
    const uint64_t align = 64;
    struct cvk_batch *batch = batch_of(queue, queue->submitted + 1);
    hob_status status;

    /* Until it fits: while this waits others may use up the next one too. */
    while (batch->bytes_used + bytes > CVK_BATCH_BYTES) {
        status = submit_locked(queue, out_message);
        if (!status)
            status = begin_locked(queue, out_message);
        if (status)
            return status;
        batch = batch_of(queue, queue->submitted + 1);
    }
    *out_offset = (uint64_t)(batch - queue->batches) * CVK_BATCH_BYTES +
                  batch->bytes_used;
    memcpy(queue->arena.map + *out_offset, data, (size_t)bytes);
    batch->bytes_used += (bytes + align - 1) / align * align;
    return HOB_OK;
}

/* ---- launches ---- */

/* Note OP_NAME, for the message if the batch fails. */
static void note_op(struct cvk_batch *batch, const char *op_name)
{
    batch->launches++;
    if (op_name == batch->op_name || !op_name)
        return;
    batch->op_name = op_name;
    cube_names_add(&batch->ops, op_name);
}

/* What LAUNCH touches. More ranges than there is room for become two, around
 * what is read and what is written. */
static uint32_t spans_of(const struct cube_launch *launch,
                         struct cvk_span spans[CVK_HAZARDS])
{
    const int is_exact = launch->range_count <= CVK_HAZARDS;
    uint32_t count = is_exact ? launch->range_count : 2;

    for (uint32_t i = 0; i < launch->range_count; i++) {
        const struct cube_range *range = &launch->ranges[i];
        struct cvk_span *span = &spans[is_exact ? i : range->is_written];
        uint64_t begin = (uintptr_t)range->data;

        if (!is_exact && !i)
            memset(spans, 0, 2 * sizeof(*spans));
        span->is_written = range->is_written;
        if (is_exact || span->begin == span->end || begin < span->begin)
            span->begin = begin;
        if (is_exact || begin + range->bytes > span->end)
            span->end = begin + range->bytes;
    }
    return count;
}

/* Whether the batch that is recorded should be handed over now. */
static int is_due_locked(struct cvk_queue *queue)
{
    const struct cvk_batch *batch = batch_of(queue, queue->submitted + 1);

    if (batch->launches >= CVK_BATCH_LAUNCHES)
        return 1;
    if (batch->launches % LOOK_LAUNCHES == 0 &&
        queue->completed < queue->submitted)
        (void)look_locked(queue, NULL); /* a loss shows in what comes next */
    return queue->completed == queue->submitted &&
           batch->launches >= FIRST_LAUNCHES;
}

static hob_status launch_locked(struct cvk_queue *queue,
                                struct cvk_kernel *kernel,
                                const struct cube_launch *launch,
                                char **out_message)
{
    const struct cvk_device *device = queue->device;
    const struct cvk_device_api *api = api_of(queue);
    struct cvk_span spans[CVK_HAZARDS];
    const void *params = launch->params;
    uint32_t param_bytes = (launch->param_bytes + 3u) & ~3u;
    struct cvk_batch *batch;
    uint64_t offset = 0, address;
    hob_status status = begin_locked(queue, out_message);

    if (!status && param_bytes > device->physical->push_bytes) {
        status = arena_locked(queue, launch->params, launch->param_bytes,
                              &offset, out_message);
        address = queue->arena.address + offset;
        params = &address;
        param_bytes = sizeof(address);
    }
    if (status)
        return status;
    batch = batch_of(queue, queue->submitted + 1);
    if (cvk_hazards_add(&queue->hazards, spans, spans_of(launch, spans)))
        barrier(queue, batch->commands, work_stages, work_reads | work_writes);
    api->CmdBindPipeline(batch->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                         kernel->pipeline);
    if (param_bytes)
        api->CmdPushConstants(batch->commands, device->pipelines.layout,
                              VK_SHADER_STAGE_COMPUTE_BIT, 0, param_bytes,
                              params);
    api->CmdDispatch(batch->commands, launch->groups, 1, 1);
    note_op(batch, launch->op_name);
    kernel->number = queue->submitted + 1;
    return is_due_locked(queue) ? submit_locked(queue, out_message) : HOB_OK;
}

hob_status cvk_queue_launch(struct cvk_queue *queue, struct cvk_kernel *kernel,
                            const struct cube_launch *launch,
                            char **out_message)
{
    hob_status status;

    pthread_mutex_lock(&queue->lock);
    status = launch_locked(queue, kernel, launch, out_message);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* ---- copies ---- */

static hob_status copy_locked(struct cvk_queue *queue, const struct cvk_end *to,
                              const struct cvk_end *from, uint64_t bytes)
{
    VkBufferCopy region = {from->offset, to->offset, bytes};
    struct cvk_span spans[2];
    VkCommandBuffer commands;
    uint32_t count = 0;
    hob_status status = begin_locked(queue, NULL);

    if (status)
        return status;
    commands = batch_of(queue, queue->submitted + 1)->commands;
    if (to->address)
        spans[count++] =
            (struct cvk_span){to->address, to->address + bytes, 1, 0};
    if (from->address)
        spans[count++] =
            (struct cvk_span){from->address, from->address + bytes, 0, 0};
    if (cvk_hazards_add(&queue->hazards, spans, count))
        barrier(queue, commands, work_stages, work_reads | work_writes);
    api_of(queue)->CmdCopyBuffer(commands, from->buffer, to->buffer, 1,
                                 &region);
    if (!to->address) /* the host waits for it, to read it */
        barrier(queue, commands, VK_PIPELINE_STAGE_HOST_BIT,
                VK_ACCESS_HOST_READ_BIT);
    return HOB_OK;
}

hob_status cvk_queue_copy(struct cvk_queue *queue, const struct cvk_end *to,
                          const struct cvk_end *from, uint64_t bytes,
                          uint64_t *out_number)
{
    hob_status status;

    pthread_mutex_lock(&queue->lock);
    status = copy_locked(queue, to, from, bytes);
    *out_number = queue->submitted + queue->is_recording;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

hob_status cvk_queue_copy_small(struct cvk_queue *queue,
                                const struct cvk_end *to, const void *host_data,
                                uint64_t bytes)
{
    struct cvk_end from = {queue->arena.buffer, 0, 0};
    hob_status status;

    pthread_mutex_lock(&queue->lock);
    status = begin_locked(queue, NULL);
    if (!status)
        status = arena_locked(queue, host_data, bytes, &from.offset, NULL);
    if (!status)
        status = copy_locked(queue, to, &from, bytes);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

void cvk_queue_flags(const struct cvk_queue *queue, uint32_t **out_host,
                     void **out_data)
{
    *out_host = (uint32_t *)(void *)(queue->arena.map + ARENA_BYTES);
    *out_data = (void *)(uintptr_t)(queue->arena.address + ARENA_BYTES);
}

/* ---- waiting ---- */

hob_status cvk_queue_submit(struct cvk_queue *queue, uint64_t number)
{
    hob_status status = HOB_OK;

    pthread_mutex_lock(&queue->lock);
    if (number > queue->submitted)
        status = submit_locked(queue, NULL);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

hob_status cvk_queue_wait(struct cvk_queue *queue, uint64_t number)
{
    hob_status status = HOB_OK;

    pthread_mutex_lock(&queue->lock);
    if (number > queue->submitted)
        status = submit_locked(queue, NULL);
    if (!status)
        status = wait_unlocking(queue, number, NULL);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* Record that the host may read what has been written, unless that is so. */
static hob_status show_locked(struct cvk_queue *queue)
{
    hob_status status;

    if (!queue->is_recording && queue->shown == queue->submitted)
        return HOB_OK;
    status = begin_locked(queue, NULL);
    if (status)
        return status;
    queue->shown = queue->submitted + 1;
    barrier(queue, batch_of(queue, queue->shown)->commands,
            VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    return HOB_OK;
}

hob_status cvk_queue_wait_all(struct cvk_queue *queue, int for_host)
{
    hob_status status = HOB_OK;

    pthread_mutex_lock(&queue->lock);
    if (for_host)
        status = show_locked(queue);
    if (!status)
        status = submit_locked(queue, NULL);
    if (!status)
        status = wait_unlocking(queue, queue->submitted, NULL);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

int cvk_queue_is_idle(struct cvk_queue *queue)
{
    int is_idle;

    pthread_mutex_lock(&queue->lock);
    if (!queue->is_lost && queue->completed < queue->submitted)
        (void)look_locked(queue, NULL);
    is_idle = !queue->is_lost && !queue->is_recording &&
              queue->completed == queue->submitted;
    pthread_mutex_unlock(&queue->lock);
    return is_idle;
}

hob_status cvk_queue_check(struct cvk_queue *queue, char **out_message)
{
    hob_status status = HOB_OK;

    pthread_mutex_lock(&queue->lock);
    if (queue->is_lost)
        status = say_lost(queue, out_message);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* ---- life cycle ---- */

static VkResult open_batch(struct cvk_device *device, struct cvk_batch *batch)
{
    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
        .queueFamilyIndex = device->physical->queue_family,
    };
    VkCommandBufferAllocateInfo buffers = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VkResult result = device->api.CreateCommandPool(device->handle, &pool, NULL,
                                                    &batch->pool);

    if (result) {
        batch->pool = VK_NULL_HANDLE;
        return result;
    }
    buffers.commandPool = batch->pool;
    return device->api.AllocateCommandBuffers(device->handle, &buffers,
                                              &batch->commands);
}

static VkResult open_timeline(struct cvk_device *device, VkSemaphore *out)
{
    VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };
    VkResult result =
        device->api.CreateSemaphore(device->handle, &info, NULL, out);

    if (result)
        *out = VK_NULL_HANDLE;
    return result;
}

static VkResult open_arena(struct cvk_device *device, struct cvk_chunk *out)
{
    const VkMemoryPropertyFlags seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkResult result;
    uint32_t types = cvk_chunk_types(device, &result);

    if (result)
        return result;
    result =
        cvk_chunk_open(device, ARENA_BYTES + CUBE_FLAG_BYTES,
                       cvk_memory_type(device, types, seen,
                                       VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT),
                       1, out);
    if (!result)
        memset(out->map + ARENA_BYTES, 0xff, CUBE_FLAG_BYTES);
    return result;
}

hob_status cvk_queue_init(struct cvk_queue *queue, struct cvk_device *device,
                          char **out_message)
{
    const char *call = "vkCreateSemaphore";
    VkResult result;

    queue->device = device;
    if (pthread_mutex_init(&queue->lock, NULL))
        return HOB_ERR_MEMORY;
    queue->has_lock = 1;
    device->api.GetDeviceQueue(device->handle, device->physical->queue_family,
                               0, &queue->handle);
    result = open_timeline(device, &queue->timeline);
    for (uint32_t i = 0; i < CVK_BATCHES && !result; i++) {
        call = "vkCreateCommandPool";
        result = open_batch(device, &queue->batches[i]);
    }
    if (!result) {
        call = "vkAllocateMemory";
        result = open_arena(device, &queue->arena);
    }
    if (!result)
        return HOB_OK;
    return hob_say(device->cube.host, out_message, HOB_ERR_DEVICE, "%s: %s: %s",
                   device->name, call, cvk_result_name(result));
}

void cvk_queue_release(struct cvk_queue *queue)
{
    struct cvk_device *device = queue->device;

    if (!device)
        return;
    cvk_chunk_close(device, &queue->arena);
    for (uint32_t i = 0; i < CVK_BATCHES; i++)
        if (queue->batches[i].pool)
            device->api.DestroyCommandPool(device->handle,
                                           queue->batches[i].pool, NULL);
    if (queue->timeline)
        device->api.DestroySemaphore(device->handle, queue->timeline, NULL);
    if (queue->has_lock)
        pthread_mutex_destroy(&queue->lock);
    memset(queue, 0, sizeof(*queue));
}

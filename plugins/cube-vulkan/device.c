/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include "compile.h"
#include "physical.h"

#include <cube/kernels.h>
#include <hob/ext/message.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- memory ---- */

/* The driver has no more: give back what is free and try again. */
static hob_status alloc_again(struct cvk_device *device, uint64_t bytes,
                              void **out_data)
{
    const struct hob_host *host = device->cube.host;
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    hob_status status;

    cvk_device_trim(device);
    status = cvk_memory_take(&device->memory, bytes, out_data);
    if (status == HOB_ERR_MEMORY && host->log_write) {
        cvk_memory_stats(&device->memory, &stats);
        host->log_write(
            host, 1,
            "%s: no memory for %" PRIu64 " bytes: %" PRIu64
            " bytes are in use, %" PRIu64 " are held from the driver, %" PRIu64
            " of them free in one piece; the device has %" PRIu64
            " and gives at most %" PRIu64 " at a time",
            device->name, bytes, stats.in_use_bytes, stats.reserved_bytes,
            cvk_memory_largest(&device->memory),
            device->cube.limits.memory_bytes, device->cube.limits.alloc_bytes);
    }
    return status;
}

hob_status cvk_device_alloc(void *opened, uint64_t bytes, void **out_data)
{
    struct cvk_device *device = opened;
    hob_status status = cvk_queue_check(&device->queue, NULL);

    *out_data = NULL;
    if (status)
        return status;
    status = cvk_memory_take(&device->memory, bytes, out_data);
    return status == HOB_ERR_MEMORY ? alloc_again(device, bytes, out_data)
                                    : status;
}

void cvk_device_free(void *opened, void *data, uint64_t bytes)
{
    (void)bytes; /* the piece knows them */
    cvk_memory_give(&((struct cvk_device *)opened)->memory, data);
}

hob_status cvk_device_upload(void *opened, void *data, const void *host_data,
                             uint64_t bytes)
{
    return cvk_staging_upload(&((struct cvk_device *)opened)->staging, data,
                              host_data, bytes);
}

hob_status cvk_device_download(void *opened, void *host_data, const void *data,
                               uint64_t bytes)
{
    return cvk_staging_download(&((struct cvk_device *)opened)->staging,
                                host_data, data, bytes);
}

hob_status cvk_device_sync(void *opened)
{
    return cvk_queue_wait_all(&((struct cvk_device *)opened)->queue, 0);
}

void cvk_device_memory_stats(void *opened, struct hob_memory_stats *out)
{
    cvk_memory_stats(&((struct cvk_device *)opened)->memory, out);
}

void cvk_device_reset_peak(void *opened)
{
    cvk_memory_reset_peak(&((struct cvk_device *)opened)->memory);
}

void cvk_device_trim(void *opened)
{
    struct cvk_device *device = opened;
    struct cvk_chunk *detached = cvk_memory_detach(&device->memory);

    /* Work that was asked for before may still use them: also what another
     * thread asks for and lets go of meanwhile, had they not been taken out
     * first. On a lost device nothing does. */
    (void)!cvk_queue_wait_all(&device->queue, 0);
    cvk_memory_close(&device->memory, detached);
}

/* ---- the runtime ---- */

static hob_status runtime_launch(struct cube_device *opened, void *kernel,
                                 const struct cube_launch *launch,
                                 char **out_message)
{
    struct cvk_device *device = (struct cvk_device *)opened;

    if (!launch->groups)
        return HOB_OK;
    if (launch->groups > opened->limits.groups)
        return hob_say(opened->host, out_message, HOB_ERR_ARGUMENT,
                       "%s: %" PRIu32 " groups are more than the %" PRIu32
                       " that the device has",
                       device->name, launch->groups, opened->limits.groups);
    return cvk_queue_launch(&device->queue, kernel, launch, out_message);
}

static hob_status runtime_flags(struct cube_device *opened, uint32_t **out_host,
                                void **out_data)
{
    cvk_queue_flags(&((struct cvk_device *)opened)->queue, out_host, out_data);
    return HOB_OK;
}

static hob_status runtime_wait(struct cube_device *opened)
{
    return cvk_queue_wait_all(&((struct cvk_device *)opened)->queue, 1);
}

const struct cube_runtime cvk_runtime = {
    .selector = "cube-vulkan",
    .language = CUBE_GLSL,
    .identity = cvk_compile_identity,
    .compile = cvk_compile,
    .kernel_open = cvk_kernel_open,
    .kernel_close = cvk_kernel_close,
    .launch = runtime_launch,
    .alloc = cvk_device_alloc,
    .free = cvk_device_free,
    .upload = cvk_device_upload,
    .download = cvk_device_download,
    .flags = runtime_flags,
    .wait = runtime_wait,
};

/* ---- opening ---- */

static void set_limits(struct cvk_device *device)
{
    const struct cvk_physical *physical = device->physical;
    struct cube_limits *limits = &device->cube.limits;

    limits->memory_bytes = physical->memory_bytes;
    limits->alloc_bytes = physical->alloc_bytes;
    limits->group_size = physical->group_size;
    limits->groups = physical->groups;
    limits->shared_bytes = physical->shared_bytes;
    limits->subgroup_size = physical->subgroup_size;
    limits->processors = physical->processors;
    limits->param_bytes = physical->push_bytes;
    limits->has_f64 = physical->has_f64;
    limits->has_i64 = physical->has_i64;
    limits->has_f16 = physical->has_f16;
    limits->matrices = physical->matrices;
    limits->keeps_nan = (physical->controls.nan_preserve & 32) != 0;
    limits->keeps_denormals = (physical->controls.denorm_preserve & 32) != 0;
    limits->rounds_f16 = physical->rounds_f16;
    limits->sums_to_bf16 = 1;
    limits->keeps_loops = physical->type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

/* Everything behind DEVICE, which knows where it belongs. */
static hob_status open_parts(struct cvk_device *device, char **out_message)
{
    const struct hob_host *host = device->cube.host;
    char reason[CVK_REASON];
    hob_status status;
    VkResult result =
        cvk_physical_create(device->world, device->physical, &device->handle);

    if (result) {
        device->handle = VK_NULL_HANDLE;
        return hob_say(host, out_message, HOB_ERR_DEVICE,
                       "%s: vkCreateDevice: %s", device->name,
                       cvk_result_name(result));
    }
    if (!cvk_loader_device(device->world, device->handle, &device->api, reason))
        return hob_say(host, out_message, HOB_ERR_DEVICE, "%s: %s",
                       device->name, reason);
    device->world->GetPhysicalDeviceMemoryProperties(device->physical->handle,
                                                     &device->memory_types);
    if (device->options.cache_dir[0])
        device->cube.cache_dir = device->options.cache_dir;
    device->cube.cache_limit = device->options.cache_limit;
    set_limits(device);
    cvk_compile_identify(device);
    status = cvk_memory_init(&device->memory, device, out_message);
    if (!status)
        status = cvk_queue_init(&device->queue, device, out_message);
    if (!status)
        status = cvk_staging_init(&device->staging, device);
    if (!status)
        status = cvk_pipelines_init(&device->pipelines, device, out_message);
    if (status)
        return status;
    device->cube.kernels = cube_kernels_new(&device->cube);
    return device->cube.kernels ? HOB_OK : HOB_ERR_MEMORY;
}

static int read_options(struct cvk_device *device, const char *text,
                        char reason[CVK_REASON])
{
    struct cvk_options *to = &device->options;
    const struct cube_option options[] = {
        {"cache_dir", CUBE_OPTION_FOLDER, to->cache_dir},
        {"cache_limit", CUBE_OPTION_NUMBER, &to->cache_limit},
        {"dump_dir", CUBE_OPTION_FOLDER, to->dump_dir},
        {"validation", CUBE_OPTION_TRUTH, &to->is_validating},
    };

    to->cache_limit = CUBE_CACHE_LIMIT;
    return !text || cube_options_parse(text, options,
                                       sizeof(options) / sizeof(options[0]),
                                       reason, CVK_REASON);
}

/* Set DEVICE's place in INSTANCE, or say why it cannot be opened. */
static hob_status choose(struct cvk_device *device,
                         struct cvk_instance *instance, uint32_t ordinal,
                         char **out_message)
{
    const struct hob_host *host = instance->host;
    const struct cvk_world *world =
        cvk_instance_world(instance, (int)device->options.is_validating);
    const struct cvk_physical *physical;

    if (!world)
        return HOB_ERR_MEMORY;
    if (world->problem[0])
        return hob_say(host, out_message, HOB_ERR_DEVICE, "%s", world->problem);
    if (ordinal >= world->count)
        return hob_say(host, out_message, HOB_ERR_DEVICE,
                       "there is no device %" PRIu32 "; Vulkan has %" PRIu32
                       ", counted from 0",
                       ordinal, world->count);
    physical = &world->devices[ordinal];
    if (physical->lacks[0])
        return hob_say(host, out_message, HOB_ERR_UNSUPPORTED,
                       "%s cannot be used; it lacks %s", physical->name,
                       physical->lacks);
    device->instance = instance;
    device->world = &world->api;
    device->physical = physical;
    snprintf(device->name, sizeof(device->name), "cube-vulkan:%" PRIu32,
             ordinal);
    return HOB_OK;
}

static void destroy(struct cvk_device *device)
{
    const struct hob_host *host = device->cube.host;

    if (device->handle && device->api.DestroyDevice) {
        if (device->api.DeviceWaitIdle)
            (void)device->api.DeviceWaitIdle(device->handle);
        cube_kernels_free(device->cube.kernels);
        cvk_pipelines_release(&device->pipelines);
        cvk_staging_release(&device->staging);
        cvk_queue_release(&device->queue);
        cvk_memory_release(&device->memory);
        device->api.DestroyDevice(device->handle, NULL);
    }
    host->mem_free(host, device);
}

hob_status cvk_device_open(void *opened, uint32_t ordinal, const char *options,
                           void **out_device, char **out_message)
{
    struct cvk_instance *instance = opened;
    const struct hob_host *host = instance->host;
    struct cvk_device *device = host->mem_alloc(host, sizeof(*device));
    char reason[CVK_REASON];
    hob_status status;

    *out_device = NULL;
    *out_message = NULL;
    if (!device)
        return HOB_ERR_MEMORY;
    memset(device, 0, sizeof(*device));
    device->cube.host = host;
    device->cube.runtime = &cvk_runtime;
    device->cube.name = device->name;
    if (!read_options(device, options, reason))
        status = hob_say(host, out_message, HOB_ERR_ARGUMENT, "cube-vulkan: %s",
                         reason);
    else
        status = choose(device, instance, ordinal, out_message);
    if (!status)
        status = open_parts(device, out_message);
    if (status) {
        destroy(device);
        return status;
    }
    *out_device = device;
    return HOB_OK;
}

void cvk_device_close(void *opened)
{
    struct cvk_device *device = opened;

    (void)!cvk_queue_wait_all(&device->queue, 0);
    destroy(device);
}

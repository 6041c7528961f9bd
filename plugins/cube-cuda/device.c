/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - opening and closing.
 */
#include "device.h"

#include <cube/cube.h>
#include <hob/ext/message.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void set_limits(struct ccu_device *device)
{
    const struct ccu_physical *physical = device->physical;
    struct cube_limits *limits = &device->cube.limits;

    limits->memory_bytes = physical->memory_bytes;
    limits->alloc_bytes = physical->memory_bytes;
    limits->group_size = (uint32_t)physical->group_size;
    limits->groups = (uint32_t)physical->groups;
    limits->shared_bytes = (uint32_t)physical->shared_bytes;
    limits->subgroup_size = 32;
    limits->processors = (uint32_t)physical->processors;
    limits->param_bytes = 4096; /* what a kernel may be given */
    limits->has_f64 = limits->has_i64 = limits->has_f16 = 1;
    limits->keeps_nan = 1;
    /* All of these devices have them, of so many. */
    limits->cluster = physical->major == 9 || physical->major == 10 ? 8 : 0;
}

/* What lives in DEVICE's context, which is current. */
static hob_status open_in_context(struct ccu_device *device, char **out_message)
{
    int result =
        device->driver->stream_create(&device->stream, CCU_STREAM_NON_BLOCKING);
    hob_status status;

    if (result) {
        device->stream = NULL;
        return ccu_say_result(device, out_message, "cuStreamCreate", result);
    }
    set_limits(device);
    status = ccu_memory_init(&device->memory, device, out_message);
    if (!status)
        status = ccu_staging_init(&device->staging, device);
    if (!status)
        status = ccu_compiler_init(device);
    if (!status)
        status = ccu_recorder_init(device);
    if (!status && device->options.has_blas)
        status = ccu_blas_init(device);
    if (status)
        return status;
    device->cube.kernels = cube_kernels_new(&device->cube);
    return device->cube.kernels ? HOB_OK : HOB_ERR_MEMORY;
}

/* Everything behind DEVICE, which knows where it belongs. */
static hob_status open_parts(struct ccu_device *device, char **out_message)
{
    const int result = device->driver->context_retain(&device->context,
                                                      device->physical->handle);
    hob_status status;
    int is_pushed;

    if (result) {
        device->context = NULL;
        return ccu_say_result(device, out_message, "cuDevicePrimaryCtxRetain",
                              result);
    }
    is_pushed = ccu_enter(device);
    status = ccu_check_lost(device, out_message);
    if (!status)
        status = open_in_context(device, out_message);
    ccu_leave(device, is_pushed);
    return status;
}

static int read_options(struct ccu_device *device, const char *text,
                        char reason[CCU_REASON])
{
    struct ccu_options *to = &device->options;
    const struct cube_option options[] = {
        {"nvrtc_dir", CUBE_OPTION_FOLDER, to->nvrtc_dir},
        {"cublas_dir", CUBE_OPTION_FOLDER, to->cublas_dir},
        {"cublas", CUBE_OPTION_TRUTH, &to->has_blas},
        {"tf32", CUBE_OPTION_TRUTH, &to->has_tf32},
        {"blocking", CUBE_OPTION_TRUTH, &to->is_blocking},
    };

    return !text || cube_options_parse(text, options,
                                       sizeof(options) / sizeof(options[0]),
                                       reason, CCU_REASON);
}

/* Set DEVICE's place in INSTANCE, or say why it cannot be opened. */
static hob_status choose(struct ccu_device *device,
                         struct ccu_instance *instance, uint32_t ordinal,
                         char **out_message)
{
    const struct hob_host *host = instance->host;
    const struct ccu_physical *physical;

    ccu_instance_open(instance);
    if (instance->problem[0])
        return hob_say(host, out_message, HOB_ERR_DEVICE, "%s",
                       instance->problem);
    if (ordinal >= instance->count)
        return hob_say(host, out_message, HOB_ERR_DEVICE,
                       "there is no device %" PRIu32 "; CUDA has %" PRIu32
                       ", counted from 0",
                       ordinal, instance->count);
    physical = &instance->devices[ordinal];
    if (physical->lacks[0])
        return hob_say(host, out_message, HOB_ERR_UNSUPPORTED,
                       "%s cannot be used; it lacks %s", physical->name,
                       physical->lacks);
    device->instance = instance;
    device->ordinal = ordinal;
    device->driver = &instance->driver;
    device->physical = physical;
    snprintf(device->name, sizeof(device->name), "cube-cuda:%" PRIu32, ordinal);
    return HOB_OK;
}

static void destroy(struct ccu_device *device)
{
    const struct hob_host *host = device->cube.host;
    int is_pushed;

    if (device->context) {
        is_pushed = ccu_enter(device);
        if (device->stream)
            (void)device->driver->stream_wait(device->stream);
        cube_kernels_free(device->cube.kernels);
        ccu_blas_release(device);
        ccu_compiler_release(device);
        ccu_recorder_release(device);
        ccu_staging_release(&device->staging);
        if (device->flags)
            (void)device->driver->host_free(device->flags);
        if (device->memory.device)
            ccu_memory_release(&device->memory);
        if (device->stream)
            (void)device->driver->stream_destroy(device->stream);
        ccu_leave(device, is_pushed);
        (void)device->driver->context_release(device->physical->handle);
    }
    if (device->has_lock)
        pthread_mutex_destroy(&device->lock);
    host->mem_free(host, device);
}

hob_status ccu_device_open(void *opened, uint32_t ordinal, const char *options,
                           void **out_device, char **out_message)
{
    struct ccu_instance *instance = opened;
    const struct hob_host *host = instance->host;
    struct ccu_device *device = host->mem_alloc(host, sizeof(*device));
    char reason[CCU_REASON];
    hob_status status = HOB_OK;

    *out_device = NULL;
    *out_message = NULL;
    if (!device)
        return HOB_ERR_MEMORY;
    memset(device, 0, sizeof(*device));
    device->cube.host = host;
    device->cube.runtime = &ccu_runtime;
    device->cube.cache_limit = CUBE_CACHE_LIMIT;
    device->cube.name = device->name;
    device->options.has_blas = 1;
    if (pthread_mutex_init(&device->lock, NULL))
        status = HOB_ERR_MEMORY;
    else
        device->has_lock = 1;
    if (!status && !read_options(device, options, reason))
        status = hob_say(host, out_message, HOB_ERR_ARGUMENT, "cube-cuda: %s",
                         reason);
    if (!status)
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

void ccu_device_close(void *opened)
{
    destroy(opened);
}

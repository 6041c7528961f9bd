/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <cube/cube.h>
#include <cube/message.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- the context, failures ---- */

static void lose(struct ccu_device *device, const char *what, int result);

int ccu_enter(struct ccu_device *device)
{
    struct CUctx_st *current = NULL;
    int result;

    if (!device->driver->context_current(&current) &&
        current == device->context)
        return 0;
    result = device->driver->context_push(device->context);
    /* Somebody reset it, say. What follows must not be another's context's. */
    if (result)
        lose(device, "cuCtxPushCurrent", result);
    return !result;
}

void ccu_leave(struct ccu_device *device, int is_pushed)
{
    struct CUctx_st *popped;

    if (is_pushed)
        (void)device->driver->context_pop(&popped);
}

hob_status ccu_say_result(struct ccu_device *device, char **out_message,
                          const char *what, int result)
{
    char text[CCU_REASON / 2];

    ccu_result_text(device->driver, result, text, sizeof(text));
    return cube_say(device->cube.host, out_message,
                    result == CCU_OUT_OF_MEMORY ? HOB_ERR_MEMORY
                                                : HOB_ERR_DEVICE,
                    "%s: %s: %s", device->name, what, text);
}

/* Whether a context is of no use any more after RESULT: the driver answers the
 * same to every later call. */
static int is_fatal(int result)
{
    return result == CCU_ECC || result == CCU_ILLEGAL_ADDRESS ||
           result == CCU_LAUNCH_TIMEOUT || result == CCU_ASSERT ||
           (result >= CCU_STACK_ERROR && result <= CCU_LAUNCH_FAILED) ||
           result == CCU_CONTAINED || result == CCU_UNKNOWN;
}

/* Mark DEVICE lost, unless it is. */
static void lose(struct ccu_device *device, const char *what, int result)
{
    char text[CCU_REASON / 2];
    int is_first;

    ccu_result_text(device->driver, result, text, sizeof(text));
    pthread_mutex_lock(&device->lock);
    is_first = !atomic_load(&device->is_lost);
    if (is_first) {
        snprintf(device->lost, sizeof(device->lost),
                 "%s is lost: %s: %s; since the last wait it was asked for %s",
                 device->name, what, text,
                 device->ops[0] ? device->ops : "no op");
        /* From here on the text stays as it is. */
        atomic_store(&device->is_lost, 1);
    }
    pthread_mutex_unlock(&device->lock);
    if (is_first && device->cube.host->log_write)
        device->cube.host->log_write(device->cube.host, 3, "%s", device->lost);
}

hob_status ccu_check(struct ccu_device *device, const char *what, int result,
                     char **out_message)
{
    if (!result)
        return HOB_OK;
    if (is_fatal(result))
        lose(device, what, result);
    if (atomic_load(&device->is_lost))
        return cube_say(device->cube.host, out_message, HOB_ERR_DEVICE, "%s",
                        device->lost);
    return ccu_say_result(device, out_message, what, result);
}

/* HOB_OK, or HOB_ERR_DEVICE and why. */
static hob_status check_lost(struct ccu_device *device, char **out_message)
{
    return atomic_load(&device->is_lost)
               ? cube_say(device->cube.host, out_message, HOB_ERR_DEVICE, "%s",
                          device->lost)
               : HOB_OK;
}

/* Remember that OP_NAME's work is asked for. */
static void note_op(struct ccu_device *device, const char *op_name)
{
    size_t used;

    pthread_mutex_lock(&device->lock);
    device->asking++;
    device->asked++;
    if (op_name == device->op_name)
        goto done;
    device->op_name = op_name;
    used = strlen(device->ops);
    if (used > sizeof(device->ops) - 64) {
        /* The newest matter most. */
        memmove(device->ops, device->ops + sizeof(device->ops) / 2,
                used - sizeof(device->ops) / 2 + 1);
        used = strlen(device->ops);
    }
    snprintf(device->ops + used, sizeof(device->ops) - used, "%s%s",
             used ? ", " : "", op_name);
done:
    pthread_mutex_unlock(&device->lock);
}

hob_status ccu_begin(struct ccu_device *device, const char *op_name,
                     int *out_is_pushed, char **out_message)
{
    hob_status status;

    *out_is_pushed = ccu_enter(device);
    status = check_lost(device, out_message);
    if (status)
        ccu_leave(device, *out_is_pushed);
    else
        note_op(device, op_name);
    return status;
}

hob_status ccu_end(struct ccu_device *device, int is_pushed, hob_status status,
                   char **out_message)
{
    pthread_mutex_lock(&device->lock);
    device->asking--;
    pthread_mutex_unlock(&device->lock);
    if (!status && device->options.is_blocking)
        status = ccu_wait(device, out_message);
    ccu_leave(device, is_pushed);
    return status;
}

hob_status ccu_wait(struct ccu_device *device, char **out_message)
{
    uint64_t asked;
    hob_status status;
    int is_quiet;

    pthread_mutex_lock(&device->lock);
    asked = device->asked;
    is_quiet = !device->asking;
    pthread_mutex_unlock(&device->lock);
    status =
        ccu_check(device, "waiting",
                  device->driver->stream_wait(device->stream), out_message);
    if (status)
        return status;
    pthread_mutex_lock(&device->lock);
    /* What another thread asks for meanwhile may not have been waited for. */
    if (is_quiet && asked == device->asked) {
        device->ops[0] = '\0';
        device->op_name = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    return HOB_OK;
}

/* ---- memory ---- */

/* The driver has no more: give back what is free and try again. */
static int take_again(struct ccu_device *device, uint64_t bytes,
                      ccu_address *out_address)
{
    const struct hob_host *host = device->cube.host;
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    int result;

    ccu_memory_trim(&device->memory);
    result = ccu_memory_take(&device->memory, bytes, out_address);
    if (result == CCU_OUT_OF_MEMORY && host->log_write) {
        ccu_memory_stats(&device->memory, &stats);
        host->log_write(host, 1,
                        "%s: no memory for %" PRIu64 " bytes: %" PRIu64
                        " bytes are in use, %" PRIu64
                        " are held from the driver; the device has %" PRIu64,
                        device->name, bytes, stats.in_use_bytes,
                        stats.reserved_bytes, device->cube.limits.memory_bytes);
    }
    return result;
}

int ccu_take(struct ccu_device *device, uint64_t bytes,
             ccu_address *out_address)
{
    const int result = ccu_memory_take(&device->memory, bytes, out_address);

    return result == CCU_OUT_OF_MEMORY ? take_again(device, bytes, out_address)
                                       : result;
}

hob_status ccu_device_alloc(void *opened, uint64_t bytes, void **out_data)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);
    ccu_address address = 0;
    hob_status status = check_lost(device, NULL);

    *out_data = NULL;
    if (!status)
        status = ccu_check(device, "cuMemAllocFromPoolAsync",
                           ccu_take(device, bytes, &address), NULL);
    if (!status)
        *out_data = (void *)(uintptr_t)address;
    ccu_leave(device, is_pushed);
    return status;
}

void ccu_device_free(void *opened, void *data, uint64_t bytes)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);

    ccu_memory_give(&device->memory, (ccu_address)(uintptr_t)data, bytes);
    ccu_leave(device, is_pushed);
}

hob_status ccu_device_upload(void *opened, void *data, const void *host_data,
                             uint64_t bytes)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);
    hob_status status = check_lost(device, NULL);

    if (!status)
        status = ccu_staging_upload(
            &device->staging, (ccu_address)(uintptr_t)data, host_data, bytes);
    ccu_leave(device, is_pushed);
    return status;
}

hob_status ccu_device_download(void *opened, void *host_data, const void *data,
                               uint64_t bytes)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);
    hob_status status = check_lost(device, NULL);

    if (!status)
        status = ccu_staging_download(&device->staging, host_data,
                                      (ccu_address)(uintptr_t)data, bytes);
    ccu_leave(device, is_pushed);
    return status;
}

hob_status ccu_device_sync(void *opened)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);
    hob_status status = check_lost(device, NULL);

    if (!status)
        status = ccu_wait(device, NULL);
    ccu_leave(device, is_pushed);
    return status;
}

void ccu_device_memory_stats(void *opened, struct hob_memory_stats *out)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);

    ccu_memory_stats(&device->memory, out);
    ccu_leave(device, is_pushed);
}

void ccu_device_reset_peak(void *opened)
{
    ccu_memory_reset_peak(&((struct ccu_device *)opened)->memory);
}

void ccu_device_trim(void *opened)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);

    ccu_memory_trim(&device->memory);
    ccu_leave(device, is_pushed);
}

/* ---- kernels ---- */

struct ccu_kernel {
    struct CUmod_st *module;
    struct CUfunc_st *function;
    uint32_t group_size;
    uint32_t reserved;
};

static hob_status kernel_open(struct cube_device *opened,
                              const struct cube_source *source,
                              const void *binary, uint64_t bytes,
                              void **out_kernel, char **out_message)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    const struct hob_host *host = opened->host;
    struct ccu_kernel *kernel = host->mem_alloc(host, sizeof(*kernel));
    hob_status status;
    int is_pushed, result;

    (void)bytes; /* a cubin knows its length */
    *out_kernel = NULL;
    if (!kernel)
        return HOB_ERR_MEMORY;
    is_pushed = ccu_enter(device);
    status = check_lost(device, out_message);
    if (status) {
        ccu_leave(device, is_pushed);
        host->mem_free(host, kernel);
        return status;
    }
    memset(kernel, 0, sizeof(*kernel));
    kernel->group_size = source->group_size;
    result = device->driver->module_load(&kernel->module, binary);
    if (!result) {
        result = device->driver->module_function(&kernel->function,
                                                 kernel->module, source->name);
        if (result)
            (void)device->driver->module_unload(kernel->module);
    }
    ccu_leave(device, is_pushed);
    if (result) {
        host->mem_free(host, kernel);
        return ccu_check(device, source->name, result, out_message);
    }
    *out_kernel = kernel;
    return HOB_OK;
}

static void kernel_close(struct cube_device *opened, void *closed)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    struct ccu_kernel *kernel = closed;
    const int is_pushed = ccu_enter(device);

    (void)device->driver->module_unload(kernel->module);
    ccu_leave(device, is_pushed);
    opened->host->mem_free(opened->host, kernel);
}

static hob_status launch(struct cube_device *opened, void *kernel_handle,
                         const struct cube_launch *launch, char **out_message)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    const struct ccu_kernel *kernel = kernel_handle;
    void *parameters[CUBE_MAX_BUFFERS + CUBE_MAX_PARAMS];
    unsigned char *params;
    hob_status status;
    int is_pushed, result;

    if (!launch->groups)
        return HOB_OK;
    status = ccu_begin(device, launch->op_name, &is_pushed, out_message);
    if (status)
        return status;
    /* The driver copies them; its prototype has no const. */
    memcpy(&params, &launch->params, sizeof(params));
    parameters[0] = params;
    for (uint32_t i = 0; i < launch->place_count; i++)
        parameters[i] = params + launch->places[i];
    result = device->driver->launch(kernel->function, launch->groups, 1, 1,
                                    kernel->group_size, 1, 1, 0, device->stream,
                                    parameters, NULL);
    status = ccu_check(device, launch->op_name, result, out_message);
    return ccu_end(device, is_pushed, status, out_message);
}

/* ---- the runtime ---- */

const struct cube_runtime ccu_runtime = {
    .selector = "cube-cuda",
    .language = CUBE_CUDA,
    .identity = ccu_compile_identity,
    .compile = ccu_compile,
    .kernel_open = kernel_open,
    .kernel_close = kernel_close,
    .launch = launch,
    .alloc = ccu_device_alloc,
    .free = ccu_device_free,
    .upload = ccu_device_upload,
    .download = ccu_device_download,
    .wait = ccu_device_sync,
};

/* ---- opening ---- */

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
    status = check_lost(device, out_message);
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
        return cube_say(host, out_message, HOB_ERR_DEVICE, "%s",
                        instance->problem);
    if (ordinal >= instance->count)
        return cube_say(host, out_message, HOB_ERR_DEVICE,
                        "there is no device %" PRIu32 "; CUDA has %" PRIu32
                        ", counted from 0",
                        ordinal, instance->count);
    physical = &instance->devices[ordinal];
    if (physical->lacks[0])
        return cube_say(host, out_message, HOB_ERR_UNSUPPORTED,
                        "%s cannot be used; it lacks %s", physical->name,
                        physical->lacks);
    device->instance = instance;
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
        ccu_staging_release(&device->staging);
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
    device->cube.name = device->name;
    device->options.has_blas = 1;
    if (pthread_mutex_init(&device->lock, NULL))
        status = HOB_ERR_MEMORY;
    else
        device->has_lock = 1;
    if (!status && !read_options(device, options, reason))
        status = cube_say(host, out_message, HOB_ERR_ARGUMENT, "cube-cuda: %s",
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

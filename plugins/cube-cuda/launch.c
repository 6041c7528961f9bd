/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - kernels: machine code as functions, and their launches.
 */
#include "device.h"
#include "linear.h"
#include "product.h"

#include <cube/cube.h>

#include <string.h>

struct ccu_kernel {
    struct CUmod_st *module;
    struct CUlib_st *library; /* or NULL; then there is no module */
    struct CUfunc_st *function;
    uint32_t group_size;
    uint32_t waits; /* it may be started before the one before it has ended */
};

/* As a kernel without a context: the stream says which it is started in, so
 * that a launch, which is short, makes none current and none as it was. */
static int load_library(struct ccu_device *device,
                        const struct cube_source *source, const void *binary,
                        struct ccu_kernel *kernel)
{
    const struct ccu_driver *driver = device->driver;
    int result = driver->library_load(&kernel->library, binary, NULL, NULL, 0,
                                      NULL, NULL, 0);

    if (result) {
        kernel->library = NULL;
        return result;
    }
    result = driver->library_kernel(&kernel->function, kernel->library,
                                    source->name);
    if (result)
        (void)driver->library_unload(kernel->library);
    return result;
}

static int load(struct ccu_device *device, const struct cube_source *source,
                const void *binary, struct ccu_kernel *kernel)
{
    const struct ccu_driver *driver = device->driver;
    int result;

    if (kernel->waits && driver->library_load && driver->library_kernel &&
        driver->library_unload && !device->options.is_blocking)
        return load_library(device, source, binary, kernel);
    result = driver->module_load(&kernel->module, binary);
    if (result)
        return result;
    result = driver->module_function(&kernel->function, kernel->module,
                                     source->name);
    if (!result && source->is_tied)
        result = driver->function_set(kernel->function, CCU_FUNCTION_SHARED,
                                      device->physical->shared_most);
    if (result)
        (void)driver->module_unload(kernel->module);
    return result;
}

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
    status = ccu_check_lost(device, out_message);
    if (status) {
        ccu_leave(device, is_pushed);
        host->mem_free(host, kernel);
        return status;
    }
    memset(kernel, 0, sizeof(*kernel));
    kernel->group_size = source->group_size;
    kernel->waits = source->waits && device->physical->major >= 9 &&
                    device->driver->launch_ex != NULL;
    result = load(device, source, binary, kernel);
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

    if (kernel->library)
        (void)device->driver->library_unload(kernel->library);
    else
        (void)device->driver->module_unload(kernel->module);
    ccu_leave(device, is_pushed);
    opened->host->mem_free(opened->host, kernel);
}

/* It starts while the kernel before it ends, and waits for that by itself. A
 * row of small kernels is bound by what lies between two of them. */
static int launch_overlapping(struct ccu_device *device,
                              const struct ccu_kernel *kernel,
                              const struct cube_launch *launch,
                              void **parameters)
{
    const struct ccu_launch_attribute attribute = {
        .id = CCU_PROGRAMMATIC_SERIALIZATION, .value = {.number = 1}};
    const struct ccu_launch_config config = {
        .groups = {launch->groups, 1, 1},
        .size = {kernel->group_size, 1, 1},
        .shared_bytes = launch->shared_bytes,
        .stream = ccu_stream(device),
        .attributes = &attribute,
        .attribute_count = 1};

    return device->driver->launch_ex(&config, kernel->function, parameters,
                                     NULL);
}

static hob_status launch(struct cube_device *opened, void *kernel_handle,
                         const struct cube_launch *launch, char **out_message)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    const struct ccu_kernel *kernel = kernel_handle;
    void *parameters[CUBE_MAX_BUFFERS + CUBE_MAX_PARAMS];
    unsigned char *params;
    hob_status status;
    int is_pushed = 0, result;

    if (!launch->groups)
        return HOB_OK;
    status = kernel->library
                 ? ccu_begin_without(device, launch->op_name, out_message)
                 : ccu_begin(device, launch->op_name, &is_pushed, out_message);
    if (status)
        return status;
    /* The driver copies them; its prototype has no const. */
    memcpy(&params, &launch->params, sizeof(params));
    parameters[0] = params;
    for (uint32_t i = 0; i < launch->place_count; i++)
        parameters[i] = params + launch->places[i];
    if (kernel->waits)
        result = launch_overlapping(device, kernel, launch, parameters);
    else
        result = device->driver->launch(
            kernel->function, launch->groups, 1, 1, kernel->group_size, 1, 1,
            launch->shared_bytes, ccu_stream(device), parameters, NULL);
    status = ccu_check(device, launch->op_name, result, out_message);
    return ccu_end(device, is_pushed, status, out_message);
}

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
    .flags = ccu_flags,
    .wait = ccu_runtime_wait,
    .gemm = ccu_gemm,
    .matmul = ccu_matmul,
    .flag_later = ccu_flag_later,
};

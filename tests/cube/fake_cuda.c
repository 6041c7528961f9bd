/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_cuda_parts.h"

#include <cube-cuda/blas.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_cuda fake_cuda;

struct CUevent_st {
    int device; /* of the stream that it was recorded in */
};
struct CUfunc_st {
    int crashes;
    int is_free;   /* of a context */
    int is_shared; /* it has shared arrays of its own */
    char name[64];
};
struct CUmod_st {
    struct CUfunc_st function; /* its only one */
};
struct CUlib_st {
    struct CUfunc_st function;
};
struct CUmemPoolHandle_st {
    int device;
};
struct _nvrtcProgram {
    const char *text;
};

static struct CUctx_st contexts[FAKE_CUDA_DEVICES] = {{0}, {1}};
_Thread_local struct CUctx_st *fake_current;
/* What was current before each push. */
static _Thread_local struct CUctx_st *below[8];
static _Thread_local int depth;

_Static_assert(sizeof(struct fake_map) <= sizeof(struct ccu_tensor_map),
               "it takes the place of one");
_Static_assert(sizeof(struct fake_walk) <= sizeof(struct ccu_tensor_map),
               "it takes the place of one");

void fake_cuda_reset(void)
{
    memset(&fake_cuda, 0, sizeof(fake_cuda));
    fake_cuda.devices = FAKE_CUDA_DEVICES;
    fake_cuda.major = 9;
    fake_cuda.memory_bytes = (size_t)256 << 20;
    fake_current = NULL;
    depth = 0;
}

void fake_cuda_make_current(int device)
{
    fake_current = device < 0 ? NULL : &contexts[device];
}

int fake_cuda_current(void)
{
    return fake_current ? fake_current->device : -1;
}

int fake_cuda_is_clean(void)
{
    return !fake_cuda.contexts && !fake_cuda.streams && !fake_cuda.events &&
           !fake_cuda.pools && !fake_cuda.modules && !fake_cuda.programs &&
           !fake_cuda.pins && !fake_cuda.blocks && !fake_cuda.depth &&
           !fake_cuda.handles && !fake_cuda.layouts && !fake_cuda.graphs;
}

int fake_fault(const char *name)
{
    const char *const failing = fake_cuda.failing;

    if (!failing || strcmp(name, failing))
        return 0;
    if (fake_cuda.skip > 0) {
        fake_cuda.skip--;
        return 0;
    }
    return fake_cuda.result;
}

/* ---- the driver ---- */

static int fake_init(unsigned int flags)
{
    (void)flags;
    FAULT("cuInit");
    return fake_cuda.devices ? 0 : CCU_NO_DEVICE;
}

static int fake_version(int *version)
{
    FAULT("cuDriverGetVersion");
    *version = 13000;
    return 0;
}

static int fake_error_name(int result, const char **name)
{
    *name = result == CCU_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                          : "CUDA_ERROR_FAKE";
    return 0;
}

static int fake_error_text(int result, const char **text)
{
    *text = result == CCU_ILLEGAL_ADDRESS ? "an illegal memory access"
                                          : "a test wants it so";
    return 0;
}

static int fake_device_count(int *count)
{
    FAULT("cuDeviceGetCount");
    *count = fake_cuda.devices;
    return 0;
}

static int fake_device_get(int *device, int ordinal)
{
    FAULT("cuDeviceGet");
    *device = ordinal;
    return 0;
}

static int fake_device_name(char *name, int size, int device)
{
    FAULT("cuDeviceGetName");
    snprintf(name, (size_t)size, "Fake %d", device);
    return 0;
}

static int fake_device_memory(size_t *bytes, int device)
{
    (void)device;
    FAULT("cuDeviceTotalMem_v2");
    *bytes = fake_cuda.memory_bytes;
    return 0;
}

static int fake_device_attribute(int *value, int attribute, int device)
{
    (void)device;
    FAULT("cuDeviceGetAttribute");
    switch (attribute) {
    case CCU_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CCU_MAX_GRID_DIM_X:
        *value = 2147483647;
        break;
    case CCU_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = 49152;
        break;
    case CCU_MAX_SHARED_MEMORY_OPTIN:
        *value = FAKE_CUDA_SHARED_MOST;
        break;
    case CCU_MULTIPROCESSOR_COUNT:
        *value = FAKE_CUDA_PROCESSORS;
        break;
    case CCU_WARP_SIZE:
        *value = 32;
        break;
    case CCU_CAPABILITY_MAJOR:
        *value = fake_cuda.major;
        break;
    default:
        *value = attribute == CCU_MEMORY_POOLS_SUPPORTED;
        break;
    }
    return 0;
}

static int fake_context_retain(struct CUctx_st **context, int device)
{
    FAULT("cuDevicePrimaryCtxRetain");
    *context = &contexts[device];
    fake_cuda.contexts++;
    return 0;
}

static int fake_context_release(int device)
{
    (void)device;
    fake_cuda.contexts--;
    return 0;
}

static int fake_context_current(struct CUctx_st **context)
{
    *context = fake_current;
    return 0;
}

static int fake_context_push(struct CUctx_st *context)
{
    FAULT("cuCtxPushCurrent_v2");
    below[depth++] = fake_current;
    fake_cuda.depth++;
    fake_current = context;
    return 0;
}

static int fake_context_pop(struct CUctx_st **context)
{
    *context = fake_current;
    fake_current = below[--depth];
    fake_cuda.depth--;
    return 0;
}

static int fake_stream_create(struct CUstream_st **stream, unsigned int flags)
{
    (void)flags;
    IN_CONTEXT("cuStreamCreate");
    *stream = calloc(1, sizeof(**stream));
    (*stream)->device = fake_current->device;
    fake_cuda.streams++;
    return 0;
}

static int fake_stream_destroy(struct CUstream_st *stream)
{
    free(stream);
    fake_cuda.streams--;
    return 0;
}

static int fake_stream_wait(struct CUstream_st *stream)
{
    IN_CONTEXT("cuStreamSynchronize");
    if (stream->written)
        return FAKE_CAPTURE_UNSUPPORTED;
    fake_cuda.waits++;
    if (fake_cuda.waiting)
        fake_cuda.waiting();
    return 0;
}

static int fake_event_create(struct CUevent_st **event, unsigned int flags)
{
    (void)flags;
    IN_CONTEXT("cuEventCreate");
    *event = malloc(sizeof(**event));
    fake_cuda.events++;
    return 0;
}

static int fake_event_destroy(struct CUevent_st *event)
{
    free(event);
    fake_cuda.events--;
    return 0;
}

static int fake_event_record(struct CUevent_st *event,
                             struct CUstream_st *stream)
{
    IN_CONTEXT("cuEventRecord");
    event->device = stream->device;
    return 0;
}

static int fake_event_wait(struct CUevent_st *event)
{
    (void)event;
    IN_CONTEXT("cuEventSynchronize");
    return 0;
}

static int fake_host_alloc(void **memory, size_t bytes, unsigned int flags)
{
    (void)flags;
    IN_CONTEXT("cuMemHostAlloc");
    *memory = malloc(bytes);
    fake_cuda.pins++;
    return 0;
}

static int fake_host_free(void *memory)
{
    free(memory);
    fake_cuda.pins--;
    return 0;
}

static int fake_copy_up(ccu_address to, const void *from, size_t bytes,
                        struct CUstream_st *stream)
{
    IN_CONTEXT("cuMemcpyHtoDAsync_v2");
    return fake_copy((void *)(uintptr_t)to, from, bytes, stream);
}

static int fake_copy_down(void *to, ccu_address from, size_t bytes,
                          struct CUstream_st *stream)
{
    IN_CONTEXT("cuMemcpyDtoHAsync_v2");
    return fake_copy(to, (const void *)(uintptr_t)from, bytes, stream);
}

static int fake_stream_wait_event(struct CUstream_st *stream,
                                  struct CUevent_st *event, unsigned int flags)
{
    IN_CONTEXT("cuStreamWaitEvent");
    if (flags)
        return 1;
    fake_cuda.event_waits++;
    fake_cuda.waits_between += stream->device != event->device;
    return 0;
}

static int fake_copy_within(ccu_address to, ccu_address from, size_t bytes,
                            struct CUstream_st *stream)
{
    IN_CONTEXT("cuMemcpyDtoDAsync_v2");
    fake_cuda.copies++;
    return fake_copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from,
                     bytes, stream);
}

static int fake_copy_peer(ccu_address to, struct CUctx_st *to_context,
                          ccu_address from, struct CUctx_st *from_context,
                          size_t bytes, struct CUstream_st *stream)
{
    IN_CONTEXT("cuMemcpyPeerAsync");
    if (to_context != fake_current || from_context == to_context ||
        stream->device != to_context->device)
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    fake_cuda.peer_copies++;
    return fake_copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from,
                     bytes, stream);
}

static int fake_can_access(int *can, int device, int peer)
{
    FAULT("cuDeviceCanAccessPeer");
    *can = device != peer;
    return 0;
}

static int fake_pool_access(struct CUmemPoolHandle_st *pool,
                            const struct ccu_access *list, size_t count)
{
    IN_CONTEXT("cuMemPoolSetAccess");
    if (count != 1 || list->location_id == pool->device || list->flags != 3)
        return 1;
    fake_cuda.pools_open++;
    return 0;
}

static int fake_pool_create(struct CUmemPoolHandle_st **pool,
                            const struct ccu_pool_properties *properties)
{
    IN_CONTEXT("cuMemPoolCreate");
    *pool = malloc(sizeof(**pool));
    (*pool)->device = properties->location_id;
    fake_cuda.pools++;
    return 0;
}

static int fake_pool_destroy(struct CUmemPoolHandle_st *pool)
{
    free(pool);
    fake_cuda.pools--;
    return 0;
}

static int fake_pool_set(struct CUmemPoolHandle_st *pool, int attribute,
                         void *value)
{
    (void)pool;
    (void)attribute;
    (void)value;
    IN_CONTEXT("cuMemPoolSetAttribute");
    return 0;
}

static int fake_pool_get(struct CUmemPoolHandle_st *pool, int attribute,
                         void *value)
{
    const uint64_t bytes = fake_cuda.bytes;

    (void)pool;
    (void)attribute;
    IN_CONTEXT("cuMemPoolGetAttribute");
    memcpy(value, &bytes, sizeof(bytes));
    return 0;
}

static int fake_pool_trim(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    (void)pool;
    (void)bytes;
    IN_CONTEXT("cuMemPoolTrimTo");
    return 0;
}

/* A block knows its size. */
enum { HEAD = 64 };

static int fake_alloc(ccu_address *address, size_t bytes,
                      struct CUmemPoolHandle_st *pool,
                      struct CUstream_st *stream)
{
    char *block;

    (void)pool;
    IN_CONTEXT("cuMemAllocFromPoolAsync");
    if (stream->written)
        return FAKE_CAPTURE_UNSUPPORTED;
    fake_cuda.calls_alloc++;
    if (fake_cuda.bytes + bytes > fake_cuda.memory_bytes)
        return CCU_OUT_OF_MEMORY;
    block = aligned_alloc(HEAD, (HEAD + bytes + HEAD - 1) / HEAD * HEAD);
    memcpy(block, &bytes, sizeof(bytes));
    *address = (ccu_address)(uintptr_t)(block + HEAD);
    fake_cuda.bytes += bytes;
    fake_cuda.blocks++;
    return 0;
}

static int fake_free(ccu_address address, struct CUstream_st *stream)
{
    char *block = (char *)(uintptr_t)address - HEAD;
    size_t bytes;

    (void)stream;
    /* A lost device's memory goes with it; the test's must not leak. */
    fake_cuda.calls_free++;
    memcpy(&bytes, block, sizeof(bytes));
    fake_cuda.bytes -= bytes;
    fake_cuda.blocks--;
    free(block);
    return 0;
}

/* The only function of IMAGE, the text of a source. */
static void read_function(struct CUfunc_st *function, const void *image)
{
    memset(function, 0, sizeof(*function));
    function->crashes = strstr(image, "crash") != NULL;
    function->is_shared = strstr(image, "\n    __shared__ ") != NULL;
}

static int fake_module_load(struct CUmod_st **module, const void *image)
{
    IN_CONTEXT("cuModuleLoadData");
    *module = malloc(sizeof(**module));
    read_function(&(*module)->function, image);
    fake_cuda.modules++;
    return 0;
}

static int fake_module_unload(struct CUmod_st *module)
{
    free(module);
    fake_cuda.modules--;
    return 0;
}

static int fake_module_function(struct CUfunc_st **function,
                                struct CUmod_st *module, const char *name)
{
    IN_CONTEXT("cuModuleGetFunction");
    *function = &module->function;
    snprintf(module->function.name, sizeof(module->function.name), "%s", name);
    return 0;
}

static int fake_library_load(struct CUlib_st **library, const void *image,
                             const int *jit_options, void **jit_values,
                             unsigned int jit_count, const int *options,
                             void **values, unsigned int count)
{
    (void)jit_options;
    (void)jit_values;
    (void)options;
    (void)values;
    FAULT("cuLibraryLoadData");
    if (jit_count || count)
        return 1;
    *library = malloc(sizeof(**library));
    read_function(&(*library)->function, image);
    (*library)->function.is_free = 1;
    fake_cuda.modules++;
    return 0;
}

static int fake_library_unload(struct CUlib_st *library)
{
    free(library);
    fake_cuda.modules--;
    return 0;
}

static int fake_library_kernel(struct CUfunc_st **kernel,
                               struct CUlib_st *library, const char *name)
{
    FAULT("cuLibraryGetKernel");
    *kernel = &library->function;
    snprintf(library->function.name, sizeof(library->function.name), "%s",
             name);
    return 0;
}

static int fake_function_set(struct CUfunc_st *function, int attribute,
                             int value)
{
    IN_CONTEXT("cuFuncSetAttribute");
    /* Arrays of its own count as well. */
    if (attribute != CCU_FUNCTION_SHARED ||
        value + function->is_shared > FAKE_CUDA_SHARED_MOST)
        return 1;
    fake_cuda.shared_most = (unsigned int)value;
    return 0;
}

/* What the driver is documented to refuse is refused. */
static int fake_tensor_map(struct ccu_tensor_map *out, int type, uint32_t rank,
                           void *data, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box,
                           const uint32_t *steps, int interleave, int swizzle,
                           int promotion, int fill)
{
    struct fake_map map = {.data = data, .type = type};

    (void)promotion;
    IN_CONTEXT("cuTensorMapEncodeTiled");
    if (rank != FAKE_CUDA_MAP_RANK || (uintptr_t)out % 64 ||
        (uintptr_t)data % 16 || interleave || swizzle != 3 || fill)
        return 1;
    for (uint32_t i = 0; i < rank; i++) {
        const uint64_t stride = i ? strides[i - 1] : 16;

        if (!sizes[i] || sizes[i] > UINT32_MAX || !box[i] || box[i] > 256 ||
            steps[i] != 1 || !stride || stride % 16 || stride >> 40)
            return 1;
        map.sizes[i] = (uint32_t)sizes[i];
        map.strides[i] = i ? stride : 2;
        map.box[i] = (uint16_t)box[i];
    }
    memcpy(out, &map, sizeof(map));
    return 0;
}

static int is_byte(int number)
{
    return number >= -128 && number <= 127;
}

static int fake_tensor_map_im2col(
    struct ccu_tensor_map *out, int type, uint32_t rank, void *data,
    const uint64_t *sizes, const uint64_t *strides, const int *low,
    const int *high, uint32_t channels, uint32_t places, const uint32_t *steps,
    int interleave, int swizzle, int promotion, int fill)
{
    struct fake_walk walk = {.data = data, .type = (uint16_t)type};

    (void)promotion;
    IN_CONTEXT("cuTensorMapEncodeIm2col");
    if (rank != FAKE_CUDA_WALK_RANK || (uintptr_t)out % 64 ||
        (uintptr_t)data % 16 || interleave || swizzle != 3 || fill ||
        channels != 64 || !places || places > 1024 || steps[0] != 1 ||
        steps[3] != 1)
        return 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (!sizes[i] || sizes[i] > UINT32_MAX ||
            (i &&
             (!strides[i - 1] || strides[i - 1] % 16 || strides[i - 1] >> 40)))
            return 1;
        walk.sizes[i] = (uint32_t)sizes[i];
        if (i)
            walk.strides[i - 1] = strides[i - 1];
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (!is_byte(low[i]) || !is_byte(high[i]) || !steps[1 + i] ||
            steps[1 + i] > 8)
            return 1;
        walk.low[i] = low[i];
        walk.high[i] = high[i];
        walk.steps[i] = (uint16_t)steps[1 + i];
    }
    walk.places = (uint16_t)places;
    memcpy(out, &walk, sizeof(walk));
    return 0;
}

static int fake_launch(struct CUfunc_st *function, unsigned int groups_x,
                       unsigned int groups_y, unsigned int groups_z,
                       unsigned int size_x, unsigned int size_y,
                       unsigned int size_z, unsigned int shared_bytes,
                       struct CUstream_st *stream, void **parameters,
                       void **extra)
{
    struct fake_work work = {.kind = FAKE_ADD};

    if (!function->is_free)
        IN_CONTEXT("cuLaunchKernel");
    else if (fake_cuda.lost[stream->device])
        return fake_cuda.lost[stream->device];
    else
        FAULT("cuLaunchKernel");
    if (groups_y * groups_z * size_y * size_z != 1 || extra ||
        shared_bytes > fake_cuda.shared_most)
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    fake_cuda.groups = groups_x;
    fake_cuda.group_size = size_x;
    fake_cuda.kernel = function->name;
    if (fake_cuda.launching) {
        fake_cuda.launching(parameters);
        return 0;
    }
    work.crashes = function->crashes;
    memcpy(&work.params, parameters[0], sizeof(work.params));
    return fake_do(stream, &work);
}

static int fake_launch_ex(const struct ccu_launch_config *config,
                          struct CUfunc_st *function, void **parameters,
                          void **extra)
{
    if (config->attribute_count != 1 || config->attributes->id != 6 ||
        config->attributes->value.number != 1)
        return 1;
    FAULT("cuLaunchKernelEx");
    fake_cuda.overlapping++;
    return fake_launch(function, config->groups[0], config->groups[1],
                       config->groups[2], config->size[0], config->size[1],
                       config->size[2], config->shared_bytes, config->stream,
                       parameters, extra);
}

/* ---- NVRTC ---- */

static int fake_nvrtc_version(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}

static int fake_program_create(struct _nvrtcProgram **program, const char *text,
                               const char *name, int header_count,
                               const char *const *headers,
                               const char *const *header_names)
{
    (void)name;
    (void)headers;
    (void)header_names;
    FAULT("nvrtcCreateProgram");
    if (header_count)
        return 1;
    *program = malloc(sizeof(**program));
    (*program)->text = text;
    fake_cuda.programs++;
    return 0;
}

static int fake_program_destroy(struct _nvrtcProgram **program)
{
    free(*program);
    *program = NULL;
    fake_cuda.programs--;
    return 0;
}

static int fake_program_compile(struct _nvrtcProgram *program, int option_count,
                                const char *const *options)
{
    FAULT("nvrtcCompileProgram");
    for (int i = 3; i < option_count; i++)
        if (fake_cuda.has_old_nvrtc)
            return FAKE_INVALID_OPTION;
    fake_cuda.nvrtc_options = option_count;
    fake_cuda.is_tied = option_count > 0 && strstr(options[0], "sm_90a");
    return strstr(program->text, "error") ? 6 : 0;
}

static const char compiler_log[] = "line 7: there is an error";

static int fake_log_size(struct _nvrtcProgram *program, size_t *bytes)
{
    (void)program;
    FAULT("nvrtcGetProgramLogSize");
    *bytes = sizeof(compiler_log);
    return 0;
}

static int fake_log(struct _nvrtcProgram *program, char *log)
{
    (void)program;
    FAULT("nvrtcGetProgramLog");
    memcpy(log, compiler_log, sizeof(compiler_log));
    return 0;
}

static int fake_cubin_size(struct _nvrtcProgram *program, size_t *bytes)
{
    FAULT("nvrtcGetCUBINSize");
    *bytes = strlen(program->text) + 1;
    return 0;
}

static int fake_cubin(struct _nvrtcProgram *program, char *cubin)
{
    FAULT("nvrtcGetCUBIN");
    memcpy(cubin, program->text, strlen(program->text) + 1);
    return 0;
}

/* ---- by name ---- */

ccu_any_fn fake_cuda_find(const char *name)
{
    const char *const missing = fake_cuda.missing;
    const struct ccu_driver driver = {
        .init = fake_init,
        .version = fake_version,
        .error_name = fake_error_name,
        .error_text = fake_error_text,
        .device_count = fake_device_count,
        .device_get = fake_device_get,
        .device_name = fake_device_name,
        .device_memory = fake_device_memory,
        .device_attribute = fake_device_attribute,
        .context_retain = fake_context_retain,
        .context_release = fake_context_release,
        .context_current = fake_context_current,
        .context_push = fake_context_push,
        .context_pop = fake_context_pop,
        .stream_create = fake_stream_create,
        .stream_destroy = fake_stream_destroy,
        .stream_wait = fake_stream_wait,
        .event_create = fake_event_create,
        .event_destroy = fake_event_destroy,
        .event_record = fake_event_record,
        .event_wait = fake_event_wait,
        .host_alloc = fake_host_alloc,
        .host_free = fake_host_free,
        .stream_wait_event = fake_stream_wait_event,
        .stream_begin_capture = fake_stream_begin_capture,
        .stream_end_capture = fake_stream_end_capture,
        .graph_instantiate = fake_graph_instantiate,
        .graph_destroy = fake_graph_destroy,
        .graph_launch = fake_graph_launch,
        .graph_exec_destroy = fake_graph_exec_destroy,
        .copy = fake_copy_within,
        .copy_peer = fake_copy_peer,
        .can_access = fake_can_access,
        .pool_access = fake_pool_access,
        .copy_up = fake_copy_up,
        .copy_down = fake_copy_down,
        .pool_create = fake_pool_create,
        .pool_destroy = fake_pool_destroy,
        .pool_set = fake_pool_set,
        .pool_get = fake_pool_get,
        .pool_trim = fake_pool_trim,
        .alloc = fake_alloc,
        .free = fake_free,
        .module_load = fake_module_load,
        .module_unload = fake_module_unload,
        .function_set = fake_function_set,
        .tensor_map = fake_tensor_map,
        .tensor_map_im2col = fake_tensor_map_im2col,
        .module_function = fake_module_function,
        .library_load = fake_library_load,
        .library_unload = fake_library_unload,
        .library_kernel = fake_library_kernel,
        .launch = fake_launch,
        .launch_ex = fake_launch_ex,
    };
    const struct ccu_nvrtc nvrtc = {
        .version = fake_nvrtc_version,
        .create = fake_program_create,
        .destroy = fake_program_destroy,
        .compile = fake_program_compile,
        .log_size = fake_log_size,
        .log = fake_log,
        .cubin_size = fake_cubin_size,
        .cubin = fake_cubin,
    };
    if (missing && !strcmp(name, missing))
        return NULL;
    if (fake_cuda.nvrtc && !strncmp(name, "nvrtc", 5)) {
        void *symbol = dlsym(fake_cuda.nvrtc, name);
        ccu_any_fn function;

        memcpy(&function, &symbol, sizeof(function)); /* as POSIX has it */
        return function;
    }
#define CCU_DRIVER(member, symbol, parameters)                                 \
    if (!strcmp(name, #symbol))                                                \
        return (ccu_any_fn)driver.member;
#define CCU_LATER CCU_DRIVER
#define CCU_NVRTC(member, symbol, parameters)                                  \
    if (!strcmp(name, #symbol))                                                \
        return (ccu_any_fn)nvrtc.member;
#include <cube-cuda/symbols.def>
    return fake_cublas_find(name);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_cuda.h"

#include <cube-cuda/blas.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_cuda fake_cuda;

struct CUctx_st {
    int device;
};
struct CUstream_st {
    int device;
};
struct CUevent_st {
    int unused;
};
struct CUmod_st {
    int crashes;
};
struct CUfunc_st {
    int crashes;
};
struct CUmemPoolHandle_st {
    int device;
};
struct _nvrtcProgram {
    const char *text;
};
struct cublasLtContext {
    int unused;
};

/* A description of a product, a layout or a preference. */
struct blas_object {
    int turned[2];
    int type, count;
    int64_t rows, columns, stride, batch;
};

static struct CUctx_st contexts[FAKE_CUDA_DEVICES] = {{0}, {1}};
static struct CUfunc_st functions[2] = {{0}, {1}};
static _Thread_local struct CUctx_st *current;
/* What was current before each push. */
static _Thread_local struct CUctx_st *below[8];
static _Thread_local int depth;

void fake_cuda_reset(void)
{
    memset(&fake_cuda, 0, sizeof(fake_cuda));
    fake_cuda.devices = FAKE_CUDA_DEVICES;
    fake_cuda.major = 9;
    fake_cuda.memory_bytes = (size_t)256 << 20;
    current = NULL;
    depth = 0;
}

void fake_cuda_make_current(int device)
{
    current = device < 0 ? NULL : &contexts[device];
}

int fake_cuda_current(void)
{
    return current ? current->device : -1;
}

int fake_cuda_is_clean(void)
{
    return !fake_cuda.contexts && !fake_cuda.streams && !fake_cuda.events &&
           !fake_cuda.pools && !fake_cuda.modules && !fake_cuda.programs &&
           !fake_cuda.pins && !fake_cuda.blocks && !fake_cuda.depth &&
           !fake_cuda.handles && !fake_cuda.layouts;
}

/* What NAME is to answer instead of doing its work; 0: nothing. */
static int fault(const char *name)
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

#define FAULT(name)                                                            \
    do {                                                                       \
        const int result_ = fault(name);                                       \
        if (result_)                                                           \
            return result_;                                                    \
    } while (0)

/* A call in the current context: it must be there, and not be lost. */
#define IN_CONTEXT(name)                                                       \
    do {                                                                       \
        if (!current)                                                          \
            return 201; /* CUDA_ERROR_INVALID_CONTEXT */                       \
        if (fake_cuda.lost[current->device])                                   \
            return fake_cuda.lost[current->device];                            \
        FAULT(name);                                                           \
    } while (0)

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
    *context = current;
    return 0;
}

static int fake_context_push(struct CUctx_st *context)
{
    FAULT("cuCtxPushCurrent_v2");
    below[depth++] = current;
    fake_cuda.depth++;
    current = context;
    return 0;
}

static int fake_context_pop(struct CUctx_st **context)
{
    *context = current;
    current = below[--depth];
    fake_cuda.depth--;
    return 0;
}

static int fake_stream_create(struct CUstream_st **stream, unsigned int flags)
{
    (void)flags;
    IN_CONTEXT("cuStreamCreate");
    *stream = malloc(sizeof(**stream));
    (*stream)->device = current->device;
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
    (void)stream;
    IN_CONTEXT("cuStreamSynchronize");
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
    (void)event;
    (void)stream;
    IN_CONTEXT("cuEventRecord");
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
    (void)stream;
    IN_CONTEXT("cuMemcpyHtoDAsync_v2");
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

static int fake_copy_down(void *to, ccu_address from, size_t bytes,
                          struct CUstream_st *stream)
{
    (void)stream;
    IN_CONTEXT("cuMemcpyDtoHAsync_v2");
    memcpy(to, (const void *)(uintptr_t)from, bytes);
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
    (void)stream;
    IN_CONTEXT("cuMemAllocFromPoolAsync");
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

static int fake_module_load(struct CUmod_st **module, const void *image)
{
    IN_CONTEXT("cuModuleLoadData");
    *module = malloc(sizeof(**module));
    (*module)->crashes = strstr(image, "crash") != NULL;
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
    (void)name;
    IN_CONTEXT("cuModuleGetFunction");
    *function = &functions[module->crashes];
    return 0;
}

static int fake_launch(struct CUfunc_st *function, unsigned int groups_x,
                       unsigned int groups_y, unsigned int groups_z,
                       unsigned int size_x, unsigned int size_y,
                       unsigned int size_z, unsigned int shared_bytes,
                       struct CUstream_st *stream, void **parameters,
                       void **extra)
{
    struct fake_params params;
    int *to;

    (void)shared_bytes;
    (void)stream;
    IN_CONTEXT("cuLaunchKernel");
    if (groups_y * groups_z * size_y * size_z != 1 || extra)
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    fake_cuda.groups = groups_x;
    fake_cuda.group_size = size_x;
    if (function->crashes) {
        /* Seen by the next call, as with a real device. */
        fake_cuda.lost[current->device] = CCU_ILLEGAL_ADDRESS;
        return 0;
    }
    memcpy(&params, parameters[0], sizeof(params));
    to = (int *)(uintptr_t)params.to;
    for (int i = 0; i < params.count; i++)
        to[i] += params.step;
    return 0;
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
    (void)option_count;
    (void)options;
    FAULT("nvrtcCompileProgram");
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

/* ---- cuBLASLt ---- */

static int fake_blas_create(struct cublasLtContext **handle)
{
    IN_CONTEXT("cublasLtCreate");
    *handle = malloc(sizeof(**handle));
    fake_cuda.handles++;
    return 0;
}

static int fake_blas_destroy(struct cublasLtContext *handle)
{
    free(handle);
    fake_cuda.handles--;
    return 0;
}

static int new_object(void **out, const char *name)
{
    FAULT(name);
    *out = calloc(1, sizeof(struct blas_object));
    fake_cuda.layouts++;
    return 0;
}

static int free_object(void *object)
{
    free(object);
    fake_cuda.layouts--;
    return 0;
}

static int fake_desc_create(void **desc, int compute_type, int scale_type)
{
    (void)scale_type;
    if (compute_type != 68 && compute_type != 70 && compute_type != 77)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    return new_object(desc, "cublasLtMatmulDescCreate");
}

static int fake_desc_set(void *desc, int attribute, const void *value,
                         size_t bytes)
{
    struct blas_object *object = desc;
    int turned;

    FAULT("cublasLtMatmulDescSetAttribute");
    if (bytes != sizeof(turned) || (attribute != 3 && attribute != 4))
        return 7;
    memcpy(&turned, value, sizeof(turned));
    object->turned[attribute - 3] = turned;
    return 0;
}

static int fake_layout_create(void **layout, int type, uint64_t rows,
                              uint64_t columns, int64_t stride)
{
    const int result = new_object(layout, "cublasLtMatrixLayoutCreate");
    struct blas_object *object = *layout;

    if (result)
        return result;
    if (stride < (int64_t)rows)
        return 7;
    object->type = type;
    object->rows = (int64_t)rows;
    object->columns = (int64_t)columns;
    object->stride = stride;
    object->count = 1;
    return 0;
}

static int fake_layout_set(void *layout, int attribute, const void *value,
                           size_t bytes)
{
    struct blas_object *object = layout;

    FAULT("cublasLtMatrixLayoutSetAttribute");
    if (attribute == 5 && bytes == sizeof(object->count))
        memcpy(&object->count, value, bytes);
    else if (attribute == 6 && bytes == sizeof(object->batch))
        memcpy(&object->batch, value, bytes);
    else
        return 7;
    return 0;
}

static int fake_preference_create(void **preference)
{
    return new_object(preference, "cublasLtMatmulPreferenceCreate");
}

static int fake_preference_set(void *preference, int attribute,
                               const void *value, size_t bytes)
{
    uint64_t workspace;

    (void)preference;
    FAULT("cublasLtMatmulPreferenceSetAttribute");
    if (attribute == 1 && bytes == sizeof(workspace)) {
        memcpy(&workspace, value, bytes);
        fake_cuda.workspace_bytes = workspace;
    }
    return bytes == (attribute == 1 ? 8u : 4u) ? 0 : 7;
}

static int fake_heuristic(struct cublasLtContext *handle, void *desc, void *a,
                          void *b, void *c, void *d, void *preference,
                          int wanted, void *results, int *found)
{
    (void)handle;
    (void)desc;
    (void)a;
    (void)b;
    (void)d;
    (void)c;
    (void)preference;
    FAULT("cublasLtMatmulAlgoGetHeuristic");
    fake_cuda.heuristics++;
    memset(results, 0, 96 * (size_t)wanted);
    *found = !fake_cuda.has_no_kernel;
    return 0;
}

static double element(const void *data, const struct blas_object *layout,
                      int turned, int64_t batch, int64_t row, int64_t column)
{
    const int64_t at = batch * layout->batch +
                       (turned ? row * layout->stride + column
                               : column * layout->stride + row);

    return layout->type == 1 ? ((const double *)data)[at]
                             : (double)((const float *)data)[at];
}

/* Column-major, as the library is: d = a b. */
static int fake_matmul(struct cublasLtContext *handle, void *desc,
                       const void *alpha, const void *a, void *a_layout,
                       const void *b, void *b_layout, const void *beta,
                       const void *c, void *c_layout, void *d, void *d_layout,
                       const void *algorithm, void *workspace,
                       size_t workspace_bytes, struct CUstream_st *stream)
{
    const struct blas_object *product = desc, *to = d_layout;
    const struct blas_object *left = a_layout;
    const int64_t inner = product->turned[0] ? left->rows : left->columns;

    (void)handle;
    (void)alpha;
    (void)beta;
    (void)c;
    (void)c_layout;
    (void)algorithm;
    (void)stream;
    IN_CONTEXT("cublasLtMatmul");
    if (workspace_bytes && !workspace)
        return 7;
    fake_cuda.products++;
    for (int64_t batch = 0; batch < to->count; batch++)
        for (int64_t i = 0; i < to->rows; i++)
            for (int64_t j = 0; j < to->columns; j++) {
                const int64_t at = batch * to->batch + j * to->stride + i;
                double sum = 0;

                for (int64_t k = 0; k < inner; k++)
                    sum += element(a, left, product->turned[0], batch, i, k) *
                           element(b, b_layout, product->turned[1], batch, k,
                                   j);
                if (to->type == 1)
                    ((double *)d)[at] = sum;
                else
                    ((float *)d)[at] = (float)sum;
            }
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
        .module_function = fake_module_function,
        .launch = fake_launch,
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
    const struct ccu_cublas cublas = {
        .create = fake_blas_create,
        .destroy = fake_blas_destroy,
        .desc_create = fake_desc_create,
        .desc_destroy = free_object,
        .desc_set = fake_desc_set,
        .layout_create = fake_layout_create,
        .layout_destroy = free_object,
        .layout_set = fake_layout_set,
        .preference_create = fake_preference_create,
        .preference_destroy = free_object,
        .preference_set = fake_preference_set,
        .heuristic = fake_heuristic,
        .matmul = fake_matmul,
    };

    if (missing && !strcmp(name, missing))
        return NULL;
#define CCU_DRIVER(member, symbol, parameters)                                 \
    if (!strcmp(name, #symbol))                                                \
        return (ccu_any_fn)driver.member;
#define CCU_NVRTC(member, symbol, parameters)                                  \
    if (!strcmp(name, #symbol))                                                \
        return (ccu_any_fn)nvrtc.member;
#define CCU_CUBLAS(member, symbol, parameters)                                 \
    if (!strcmp(name, #symbol))                                                \
        return (ccu_any_fn)cublas.member;
#include <cube-cuda/symbols.def>
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <assert.h>
#include <string.h>

void cube_job_init(struct cube_job *job, struct cube_device *device,
                   struct hob_call *call, const struct cube_program *program)
{
    job->device = device;
    job->call = call;
    cube_variant_init(&job->variant, program);
    job->variant.group_size = CUBE_GROUP_SIZE;
    job->buffer_count = 0;
    job->range_count = 0;
    job->number_count = 0;
    job->constant_count = 0;
    job->symbol_count = 0;
    job->each = 1;
}

/* ---- buffers ---- */

struct cube_range cube_view_range(const struct hob_view *view)
{
    const int64_t size = hob_dtype_size(view->dtype);
    struct cube_range range = {view->data, 0, 0, 0};
    int64_t low = 0, high = 1;

    for (uint32_t i = 0; i < view->rank; i++) {
        const int64_t reach = (view->shape[i] - 1) * view->strides[i];

        if (view->shape[i] == 0)
            return range;
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    range.data = (const char *)view->data + low * size;
    range.bytes = (uint64_t)((high - low) * size);
    return range;
}

static void add_buffer(struct cube_job *job, const void *data, uint32_t dtype,
                       struct cube_range range)
{
    const uint32_t index = job->buffer_count++;
    const struct cube_buffer *buffer = &job->variant.program->buffers[index];

    assert(index < CUBE_MAX_BUFFERS && buffer->name);
    job->data[index] = data;
    job->variant.dtypes[index] = (uint8_t)dtype;
    range.is_written = (buffer->flags & CUBE_WRITTEN) != 0;
    if (range.bytes > 0)
        job->ranges[job->range_count++] = range;
}

void cube_job_view(struct cube_job *job, const struct hob_view *view)
{
    const struct cube_range range = cube_view_range(view);
    const uint32_t size = hob_dtype_size(view->dtype);

    assert(size > 0);
    cube_job_reach(job, (int64_t)(range.bytes / size));
    add_buffer(job, view->data, view->dtype, range);
}

void cube_job_memory(struct cube_job *job, const void *data, uint32_t dtype,
                     int64_t count)
{
    const struct cube_range range = {
        data, (uint64_t)count * hob_dtype_size(dtype), 0, 0};

    cube_job_reach(job, count);
    add_buffer(job, data, dtype, range);
}

/* ---- running ---- */

static void pack_run(unsigned char *to, const struct cube_number_run *run,
                     const uint64_t *numbers)
{
    switch (run->type) {
    case CUBE_I32:
    case CUBE_U32:
        for (uint32_t k = 0; k < run->count; k++) {
            const uint32_t low = (uint32_t)numbers[k];

            memcpy(to + k * sizeof(low), &low, sizeof(low));
        }
        break;
    case CUBE_F32:
        for (uint32_t k = 0; k < run->count; k++) {
            double wide;
            float single;

            memcpy(&wide, &numbers[k], sizeof(wide));
            single = (float)wide;
            memcpy(to + k * sizeof(single), &single, sizeof(single));
        }
        break;
    default:
        memcpy(to, numbers, run->count * sizeof(numbers[0]));
    }
}

static void pack(const struct cube_job *job, const struct cube_layout *layout,
                 unsigned char *block)
{
    uint32_t number = 0;

    memset(block, 0, layout->bytes);
    for (uint32_t i = 0; i < job->buffer_count; i++) {
        const uint64_t address = (uint64_t)(uintptr_t)job->data[i];

        if (job->variant.dtypes[i])
            memcpy(block + layout->buffers[i], &address, sizeof(address));
    }
    for (uint32_t i = 0; i < layout->run_count; i++) {
        const struct cube_number_run *run = &layout->runs[i];

        pack_run(block + run->at, run, &job->numbers[number]);
        number += run->count;
    }
    assert(number == job->number_count);
}

/* For failures without a message: plugins link nothing of the core. */
static const char *words_of(hob_status status)
{
    return status == HOB_ERR_MEMORY   ? "no memory is left"
           : status == HOB_ERR_DEVICE ? "the device does no more work"
                                      : "the device failed";
}

hob_status cube_fail(const struct cube_device *device, struct hob_call *call,
                     hob_status status, char *message)
{
    status =
        message
            ? device->host->fail(call, status, "%s: %s", call->op_name, message)
            : device->host->fail(call, status, "%s: %s: %s", call->op_name,
                                 device->name, words_of(status));
    device->host->mem_free(device->host, message);
    return status;
}

/* Parameters that are too many to go along are in memory for one launch. */
static hob_status launch_far(struct cube_job *job,
                             const struct cube_kernel *kernel,
                             struct cube_launch *launch,
                             const unsigned char *block, char **out_message)
{
    const struct cube_runtime *runtime = job->device->runtime;
    struct cube_range ranges[CUBE_MAX_BUFFERS + 1];
    const uint64_t bytes = kernel->layout.bytes;
    void *data;
    hob_status st = runtime->alloc(job->device, bytes, &data);

    if (st)
        return st;
    st = runtime->upload(job->device, data, block, bytes);
    if (!st) {
        const uint64_t address = (uint64_t)(uintptr_t)data;

        memcpy(ranges, launch->ranges, launch->range_count * sizeof(ranges[0]));
        ranges[launch->range_count] = (struct cube_range){data, bytes, 0, 0};
        launch->ranges = ranges;
        launch->range_count++;
        launch->params = &address;
        launch->param_bytes = sizeof(address);
        st = runtime->launch(job->device, kernel->handle, launch, out_message);
    }
    runtime->free(job->device, data, bytes);
    return st;
}

/* Where a function in CUDA C has its parameters; the dialect's has one. */
static uint32_t places_of(const struct cube_kernel *kernel,
                          uint16_t places[CUBE_MAX_BUFFERS + CUBE_MAX_PARAMS])
{
    const struct cube_program *program = kernel->variant.program;
    uint32_t count = 0;

    if (program->language != CUBE_ONLY_CUDA)
        return 0;
    for (uint32_t i = 0; i < CUBE_MAX_BUFFERS && program->buffers[i].name; i++)
        places[count++] = kernel->layout.buffers[i];
    for (uint32_t i = 0; i < CUBE_MAX_PARAMS && program->params[i].name; i++)
        places[count++] = kernel->layout.params[i];
    return count;
}

hob_status cube_job_launch(struct cube_job *job,
                           const struct cube_kernel *kernel, int64_t groups,
                           const char *op_name, char **out_message)
{
    struct cube_device *device = job->device;
    _Alignas(16) unsigned char block[CUBE_MAX_PARAM_BYTES];
    uint16_t places[CUBE_MAX_BUFFERS + CUBE_MAX_PARAMS];
    struct cube_launch launch = {.op_name = op_name,
                                 .range_count = job->range_count,
                                 .ranges = job->ranges,
                                 .params = block,
                                 .places = places};

    if (groups > CUBE_OVER / job->each)
        groups = CUBE_OVER / job->each;
    launch.groups = groups < device->limits.groups ? (uint32_t)groups
                                                   : device->limits.groups;
    assert(kernel->layout.bytes <= sizeof(block));
    pack(job, &kernel->layout, block);
    launch.param_bytes = kernel->layout.bytes;
    launch.place_count = places_of(kernel, places);
    return kernel->layout.bytes > device->limits.param_bytes
               ? launch_far(job, kernel, &launch, block, out_message)
               : device->runtime->launch(device, kernel->handle, &launch,
                                         out_message);
}

hob_status cube_job_run(struct cube_job *job, int64_t groups)
{
    struct cube_device *device = job->device;
    const struct cube_kernel *kernel;
    char *message = NULL;
    hob_status st;

    if (groups <= 0)
        return HOB_OK;
    st = cube_kernels_get(device->kernels, &job->variant, &kernel, &message);
    if (!st)
        st = cube_job_launch(job, kernel, groups, job->call->op_name, &message);
    return st ? cube_fail(device, job->call, st, message) : HOB_OK;
}

int64_t cube_groups(const struct cube_device *device, int64_t count,
                    int64_t per_group)
{
    /* Enough for every processor to hide its waiting. */
    enum { PER_PROCESSOR = 16, UNKNOWN = 1024 };
    const int64_t most =
        device->limits.processors
            ? (int64_t)device->limits.processors * PER_PROCESSOR
            : UNKNOWN;
    const int64_t needed = cube_divide_up(count, per_group);

    return needed < most ? needed : most;
}

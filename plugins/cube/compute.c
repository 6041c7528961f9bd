/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute.c - kernels of extensions: a launch as a job.
 *
 * What comes from outside is checked here; jobs only assert.
 */
#include "compute.h"

#include "described.h"
#include "launch.h"
#include "scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One launch on its way: the job and whose it is. */
struct task {
    struct cube_device *device;
    struct hob_call *call;
    struct hob_cube_launch launch; /* a copy, as far as both sides know */
    const struct cube_described *kernel;
    struct cube_job job;
};

#define FAIL(task, status, ...)                                                \
    (task)->device->host->fail((task)->call, status, __VA_ARGS__)

static const char *runtime_name(uint32_t language)
{
    return language == CUBE_GLSL ? "cube-vulkan" : "cube-cuda";
}

/* ---- is it for this device? ---- */

static hob_status check_runtime(const struct task *task)
{
    static const struct {
        const char *name;
        uint32_t language; /* enum cube_language of its runtime */
    } programs[] = {[CUBE_ONLY_GLSL] = {"GLSL", CUBE_GLSL},
                    [CUBE_ONLY_SPIRV] = {"SPIR-V", CUBE_GLSL},
                    [CUBE_ONLY_CUDA] = {"CUDA C", CUBE_CUDA}};
    const struct cube_program *program = &task->kernel->program;
    const uint32_t here = task->device->runtime->language;
    uint32_t wanted;

    if (program->language == CUBE_PORTABLE)
        return HOB_OK;
    wanted = programs[program->language].language;
    if (wanted == here)
        return HOB_OK;
    return FAIL(task, HOB_ERR_PLUGIN,
                "%s: kernel %s is %s, which only %s runs; the tensors are on "
                "%s\n"
                "  to do     bring the tensors to %s with hob_to_device(), or "
                "have the extension ship the kernel in the portable dialect, "
                "or one for %s besides",
                task->call->op_name, program->name,
                programs[program->language].name, runtime_name(wanted),
                task->device->name, runtime_name(wanted), runtime_name(here));
}

static hob_status check_size(const struct task *task)
{
    const struct cube_program *program = &task->kernel->program;
    const struct cube_limits *limits = &task->device->limits;
    const uint32_t size = task->job.variant.group_size;
    const int whole = (program->flags & (CUBE_SUBGROUPS | CUBE_GROUPS)) != 0;

    if (size > limits->group_size)
        return FAIL(task, HOB_ERR_ARGUMENT,
                    "%s: kernel %s wants groups of %" PRIu32
                    " invocations, %s has at most %" PRIu32,
                    task->call->op_name, program->name, size,
                    task->device->name, limits->group_size);
    if (whole && size % limits->subgroup_size)
        return FAIL(task, HOB_ERR_ARGUMENT,
                    "%s: kernel %s uses subgroups, so its groups of %" PRIu32
                    " invocations must be multiples of the %" PRIu32
                    " that a subgroup has on %s",
                    task->call->op_name, program->name, size,
                    limits->subgroup_size, task->device->name);
    if (((program->flags & CUBE_USES_F64) && !limits->has_f64) ||
        ((program->flags & CUBE_USES_I64) && !limits->has_i64))
        return FAIL(task, HOB_ERR_DTYPE,
                    "%s: kernel %s computes in %s, %s "
                    "has none",
                    task->call->op_name, program->name,
                    (program->flags & CUBE_USES_F64) && !limits->has_f64
                        ? "f64"
                        : "64-bit integers",
                    task->device->name);
    return HOB_OK;
}

static hob_status check_count(const struct task *task, const char *what,
                              uint32_t count, uint32_t wanted, const void *list)
{
    if (count == wanted && (list || !count))
        return HOB_OK;
    return FAIL(task, HOB_ERR_ARGUMENT,
                "%s: kernel %s has %" PRIu32 " %s, the launch %" PRIu32 "%s",
                task->call->op_name, task->kernel->program.name, wanted, what,
                count, count && !list ? ", and no list of them" : "");
}

static hob_status check_counts(const struct task *task)
{
    const struct hob_cube_launch *launch = &task->launch;
    const struct cube_described *kernel = task->kernel;
    hob_status st = check_count(task, "buffers", launch->view_count,
                                kernel->buffer_count, launch->views);

    if (!st)
        st = check_count(task, "parameters", launch->number_count,
                         kernel->param_count, launch->numbers);
    if (!st)
        st = check_count(task, "constants", launch->constant_count,
                         kernel->constant_count, launch->constants);
    if (!st && launch->width_count)
        st = check_count(task, "buffers", launch->width_count,
                         kernel->buffer_count, launch->widths);
    return st;
}

/* ---- buffers and constants ---- */

static hob_status fill_buffers(struct task *task)
{
    const struct hob_cube_launch *launch = &task->launch;
    const struct cube_program *program = &task->kernel->program;

    for (uint32_t i = 0; i < launch->view_count; i++) {
        const struct hob_view *view = launch->views[i];
        const uint32_t width = launch->width_count ? launch->widths[i] : 1;

        if (view && !hob_dtype_size(view->dtype))
            return FAIL(task, HOB_ERR_DTYPE,
                        "%s: buffer %s of kernel %s is %s: kernels take "
                        "elements of a size",
                        task->call->op_name, program->buffers[i].name,
                        program->name, hob_dtype_name(view->dtype));
        if (!width || width > CUBE_MAX_WIDTH || (width & (width - 1)))
            return FAIL(task, HOB_ERR_ARGUMENT,
                        "%s: buffer %s of kernel %s has vectors of %" PRIu32
                        " elements: 1, 2, 4, 8 or 16 can be",
                        task->call->op_name, program->buffers[i].name,
                        program->name, width);
        task->job.variant.widths[i] = (uint8_t)width;
        if (view)
            cube_job_view(&task->job, view);
        else
            cube_job_absent(&task->job);
    }
    return HOB_OK;
}

/* The constants that say how long arrays are have bounds. */
static hob_status fill_constants(struct task *task)
{
    const struct cube_program *program = &task->kernel->program;
    uint32_t lengths = 0;

    for (uint32_t i = 0; i < task->kernel->param_count; i++)
        if (program->params[i].count & CUBE_LENGTH(0))
            lengths |= 1u << (program->params[i].count & 0xff);
    for (uint32_t i = 0; i < task->launch.constant_count; i++) {
        const int32_t number = task->launch.constants[i];

        if ((lengths & 1u << i) && (number < 0 || number > CUBE_MAX_NUMBERS))
            return FAIL(task, HOB_ERR_ARGUMENT,
                        "%s: constant %s of kernel %s is the length of an "
                        "array and cannot be %" PRId32,
                        task->call->op_name, program->constants[i],
                        program->name, number);
        cube_job_constant(&task->job, number);
    }
    if (program->symbols[0])
        cube_job_symbol(&task->job, task->kernel->kernel.accum);
    return HOB_OK;
}

/* ---- numbers ---- */

static hob_status refuse_number(const struct task *task, uint32_t index,
                                const char *why)
{
    return FAIL(task, HOB_ERR_ARGUMENT, "%s: parameter %s of kernel %s %s",
                task->call->op_name, task->kernel->program.params[index].name,
                task->kernel->program.name, why);
}

static int fits(enum cube_type type, const hob_value *number)
{
    const int64_t x = number->u.i64;

    if (number->tag == HOB_TAG_U64 && x < 0)
        return type == CUBE_U64;
    switch (type) {
    case CUBE_I32:
        return x >= INT32_MIN && x <= INT32_MAX;
    case CUBE_U32:
        return x >= 0 && x <= UINT32_MAX;
    case CUBE_U64:
        return x >= 0;
    default:
        return 1;
    }
}

/* NUMBER, a single one, as parameter INDEX. */
static hob_status fill_number(struct task *task, uint32_t index,
                              const hob_value *number)
{
    const struct cube_variant *variant = &task->job.variant;
    const uint32_t declared = variant->program->params[index].type;
    const int is_float = number->tag == HOB_TAG_F64;
    enum cube_type type;

    if (declared >= CUBE_VALUE) {
        const uint32_t dtype = variant->dtypes[declared - CUBE_VALUE];

        if (dtype == HOB_DTYPE_NONE)
            return refuse_number(task, index,
                                 "has the type of a buffer that is not there");
        cube_job_scalar(&task->job, number, dtype);
        return HOB_OK;
    }
    type = cube_type_of(variant, declared);
    if (type == CUBE_F32 || type == CUBE_F64)
        cube_job_f64(&task->job, is_float ? number->u.f64
                                 : number->tag == HOB_TAG_U64
                                     ? (double)number->u.u64
                                     : (double)number->u.i64);
    else if (is_float)
        return refuse_number(task, index, "is an integer, the number a float");
    else if (!fits(type, number))
        return refuse_number(task, index,
                             "has a type that the number does not fit");
    else
        cube_job_i64(&task->job, number->u.i64);
    return HOB_OK;
}

static hob_status fill_array(struct task *task, uint32_t index,
                             const hob_value *numbers, uint32_t count)
{
    hob_status st = HOB_OK;

    if (numbers->tag != HOB_TAG_I64S && numbers->tag != HOB_TAG_F64S)
        return refuse_number(task, index, "is an array, the number is none");
    if (numbers->count != count)
        return refuse_number(task, index,
                             "has another length than the numbers given");
    for (uint32_t i = 0; i < count && !st; i++) {
        const hob_value one = numbers->tag == HOB_TAG_I64S
                                  ? hob_i64(numbers->u.i64s[i])
                                  : hob_f64(numbers->u.f64s[i]);

        st = fill_number(task, index, &one);
    }
    return st;
}

static hob_status fill_numbers(struct task *task)
{
    const struct cube_program *program = &task->kernel->program;

    for (uint32_t i = 0; i < task->launch.number_count; i++) {
        const struct cube_param *param = &program->params[i];
        const hob_value *number = &task->launch.numbers[i];
        const uint32_t count = cube_param_count(&task->job.variant, param);
        hob_status st;

        if (task->job.number_count + count > CUBE_MAX_NUMBERS)
            return refuse_number(task, i, "is one number too many");
        switch (param->count ? HOB_TAG_I64S : number->tag) {
        case HOB_TAG_I64S:
        case HOB_TAG_F64S:
            st = param->count
                     ? fill_array(task, i, number, count)
                     : refuse_number(task, i, "is one number, not an array");
            break;
        case HOB_TAG_I64:
        case HOB_TAG_U64:
        case HOB_TAG_F64:
        case HOB_TAG_BOOL:
        case HOB_TAG_ENUM:
            st = fill_number(task, i, number);
            break;
        default:
            st = refuse_number(task, i, "is given what is no number");
        }
        if (st)
            return st;
    }
    return HOB_OK;
}

static hob_status check_params(const struct task *task)
{
    const struct cube_limits *limits = &task->device->limits;
    struct cube_layout layout;
    uint32_t most = CUBE_MAX_PARAM_BYTES;

    /* The dialect's own go through memory where they are too many. */
    if (task->kernel->program.language && limits->param_bytes < most)
        most = limits->param_bytes;
    cube_layout_init(&layout, &task->job.variant);
    if (layout.bytes <= most)
        return HOB_OK;
    return FAIL(task, HOB_ERR_ARGUMENT,
                "%s: the parameters of kernel %s are %" PRIu32
                " bytes; %s takes %" PRIu32,
                task->call->op_name, task->kernel->program.name, layout.bytes,
                task->device->name, most);
}

static hob_status find_kernel(struct task *task)
{
    const struct hob_cube_kernel *description = task->launch.kernel;
    char reason[CUBE_REASON];

    if (!description)
        return FAIL(task, HOB_ERR_ARGUMENT, "%s: a launch without a kernel",
                    task->call->op_name);
    task->kernel =
        cube_kernels_describe(task->device->kernels, description, reason);
    if (task->kernel)
        return HOB_OK;
    return reason[0]
               ? FAIL(task, HOB_ERR_ARGUMENT, "%s: kernel %s: %s",
                      task->call->op_name,
                      description->name ? description->name : "(no name)",
                      reason)
               : cube_fail(task->device, task->call, HOB_ERR_MEMORY, NULL);
}

#undef FAIL

/* ---- the interface ---- */

static hob_status launch(void *instance, struct hob_call *call,
                         const struct hob_cube_launch *launch)
{
    struct task task;
    hob_status st;

    memset(&task.launch, 0, sizeof(task.launch));
    memcpy(&task.launch, launch,
           launch->struct_size < sizeof(task.launch) ? launch->struct_size
                                                     : sizeof(task.launch));
    task.device = instance;
    task.call = call;
    st = find_kernel(&task);
    if (!st)
        st = check_runtime(&task);
    if (st)
        return st;
    cube_job_init(&task.job, task.device, call, &task.kernel->program);
    if (task.launch.group_size)
        task.job.variant.group_size = task.launch.group_size;
    st = check_size(&task);
    if (!st)
        st = check_counts(&task);
    if (!st)
        st = fill_buffers(&task);
    if (!st)
        st = fill_constants(&task);
    if (st)
        return st;
    cube_job_reach(&task.job, task.launch.reach);
    st = fill_numbers(&task);
    if (!st)
        st = check_params(&task);
    return st ? st : cube_job_run(&task.job, task.launch.groups);
}

static int64_t groups(void *instance, int64_t count, int64_t per_group)
{
    return cube_groups(instance, count, per_group);
}

static void tell_limits(void *instance, struct hob_cube_limits *out)
{
    const struct cube_device *device = instance;
    const struct hob_cube_limits limits = {
        .struct_size = out->struct_size,
        .runtime = device->runtime->language == CUBE_GLSL ? HOB_CUBE_ON_VULKAN
                                                          : HOB_CUBE_ON_CUDA,
        .group_size = device->limits.group_size,
        .groups = device->limits.groups,
        .shared_bytes = device->limits.shared_bytes,
        .subgroup_size = device->limits.subgroup_size,
        .processors = device->limits.processors,
        .param_bytes = device->limits.param_bytes,
        .has_f64 = device->limits.has_f64,
        .has_i64 = device->limits.has_i64,
        .memory_bytes = device->limits.memory_bytes,
        .device = device->name,
    };

    memcpy(out, &limits,
           out->struct_size < sizeof(limits) ? out->struct_size
                                             : sizeof(limits));
}

static hob_status memory_take(void *instance, uint64_t bytes, void **out_data)
{
    struct cube_device *device = instance;

    return device->runtime->alloc(device, bytes, out_data);
}

static void memory_give(void *instance, void *data, uint64_t bytes)
{
    struct cube_device *device = instance;

    device->runtime->free(device, data, bytes);
}

static hob_status read_memory(void *instance, void *host_data, const void *data,
                              uint64_t bytes)
{
    struct cube_device *device = instance;

    return device->runtime->download(device, host_data, data, bytes);
}

static const struct hob_cube_compute compute = {
    .struct_size = sizeof(compute),
    .version = HOB_CUBE_COMPUTE_VERSION,
    .launch = launch,
    .groups = groups,
    .limits = tell_limits,
    .memory_take = memory_take,
    .memory_give = memory_give,
    .read = read_memory,
    .gemm = cube_gemm,
};

const void *cube_compute_find(void *device, const char *name, uint32_t version)
{
    (void)device;
    return strcmp(name, HOB_CUBE_COMPUTE_NAME) == 0 &&
                   version == HOB_CUBE_COMPUTE_VERSION
               ? &compute
               : NULL;
}

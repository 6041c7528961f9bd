/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

#include "gpu_glue.h"

const struct hob_plugin *gpu_entry(const struct hob_host *host)
{
    return hob_plugin_entry(host);
}

enum { GROUP = 256 };

/* ---- portable ---- */

static const struct hob_cube_kernel scale = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .name = "gpu_scale",
    .code = "KERNEL()\n"
            "{\n"
            "    INDEX step = INDEX(GROUP_COUNT) * GROUP_SIZE;\n"
            "    INDEX i = INDEX(GROUP_X) * GROUP_SIZE + LOCAL_X;\n"
            "    for (; i < count; i += step)\n"
            "        STORE(y, i, LOAD(x, i) * alpha);\n"
            "}\n",
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0}, {"x", 0, 0}},
    .params = {{"count", HOB_CUBE_INDEX, 0},
               {"alpha", HOB_CUBE_VALUE_OF(1), 0}},
};

hob_status gpu_scale_cube(void *device, struct hob_call *call)
{
    const struct hob_view *views[] = {hob_ret_view(call, 0),
                                      hob_arg_view(call, 0)};
    const int64_t count = hob_view_count(views[1]);
    const hob_value numbers[] = {hob_i64(count), call->args[1]};
    void *instance;
    const struct hob_cube_compute *cube = hob_cube_find(call, &instance);
    struct hob_cube_launch launch = {
        HOB_CUBE_LAUNCH_INIT_HEAD, .kernel = &scale, .views = views,
        .numbers = numbers,        .view_count = 2,  .number_count = 2};

    (void)device;
    if (!cube)
        return HOB_ERR_PLUGIN;
    launch.groups = cube->groups(instance, count, GROUP);
    return cube->launch(instance, call, &launch);
}

/* All that a description can have: constants, arrays, shared memory, folds. */
static const struct hob_cube_kernel sums = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .name = "gpu_sums",
    .code = "KERNEL()\n"
            "{\n"
            "    for (INDEX row = GROUP_X; row < rows; row += GROUP_COUNT) {\n"
            "        float sum = 0.0f;\n"
            "        for (INDEX i = LOCAL_X; i < columns; i += GROUP_SIZE)\n"
            "            sum += LOAD(x, row * columns + i);\n"
            "        part[LOCAL_X] = m_exp(0.0f) * sum * weights[EXTRA - 2];\n"
            "        BARRIER();\n"
            "        sum = group_sum(part[GROUP_SIZE - 1 - LOCAL_X]);\n"
            "        if (LOCAL_X == 0)\n"
            "            STORE(y, row, sum);\n"
            "    }\n"
            "}\n",
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0}, {"x", 0, 0}},
    .params = {{"rows", HOB_CUBE_INDEX, 0},
               {"columns", HOB_CUBE_INDEX, 0},
               {"weights", HOB_CUBE_F32, HOB_CUBE_LENGTH(0)}},
    .shared = {{"part", "float", "GROUP_SIZE"}},
    .constants = {"EXTRA"},
    .accum = "float",
    .flags = HOB_CUBE_MATHS,
};

hob_status gpu_sums_cube(void *device, struct hob_call *call)
{
    static const double weights[] = {7, 1, 7};
    const struct hob_view *views[] = {hob_ret_view(call, 0),
                                      hob_arg_view(call, 0)};
    const int64_t rows = views[0]->shape[0];
    const int32_t extra = 3;
    const hob_value numbers[] = {
        hob_i64(rows), hob_i64(rows ? hob_view_count(views[1]) / rows : 0),
        hob_value_f64s(weights, 3)};
    struct hob_cube_limits limits = {.struct_size = sizeof(limits)};
    void *instance;
    const struct hob_cube_compute *cube = hob_cube_find(call, &instance);
    struct hob_cube_launch launch = {HOB_CUBE_LAUNCH_INIT_HEAD,
                                     .group_size = 64,
                                     .kernel = &sums,
                                     .groups = rows,
                                     .views = views,
                                     .numbers = numbers,
                                     .constants = &extra,
                                     .view_count = 2,
                                     .number_count = 3,
                                     .constant_count = 1};

    (void)device;
    if (!cube)
        return HOB_ERR_PLUGIN;
    cube->limits(instance, &limits);
    if (limits.group_size < 64 || 64 % limits.subgroup_size || !limits.device)
        return call->host->fail(call, HOB_ERR_INTERNAL, "odd limits");
    return cube->launch(instance, call, &launch);
}

/* ---- a runtime's own language ---- */

static const struct hob_cube_kernel twice_glsl = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .language = HOB_CUBE_GLSL,
    .name = "gpu_twice",
    .code = "#extension GL_EXT_buffer_reference : require\n"
            "layout(local_size_x = GROUP_SIZE) in;\n"
            "layout(buffer_reference, std430, buffer_reference_align = 4)\n"
            "    buffer Floats { float at[]; };\n"
            "layout(push_constant, std430) uniform Arguments {\n"
            "    Floats y;\n"
            "    Floats x;\n"
            "    int count;\n"
            "    float factor;\n"
            "};\n"
            "void main()\n"
            "{\n"
            "    uint i = gl_GlobalInvocationID.x;\n"
            "    for (; i < count; i += gl_NumWorkGroups.x * GROUP_SIZE)\n"
            "        y.at[i] = factor * x.at[i];\n"
            "}\n",
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0}, {"x", 0, 0}},
    .params = {{"count", HOB_CUBE_I32, 0}, {"factor", HOB_CUBE_F32, 0}},
};

static const struct hob_cube_kernel twice_cuda = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .language = HOB_CUBE_CUDA,
    .name = "gpu_twice",
    .code = "extern \"C\" __global__ void gpu_twice(\n"
            "    float *y, const float *x, int count, float factor)\n"
            "{\n"
            "    int i = blockIdx.x * GROUP_SIZE + threadIdx.x;\n"
            "    for (; i < count; i += gridDim.x * GROUP_SIZE)\n"
            "        y[i] = factor * x[i];\n"
            "}\n",
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0}, {"x", 0, 0}},
    .params = {{"count", HOB_CUBE_I32, 0}, {"factor", HOB_CUBE_F32, 0}},
};

/* twice_glsl, compiled. */
static const uint32_t twice_words[] = {
#include "gpu_twice.inc"
};

static const struct hob_cube_kernel twice_spirv = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .language = HOB_CUBE_SPIRV,
    .name = "gpu_twice",
    .code = twice_words,
    .code_bytes = sizeof(twice_words),
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0}, {"x", 0, 0}},
    .params = {{"count", HOB_CUBE_I32, 0}, {"factor", HOB_CUBE_F32, 0}},
};

static hob_status twice(struct hob_call *call,
                        const struct hob_cube_kernel *kernel)
{
    const struct hob_view *views[] = {hob_ret_view(call, 0),
                                      hob_arg_view(call, 0)};
    const int64_t count = hob_view_count(views[1]);
    const hob_value numbers[] = {hob_i64(count), hob_i64(2)};
    void *instance;
    const struct hob_cube_compute *cube = hob_cube_find(call, &instance);
    struct hob_cube_launch launch = {
        HOB_CUBE_LAUNCH_INIT_HEAD, .kernel = kernel, .views = views,
        .numbers = numbers,        .view_count = 2,  .number_count = 2};

    if (!cube)
        return HOB_ERR_PLUGIN;
    launch.groups = cube->groups(instance, count, GROUP);
    return cube->launch(instance, call, &launch);
}

hob_status gpu_twice_cube_vulkan(void *device, struct hob_call *call)
{
    (void)device;
    return twice(call, &twice_glsl);
}

hob_status gpu_twice_cube_cuda(void *device, struct hob_call *call)
{
    (void)device;
    return twice(call, &twice_cuda);
}

hob_status gpu_words_cube_vulkan(void *device, struct hob_call *call)
{
    (void)device;
    return twice(call, &twice_spirv);
}

hob_status gpu_on_cuda_cube_cuda(void *device, struct hob_call *call)
{
    (void)device;
    return twice(call, &twice_cuda);
}

hob_status gpu_foreign_cube(void *device, struct hob_call *call)
{
    struct hob_cube_limits limits = {.struct_size = sizeof(limits)};
    void *instance;
    const struct hob_cube_compute *cube = hob_cube_find(call, &instance);

    (void)device;
    if (!cube)
        return HOB_ERR_PLUGIN;
    cube->limits(instance, &limits);
    return twice(call, limits.runtime == HOB_CUBE_ON_VULKAN ? &twice_cuda
                                                            : &twice_glsl);
}

/* ---- what cannot be ---- */

static const struct hob_cube_kernel does_not_compile = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .name = "gpu_does_not_compile",
    .code = "KERNEL()\n"
            "{\n"
            "    STORE(y, 0, no_such_word);\n"
            "}\n",
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0}, {"x", 0, 0}},
    .params = {{"count", HOB_CUBE_INDEX, 0},
               {"alpha", HOB_CUBE_VALUE_OF(1), 0}},
};

static const struct hob_cube_kernel bad_name = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .name = "gpu_bad_name",
    .code = "KERNEL() {}\n",
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0}, {"x y", 0, 0}},
};

static const struct hob_cube_kernel bad_spirv = {
    HOB_CUBE_KERNEL_INIT_HEAD, .language = HOB_CUBE_SPIRV,
    .name = "gpu_bad_spirv",   .code = "no module of SPIR-V, but as long",
    .code_bytes = 32,
};

hob_status gpu_broken_cube(void *device, struct hob_call *call)
{
    const struct hob_view *views[] = {hob_ret_view(call, 0),
                                      hob_arg_view(call, 0)};
    hob_value numbers[] = {hob_i64(hob_view_count(views[1])), hob_f64(1)};
    static const uint8_t widths[] = {1, 3};
    static const int64_t array[] = {1, 2};
    struct hob_cube_kernel changed = scale;
    void *instance;
    const struct hob_cube_compute *cube = hob_cube_find(call, &instance);
    struct hob_cube_launch launch = {HOB_CUBE_LAUNCH_INIT_HEAD,
                                     .kernel = &scale,
                                     .groups = 1,
                                     .views = views,
                                     .numbers = numbers,
                                     .widths = widths,
                                     .view_count = 2,
                                     .number_count = 2};

    (void)device;
    if (!cube)
        return HOB_ERR_PLUGIN;
    switch (call->args[1].u.i64) {
    case GPU_DOES_NOT_COMPILE:
        launch.kernel = &does_not_compile;
        break;
    case GPU_ONE_BUFFER:
        launch.view_count = 1;
        break;
    case GPU_NO_NUMBER:
        launch.numbers = NULL;
        break;
    case GPU_FLOAT_FOR_INTEGER:
        numbers[0] = hob_f64(1);
        break;
    case GPU_TOO_LARGE:
        numbers[0] = hob_i64(INT64_C(1) << 40);
        break;
    case GPU_ARRAY:
        numbers[1] = hob_value_i64s(array, 2);
        break;
    case GPU_BAD_WIDTH:
        launch.width_count = 2;
        break;
    case GPU_BAD_GROUP:
        launch.group_size = 1 << 20;
        break;
    case GPU_BAD_NAME:
        launch.kernel = &bad_name;
        break;
    case GPU_BAD_SPIRV:
        launch.kernel = &bad_spirv;
        break;
    case GPU_NO_KERNEL:
        launch.kernel = NULL;
        break;
    default:
        launch.kernel = &changed;
        if (cube->launch(instance, call, &launch))
            return HOB_ERR_INTERNAL;
        changed.code = does_not_compile.code;
    }
    return cube->launch(instance, call, &launch);
}

/* ---- a family whose memory is the host's ---- */

static hob_status fill(struct hob_call *call, float number)
{
    float *y = hob_ret_view(call, 0)->data;

    for (int64_t i = 0; i < hob_view_count(hob_ret_view(call, 0)); i++)
        y[i] = number;
    return HOB_OK;
}

hob_status gpu_place_twin(void *device, struct hob_call *call)
{
    (void)device;
    return fill(call, 1);
}

hob_status gpu_place_twin_left(void *device, struct hob_call *call)
{
    (void)device;
    return fill(call, 2);
}

hob_status gpu_on_left_twin_left(void *device, struct hob_call *call)
{
    (void)device;
    return fill(call, 3);
}

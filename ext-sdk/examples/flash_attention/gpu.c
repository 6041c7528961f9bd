/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.c - flash.attention on GPUs: flash_attention.cube, one launch.
 *
 * Arguments come contiguous, their leading dimensions as they were: a matrix
 * is found by steps, 0 where it is shared. Rows of more than 128 values are
 * left to the body, and so are gradients.
 */
#define FLASH_PROTOTYPES_ONLY
#include "flash_attention_glue.h"

#include "job.h"

#include <hob/ext/cube.h>

/* The file as a string; the Makefile makes it. */
static const char text[] =
#include "flash_attention.cube.inc"
    ;

static const double log2_e = 1.4426950408889634;

enum { OUT, Q, K, V, MASK, BUFFERS };

/* ACROSS invocations share a row: a subgroup has at least so many. */
enum { ACROSS = 8, DOWN = 16, GROUP = ACROSS * DOWN, DEPTH = 16 };

static const struct hob_cube_kernel kernel = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .name = "flash_attention",
    .code = text,
    .buffers = {[OUT] = {"out", HOB_CUBE_WRITTEN, 0},
                [Q] = {"q", 0, 0},
                [K] = {"k", 0, 0},
                [V] = {"v", 0, 0},
                [MASK] = {"mask", 0, 0}},
    .params = {{"lead", HOB_CUBE_INDEX, HOB_CUBE_LENGTH(0)},
               {"q_steps", HOB_CUBE_INDEX, HOB_CUBE_LENGTH(0)},
               {"k_steps", HOB_CUBE_INDEX, HOB_CUBE_LENGTH(0)},
               {"v_steps", HOB_CUBE_INDEX, HOB_CUBE_LENGTH(0)},
               {"mask_steps", HOB_CUBE_INDEX, HOB_CUBE_LENGTH(0)},
               {"mask_row", HOB_CUBE_INDEX, 0},
               {"mask_column", HOB_CUBE_INDEX, 0},
               {"queries", HOB_CUBE_INDEX, 0},
               {"keys", HOB_CUBE_INDEX, 0},
               {"size", HOB_CUBE_INDEX, 0},
               {"value_size", HOB_CUBE_INDEX, 0},
               {"tiles", HOB_CUBE_INDEX, 0},
               {"batches", HOB_CUBE_INDEX, 0},
               {"factor", HOB_CUBE_F32, 0}},
    .shared = {{"rows", "vec4", "DEPTH * GROUP_SIZE / ACROSS * EACH_M / 4"},
               {"columns", "vec4",
                "DEPTH * ACROSS * (EACH_N > EACH_V ? EACH_N : EACH_V) / 4"},
               {"weights", "vec4", "GROUP_SIZE * EACH_M * EACH_N / 4"}},
    .constants = {"RANK", "ACROSS", "EACH_M", "EACH_N", "EACH_V", "DEPTH",
                  "MASKED", "CAUSAL"},
    .accum = "float",
    .flags = HOB_CUBE_SUBGROUPS | HOB_CUBE_MATHS,
};

/* How many rows, keys and values an invocation has. */
struct tiling {
    int32_t each_m, each_n, each_v;
};

/* Few queries want small tiles; so do wide values, whose sums take registers,
 * and devices with little shared memory. */
static struct tiling tiling_of(const struct hob_cube_limits *limits,
                               int64_t queries, int64_t values)
{
    struct tiling out = {8, 8, values <= 32 ? 4 : values <= 64 ? 8 : 16};

    if (queries <= DOWN * 4 || values > 64 || limits->shared_bytes < 48 << 10)
        out.each_m = out.each_n = 4;
    return out;
}

hob_status flash_attention_cube_prepare(void *device,
                                        const struct hob_call *call,
                                        struct hob_prepare *out)
{
    const struct hob_view *v = hob_arg_view(call, 2);
    void *instance = NULL;
    const struct hob_cube_compute *cube =
        call->host->interface(call->device, HOB_CUBE_COMPUTE_NAME,
                              HOB_CUBE_COMPUTE_VERSION, &instance);
    struct hob_cube_limits limits = {.struct_size = sizeof(limits)};

    (void)device;
    (void)out;
    if (!cube)
        return HOB_ERR_UNSUPPORTED;
    cube->limits(instance, &limits);
    return limits.subgroup_size >= ACROSS &&
                   v->shape[v->rank - 1] <= 16 * ACROSS
               ? HOB_OK
               : HOB_ERR_UNSUPPORTED;
}

/* The step along VIEW's dimension that is BACK from the end; 0 where it
 * repeats, or there is no view. */
static int64_t step_of(const struct hob_view *view, uint32_t back)
{
    return !view || view->rank < back || view->shape[view->rank - back] == 1
               ? 0
               : view->strides[view->rank - back];
}

/* Matrices of a call: where each operand's begin, for LEAD dimensions. */
struct matrices {
    uint32_t lead;
    int64_t steps[BUFFERS][HOB_MAX_RANK];
    int64_t count;
};

static void find_matrices(const struct hob_view *const *views,
                          struct matrices *out)
{
    out->lead = views[OUT]->rank - 2u;
    out->count = 1;
    for (uint32_t i = 0; i < out->lead; i++) {
        out->count *= views[OUT]->shape[i];
        for (int b = Q; b <= MASK; b++)
            out->steps[b][i] = step_of(views[b], out->lead + 2 - i);
    }
}

hob_status flash_attention_cube(void *device, struct hob_call *call)
{
    const struct hob_view *const views[BUFFERS] = {
        hob_ret_view(call, 0), hob_arg_view(call, 0), hob_arg_view(call, 1),
        hob_arg_view(call, 2), hob_arg_view(call, 3)};
    const struct hob_view *out = views[OUT];
    const int64_t queries = out->shape[out->rank - 2];
    const int64_t values = out->shape[out->rank - 1];
    const int64_t keys = views[K]->shape[views[K]->rank - 2];
    const int64_t size = views[Q]->shape[views[Q]->rank - 1];
    struct hob_cube_limits limits = {.struct_size = sizeof(limits)};
    void *instance = NULL;
    const struct hob_cube_compute *cube = hob_cube_find(call, &instance);
    struct matrices matrices;
    struct tiling tiling;
    int64_t tiles;

    (void)device;
    if (!cube)
        return HOB_ERR_PLUGIN;
    cube->limits(instance, &limits);
    tiling = tiling_of(&limits, queries, values);
    tiles = (queries + DOWN * tiling.each_m - 1) / (DOWN * tiling.each_m);
    find_matrices(views, &matrices);

    const hob_value numbers[] = {
        hob_value_i64s(out->shape, matrices.lead),
        hob_value_i64s(matrices.steps[Q], matrices.lead),
        hob_value_i64s(matrices.steps[K], matrices.lead),
        hob_value_i64s(matrices.steps[V], matrices.lead),
        hob_value_i64s(matrices.steps[MASK], matrices.lead),
        hob_i64(step_of(views[MASK], 2)),
        hob_i64(step_of(views[MASK], 1)),
        hob_i64(queries),
        hob_i64(keys),
        hob_i64(size),
        hob_i64(values),
        hob_i64(tiles),
        hob_i64(matrices.count),
        hob_f64(flash_scale(&call->args[4], size) * log2_e)};
    const int32_t constants[] = {
        (int32_t)matrices.lead, ACROSS,
        tiling.each_m,          tiling.each_n,
        tiling.each_v,          DEPTH,
        views[MASK] != NULL,    call->args[5].u.i64 != 0};
    const struct hob_cube_launch launch = {
        HOB_CUBE_LAUNCH_INIT_HEAD,
        .kernel = &kernel,
        .group_size = GROUP,
        .groups = values ? tiles * matrices.count : 0,
        .views = views,
        .view_count = BUFFERS,
        .numbers = numbers,
        .number_count = sizeof(numbers) / sizeof(numbers[0]),
        .constants = constants,
        .constant_count = sizeof(constants) / sizeof(constants[0]),
        .reach = queries + keys + size + 4096,
    };

    return cube->launch(instance, call, &launch);
}

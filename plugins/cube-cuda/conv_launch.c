/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_launch.h"

#include "texts.h"

#include <cube/cube.h>
#include <cube/launch.h>
#include <cube/splits.h>

#include <stddef.h>
#include <string.h>

/* CUDA's enumerations, as documented. */
enum {
    TYPE_F16 = 6, /* CUtensorMapDataType */
    TYPE_BF16 = 9,
    SWIZZLE_128B = 3,
    PROMOTION_128B = 2,
    BOX_RANK = 5, /* of sm90.cu's copies of boxes */
    PLANES_RANK = 4,
    CHUNK = 64,                /* channels */
    GROUP_SIZE = 2 * 128 + 32, /* two warpgroups and a warp */
    SPLITS_MOST = 64,
    STEPS_LEAST = 8 /* of a split */
};

#define COMMON(text_)                                                          \
    .text = text_, .symbols = {"ELEMENT"}, .flags = CUBE_TIED,                 \
    .language = CUBE_ONLY_CUDA,                                                \
    .libraries = {cube_text_conv_params, cube_text_sm90,                       \
                  cube_text_conv_places}

static const struct cube_program product_program = {
    .name = "conv_sm90",
    .constants = {"TILE_M", "TILE_N", "STAGES", "BLOCKS", "VECTOR"},
    COMMON(cube_text_conv_sm90),
};

static const struct cube_program weight_program = {
    .name = "conv_weight_sm90",
    .constants = {"TILE_M", "TILE_N", "STAGES", "BLOCKS", "IS_POINT"},
    COMMON(cube_text_conv_weight_sm90),
};

static const struct cube_program pack_program = {
    .name = "conv_pack",
    .constants = {"STAGES"},
    COMMON(cube_text_conv_pack),
};

static const struct cube_program finish_program = {
    .name = "conv_finish",
    .constants = {"STAGES"},
    COMMON(cube_text_conv_finish),
};

#undef COMMON

/* What products are given. */
struct block {
    struct ccu_tensor_map maps[CONV_MAPS];
    struct conv_params params;
};

/* How a product is cut. */
struct tiling {
    int32_t rows, columns, stages;
    int32_t blocks; /* on a processor */
};

static hob_status launch(struct ccu_conv_run *run, struct cube_variant *variant,
                         struct cube_launch *launch)
{
    struct cube_device *cube = &run->device->cube;
    const struct cube_kernel *kernel;
    hob_status status;

    launch->op_name = run->op_name;
    variant->symbols[0] = run->dtype == HOB_DTYPE_F16 ? "\"f16\"" : "\"bf16\"";
    status = cube_kernels_get(cube->kernels, variant, &kernel, &run->message);
    return status ? status
                  : cube->runtime->launch(cube, kernel->handle, launch,
                                          &run->message);
}

/* ---- packing and adding up ---- */

hob_status ccu_conv_pack(struct ccu_conv_run *run,
                         struct ccu_planes *const *planes, uint32_t count)
{
    struct conv_packs packs;
    struct cube_variant variant;
    struct cube_launch job = {
        .params = &packs,
        .param_bytes = sizeof(packs),
        .shared_bytes = CONV_PACK_WORDS * sizeof(uint32_t)};
    uint32_t used = 0;

    memset(&packs, 0, sizeof(packs));
    for (uint32_t i = 0; i < count; i++)
        if (planes[i]->bytes) {
            packs.pack[used++] = planes[i]->pack;
            job.groups += (uint32_t)planes[i]->pack.groups;
        }
    if (!used)
        return HOB_OK;
    cube_variant_init(&variant, &pack_program);
    variant.constants[0] = 1;
    variant.group_size = CUBE_GROUP_SIZE;
    return launch(run, &variant, &job);
}

hob_status ccu_conv_finish(struct ccu_conv_run *run,
                           const struct conv_finish_params *params)
{
    struct cube_launch job = {.params = params, .param_bytes = sizeof(*params)};
    struct cube_variant variant;

    cube_variant_init(&variant, &finish_program);
    variant.constants[0] = 1;
    variant.group_size = CUBE_GROUP_SIZE;
    job.groups = (uint32_t)cube_groups(&run->device->cube, params->count,
                                       CUBE_GROUP_SIZE);
    return launch(run, &variant, &job);
}

/* ---- maps ---- */

static int type_of(const struct ccu_conv_run *run)
{
    return run->dtype == HOB_DTYPE_F16 ? TYPE_F16 : TYPE_BF16;
}

/* PLANES in boxes of ROWS along their second dimension. */
static int map_boxes(const struct ccu_conv_run *run,
                     const struct ccu_planes *planes, int32_t rows,
                     struct ccu_tensor_map *out)
{
    static const uint32_t steps[BOX_RANK] = {1, 1, 1, 1, 1};
    const uint64_t *sizes = planes->sizes, *strides = planes->strides;
    const uint64_t all[BOX_RANK] = {sizes[0], sizes[1], sizes[2], sizes[3], 1};
    const uint64_t apart[BOX_RANK - 1] = {strides[0], strides[1], strides[2],
                                          strides[2]};
    const uint32_t box[BOX_RANK] = {CHUNK, (uint32_t)rows, 1, 1, 1};

    return run->device->driver->tensor_map(
        out, type_of(run), BOX_RANK, planes->pack.to, all, apart, box, steps, 0,
        SWIZZLE_128B, PROMOTION_128B, 0);
}

/* PLANES as JOB's taps meet them, so many PLACES at once. */
static int map_places(const struct ccu_conv_run *run,
                      const struct conv_params *job,
                      const struct ccu_planes *planes, int32_t places,
                      struct ccu_tensor_map *out)
{
    const uint32_t steps[PLANES_RANK] = {1, (uint32_t)job->step[1],
                                         (uint32_t)job->step[0], 1};
    int low[2] = {0, 0}, high[2] = {0, 0};

    /* The width comes first here. Without taps nothing is copied. */
    for (uint32_t i = 0; i < 2 && job->taps[0] && job->taps[1]; i++) {
        low[i] = job->first[1 - i];
        high[i] = low[i] + (job->sizes[1 - i] - 1) * job->step[1 - i] + 1 -
                  (int)planes->sizes[1 + i];
    }
    return run->device->driver->tensor_map_im2col(
        out, type_of(run), PLANES_RANK, planes->pack.to, planes->sizes,
        planes->strides, low, high, CHUNK, (uint32_t)places, steps, 0,
        SWIZZLE_128B, PROMOTION_128B, 0);
}

static hob_status launch_product(struct ccu_conv_run *run,
                                 struct cube_variant *variant,
                                 struct block *block,
                                 const struct tiling *tiling, int result)
{
    static const uint16_t places[] = {0, sizeof(struct ccu_tensor_map),
                                      offsetof(struct block, params)};
    const uint32_t bytes_k = (uint32_t)(tiling->rows + tiling->columns) * 128;
    struct cube_launch job = {.params = block,
                              .param_bytes = sizeof(*block),
                              .place_count = 3,
                              .places = places,
                              .shared_bytes =
                                  (uint32_t)tiling->stages * (bytes_k + 16)};

    if (result)
        return ccu_check(run->device, "cuTensorMapEncode", result,
                         &run->message);
    /* Tiles of the next task are brought while one is stored. */
    job.groups =
        (uint32_t)(cube_processors(&run->device->cube) * tiling->blocks);
    if (job.groups > (uint32_t)block->params.tasks)
        job.groups = (uint32_t)block->params.tasks;
    variant->group_size = GROUP_SIZE;
    variant->constants[0] = tiling->rows;
    variant->constants[1] = tiling->columns;
    variant->constants[2] = tiling->stages;
    variant->constants[3] = tiling->blocks;
    return launch(run, variant, &job);
}

/* ---- products ---- */

static int64_t places_of(const struct conv_params *job)
{
    return (int64_t)job->images * job->sizes[0] * job->sizes[1];
}

static struct tiling tiling_of(const struct ccu_conv_run *run,
                               const struct conv_params *job)
{
    static const struct tiling few_rows = {64, 256, 4, 1};
    static const struct tiling large = {128, 256, 4, 1};
    static const struct tiling small = {128, 128, 3, 2};
    const int64_t tasks =
        cube_divide_up(job->rows, 128) * cube_divide_up(places_of(job), 256);

    if (job->rows <= 64)
        return few_rows;
    return tasks >= 2 * (int64_t)run->device->cube.limits.processors ? large
                                                                     : small;
}

/* How many places lie together in the result, up to 8. */
static int32_t vector_of(const struct conv_params *job)
{
    const int64_t plane = (int64_t)job->sizes[0] * job->sizes[1];
    int32_t vector = 8;

    if (job->out_step[1] != 1 || job->out_step[0] != job->sizes[1])
        return 1;
    while (plane % vector != 0 ||
           (uintptr_t)job->result % ((uintptr_t)vector * 2) != 0)
        vector /= 2;
    return vector;
}

hob_status ccu_conv_multiply(struct ccu_conv_run *run, struct conv_params *job,
                             const struct ccu_planes *rows,
                             const struct ccu_planes *planes)
{
    const struct tiling tiling = tiling_of(run, job);
    struct cube_variant variant;
    struct block block;
    int result, is_pushed;

    job->tiles_rows = (int)cube_divide_up(job->rows, tiling.rows);
    job->tasks =
        (int)(job->tiles_rows * cube_divide_up(places_of(job), tiling.columns));
    memset(&block, 0, sizeof(block));
    block.params = *job;
    is_pushed = ccu_enter(run->device);
    result = map_boxes(run, rows, tiling.rows, &block.maps[CONV_ROWS]);
    if (!result)
        result = map_places(run, job, planes, tiling.columns,
                            &block.maps[CONV_PLACES]);
    ccu_leave(run->device, is_pushed);
    cube_variant_init(&variant, &product_program);
    variant.constants[4] = vector_of(job);
    return launch_product(run, &variant, &block, &tiling, result);
}

/* ---- the gradient of weights ---- */

static struct tiling weight_tiling_of(const struct conv_params *job)
{
    static const struct tiling few_rows = {64, 256, 4, 1};
    static const struct tiling many_rows = {128, 128, 3, 2};

    return job->rows <= 64 ? few_rows : many_rows;
}

void ccu_conv_split(const struct ccu_conv_run *run, struct conv_params *job)
{
    const struct tiling tiling = weight_tiling_of(job);
    const int64_t steps = job->image_steps
                              ? (int64_t)job->images * job->image_steps
                              : cube_divide_up(places_of(job), CHUNK);
    const int64_t slabs = (int64_t)job->taps[0] * job->taps[1] * job->chunks;
    const int64_t tiles = cube_divide_up(job->rows, tiling.rows) *
                          cube_divide_up(slabs, tiling.columns / CHUNK);
    int64_t splits =
        cube_processors(&run->device->cube) * tiling.blocks / tiles;

    if (splits > steps / STEPS_LEAST)
        splits = steps / STEPS_LEAST;
    if (splits > SPLITS_MOST)
        splits = SPLITS_MOST;
    if (splits < 1)
        splits = 1;
    job->steps = (int)steps;
    job->split_steps = (int)cube_divide_up(steps, splits);
    job->splits = (int)cube_divide_up(steps, job->split_steps);
    job->tiles_rows = (int)cube_divide_up(job->rows, tiling.rows);
    job->tasks = (int)(tiles * job->splits);
}

hob_status ccu_conv_multiply_weight(struct ccu_conv_run *run,
                                    struct conv_params *job,
                                    const struct ccu_planes *rows,
                                    const struct ccu_planes *planes)
{
    const struct tiling tiling = weight_tiling_of(job);
    const int is_point = job->image_steps > 0;
    struct ccu_planes line = *rows;
    struct cube_variant variant;
    struct block block;
    int result, is_pushed;

    memset(&block, 0, sizeof(block));
    block.params = *job;
    /* Places of gradients one after the other, whatever their image. */
    line.sizes[1] = (uint64_t)places_of(job);
    line.sizes[2] = line.sizes[3] = 1;
    is_pushed = ccu_enter(run->device);
    result = map_boxes(run, is_point ? rows : &line,
                       is_point ? tiling.rows : CHUNK, &block.maps[CONV_ROWS]);
    if (!result)
        result = is_point ? map_boxes(run, planes, tiling.columns,
                                      &block.maps[CONV_PLACES])
                          : map_places(run, job, planes, CHUNK,
                                       &block.maps[CONV_PLACES]);
    ccu_leave(run->device, is_pushed);
    cube_variant_init(&variant, &weight_program);
    variant.constants[4] = is_point;
    return launch_product(run, &variant, &block, &tiling, result);
}

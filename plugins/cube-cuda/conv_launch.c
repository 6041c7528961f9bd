/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_launch.h"

#include "texts.h"

#include <cube/launch.h>
#include <cube/splits.h>

#include <string.h>

/* CUDA's enumerations, as documented. */
enum {
    TYPE_F16 = 6, /* CUtensorMapDataType */
    TYPE_BF16 = 9,
    SWIZZLE_128B = 3,
    PROMOTION_128B = 2,
    BOX_RANK = 5, /* of sm90.cu's copies of boxes */
    PLANES_RANK = 4,
    GROUP_SIZE = 2 * 128 + 32 /* two warpgroups and a warp */
};

#define COMMON(text_, tile_)                                                   \
    .text = text_, .symbols = {"ELEMENT"}, .flags = CUBE_TIED,                 \
    .language = CUBE_ONLY_CUDA,                                                \
    .libraries = {cube_text_conv_params, cube_text_sm90,                       \
                  cube_text_conv_places, tile_}

const struct cube_program ccu_conv_product_program = {
    .name = "conv_sm90",
    .constants = {"PARTS", "STAGES", "TILE_M", "TILE_N", "BLOCKS", "VECTOR"},
    COMMON(cube_text_conv_sm90, cube_text_conv_tile),
};

const struct cube_program ccu_conv_pairs_program = {
    .name = "conv_pairs_sm90",
    .constants = {"PARTS", "STAGES", "TILE_M", "TILE_N", "BLOCKS", "VECTOR"},
    COMMON(cube_text_conv_pairs_sm90, cube_text_conv_tile),
};

const struct cube_program ccu_conv_weight_program = {
    .name = "conv_weight_sm90",
    .constants = {"PARTS", "STAGES", "TILE_M", "TILE_N", "BLOCKS", "IS_POINT"},
    COMMON(cube_text_conv_weight_sm90, NULL),
};

static const struct cube_program pack_program = {
    .name = "conv_pack",
    .constants = {"PARTS", "STAGES"},
    COMMON(cube_text_conv_pack, NULL),
};

static const struct cube_program finish_program = {
    .name = "conv_finish",
    .constants = {"PARTS", "STAGES"},
    COMMON(cube_text_conv_finish, NULL),
};

#undef COMMON

static hob_status launch(struct ccu_conv_run *run, struct cube_variant *variant,
                         struct cube_launch *launch)
{
    struct cube_device *cube = &run->device->cube;
    const struct cube_kernel *kernel;
    hob_status status;

    launch->op_name = run->op_name;
    variant->constants[0] = run->parts;
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
    struct cube_launch job = {.params = &packs,
                              .param_bytes = sizeof(packs),
                              .shared_bytes = CONV_PACK_WORDS *
                                              sizeof(uint32_t) *
                                              (uint32_t)run->parts};
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
    variant.constants[1] = 1;
    variant.group_size = CUBE_GROUP_SIZE;
    return launch(run, &variant, &job);
}

hob_status ccu_conv_finish(struct ccu_conv_run *run,
                           const struct conv_finish_params *params)
{
    struct cube_launch job = {.params = params, .param_bytes = sizeof(*params)};
    struct cube_variant variant;

    cube_variant_init(&variant, &finish_program);
    variant.constants[1] = 1;
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

int ccu_conv_map_boxes(const struct ccu_conv_run *run,
                       const struct ccu_planes *planes, int32_t rows,
                       struct ccu_tensor_map *out)
{
    static const uint32_t steps[BOX_RANK] = {1, 1, 1, 1, 1};
    const uint64_t *sizes = planes->sizes, *strides = planes->strides;
    const uint64_t all[BOX_RANK] = {sizes[0], sizes[1], sizes[2], sizes[3], 1};
    const uint64_t apart[BOX_RANK - 1] = {strides[0], strides[1], strides[2],
                                          strides[2]};
    const uint32_t box[BOX_RANK] = {CCU_CONV_CHUNK, (uint32_t)rows, 1, 1, 1};

    return run->device->driver->tensor_map(
        out, type_of(run), BOX_RANK, planes->pack.to, all, apart, box, steps, 0,
        SWIZZLE_128B, PROMOTION_128B, 0);
}

int ccu_conv_map_places(const struct ccu_conv_run *run,
                        const struct conv_params *job,
                        const struct ccu_planes *planes, int32_t places,
                        struct ccu_tensor_map *out)
{
    int result = 0;
    const uint32_t steps[PLANES_RANK] = {1, (uint32_t)job->step[1],
                                         (uint32_t)job->step[0], 1};
    int low[2] = {0, 0}, high[2] = {0, 0};

    /* The width comes first here. Without taps nothing is copied. */
    for (uint32_t i = 0; i < 2 && job->taps[0] && job->taps[1]; i++) {
        low[i] = job->first[1 - i];
        high[i] = low[i] + (job->sizes[1 - i] - 1) * job->step[1 - i] + 1 -
                  (int)planes->sizes[1 + i];
    }
    for (int32_t p = 0; p < planes->parts && !result; p++)
        result = run->device->driver->tensor_map_im2col(
            &out[p], type_of(run), PLANES_RANK,
            (char *)planes->pack.to + p * planes->pack.part * 2, planes->sizes,
            planes->strides, low, high, CCU_CONV_CHUNK, (uint32_t)places, steps,
            0, SWIZZLE_128B, PROMOTION_128B, 0);
    return result;
}

hob_status ccu_conv_launch_product(struct ccu_conv_run *run,
                                   struct cube_variant *variant,
                                   struct cube_launch *job, int tasks,
                                   const struct ccu_conv_tiling *tiling,
                                   int result)
{
    const uint32_t bytes_k =
        (uint32_t)((tiling->rows + tiling->columns) * 128 * run->parts);

    job->shared_bytes = (uint32_t)tiling->stages * (bytes_k + 16);
    if (result)
        return ccu_check(run->device, "cuTensorMapEncode", result,
                         &run->message);
    /* Tiles of the next task are brought while one is stored. */
    job->groups =
        (uint32_t)(cube_processors(&run->device->cube) * tiling->blocks);
    if (job->groups > (uint32_t)tasks)
        job->groups = (uint32_t)tasks;
    variant->group_size = GROUP_SIZE;
    variant->constants[1] = tiling->stages;
    variant->constants[2] = tiling->rows;
    variant->constants[3] = tiling->columns;
    variant->constants[4] = tiling->blocks;
    return launch(run, variant, job);
}

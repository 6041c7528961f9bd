/* SPDX-License-Identifier: Apache-2.0 */
#include "attention_pass.h"

#include <stddef.h>
#include <string.h>

/* CUDA's enumerations, as documented. */
enum {
    TYPE_F16 = 6, /* CUtensorMapDataType */
    TYPE_BF16 = 9,
    SWIZZLE_128B = 3,
    PROMOTION_128B = 2,
    RANK = ATTENTION_LEAD + 2,
    SLAB_ELEMENTS = 64, /* as in sm90.cu */
    ROWS = 64,          /* of a product */
    WARPGROUP = 128
};

/* What a kernel is given, without the maps that it has not. */
struct block {
    struct ccu_tensor_map maps[ATTENTION_MAPS];
    struct attention_params params;
};

static int is_key(uint32_t operand)
{
    return operand == ATTENTION_KEY || operand == ATTENTION_VALUE;
}

/* The map of operand INDEX, copied in boxes of ROWS rows. */
static hob_status map_operand(const struct ccu_attention *job, uint32_t index,
                              int32_t rows, struct ccu_tensor_map *out,
                              char **out_message)
{
    static const uint32_t steps[RANK] = {1, 1, 1, 1, 1};
    const struct hob_view *view = job->views[index];
    const uint32_t box[RANK] = {SLAB_ELEMENTS, (uint32_t)rows, 1, 1, 1};
    const uint64_t row_bytes = (uint64_t)job->row_strides[index] * 2;
    uint64_t sizes[RANK] = {(uint64_t)job->width, (uint64_t)job->rows[index]};
    uint64_t strides[RANK - 1] = {row_bytes};

    /* The innermost comes first here. */
    for (uint32_t k = 0; k < ATTENTION_LEAD; k++) {
        const int64_t stride = job->strides[index][ATTENTION_LEAD - 1 - k];

        sizes[2 + k] =
            stride ? (uint64_t)job->params.lead[ATTENTION_LEAD - 1 - k] : 1;
        strides[1 + k] = stride ? (uint64_t)stride * 2 : row_bytes;
    }
    return ccu_check(job->device, "cuTensorMapEncodeTiled",
                     job->device->driver->tensor_map(
                         out,
                         view->dtype == HOB_DTYPE_F16 ? TYPE_F16 : TYPE_BF16,
                         RANK, view->data, sizes, strides, box, steps, 0,
                         SWIZZLE_128B, PROMOTION_128B, 0),
                     out_message);
}

/* Map the operands of PASS; *OUT_COUNT of them. */
static hob_status map_operands(struct ccu_attention *job,
                               const struct ccu_pass *pass, struct block *out,
                               uint32_t *out_count, char **out_message)
{
    const int is_pushed = ccu_enter(job->device);
    hob_status status = HOB_OK;

    *out_count = 0;
    for (uint32_t i = 0; i < ATTENTION_MAPS && !status; i++)
        if (pass->operands >> i & 1)
            status = map_operand(job, i,
                                 is_key(i) == is_key(pass->rows) ? pass->block
                                                                 : pass->tile,
                                 &out->maps[(*out_count)++], out_message);
    ccu_leave(job->device, is_pushed);
    return status;
}

static void variant_init(struct cube_variant *out,
                         const struct ccu_attention *job,
                         const struct ccu_pass *pass)
{
    cube_variant_init(out, pass->program);
    out->constants[0] = (int32_t)job->width;
    out->constants[1] = pass->tile;
    out->constants[2] = pass->stages;
    out->constants[3] = job->is_causal;
    out->constants[4] = job->mask_kind;
    out->constants[5] = pass->each;
    out->group_size =
        pass->group_size
            ? pass->group_size
            : (uint32_t)(pass->block / (ROWS * pass->each) + 1) * WARPGROUP;
    out->symbols[0] =
        job->views[0]->dtype == HOB_DTYPE_F16 ? "\"f16\"" : "\"bf16\"";
}

hob_status ccu_attention_pass(struct ccu_attention *job, const char *op_name,
                              const struct ccu_pass *pass,
                              const struct ccu_extent *extent,
                              char **out_message)
{
    struct cube_device *cube = &job->device->cube;
    struct block block;
    uint16_t places[ATTENTION_MAPS + 1];
    struct cube_launch launch = {.op_name = op_name,
                                 .params = &block,
                                 .param_bytes = sizeof(block),
                                 .places = places,
                                 .shared_bytes = ATTENTION_SHARED_BYTES};
    const struct cube_kernel *kernel;
    struct cube_variant variant;
    uint32_t maps;
    hob_status status;

    job->params.first = (int)extent->first;
    job->params.blocks =
        (int)cube_divide_up(extent->end - extent->row, pass->block);
    job->params.tasks = (int)(job->params.blocks * extent->count);
    memset(&block, 0, sizeof(block));
    block.params = job->params;
    status = map_operands(job, pass, &block, &maps, out_message);
    if (status)
        return status;
    for (uint32_t i = 0; i < maps; i++)
        places[i] = (uint16_t)(i * sizeof(block.maps[0]));
    places[maps] = offsetof(struct block, params);
    launch.place_count = maps + 1;
    launch.groups = (uint32_t)job->params.tasks;
    if (pass->is_persistent && launch.groups > cube->limits.processors)
        launch.groups = cube->limits.processors;
    if (launch.groups > cube->limits.groups)
        launch.groups = cube->limits.groups;
    variant_init(&variant, job, pass);
    status = cube_kernels_get(cube->kernels, &variant, &kernel, out_message);
    return status ? status
                  : cube->runtime->launch(cube, kernel->handle, &launch,
                                          out_message);
}

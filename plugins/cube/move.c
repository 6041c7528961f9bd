/* SPDX-License-Identifier: Apache-2.0 */
#include "move.h"

#include "texts.h"

static const struct cube_program program = {
    .name = "move",
    .text = cube_text_move,
    .buffers = {{"out", CUBE_WRITTEN}, {"x", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("out"),
               CUBE_OPERAND_PARAMS("x")},
    .constants = {"RANK"},
    .flags = CUBE_SPACES,
};

uint32_t cube_bits_dtype(uint32_t size)
{
    return size == 8   ? HOB_DTYPE_U64
           : size == 4 ? HOB_DTYPE_U32
           : size == 2 ? HOB_DTYPE_U16
                       : HOB_DTYPE_U8;
}

int cube_space_takes(const struct cube_space *space, uint32_t index,
                     uint32_t width)
{
    const uint32_t last = space->rank - 1;
    const uint32_t bytes = width * hob_dtype_size(space->dtypes[index]);

    if (space->rank == 0 || space->strides[index][last] != 1 ||
        space->sizes[last] % width ||
        (uint64_t)(uintptr_t)space->data[index] % (bytes < 16 ? bytes : 16))
        return 0;
    for (uint32_t i = 0; i < last; i++)
        if (space->strides[index][i] % width)
            return 0;
    return 1;
}

void cube_space_widen(struct cube_space *space, uint32_t width)
{
    const uint32_t last = space->rank - 1;

    if (width == 1)
        return;
    space->sizes[last] /= width;
    space->count /= width;
    for (uint32_t i = 0; i < space->operand_count; i++)
        space->strides[i][last] *= width;
}

hob_status cube_move(struct cube_device *device, struct hob_call *call,
                     const struct hob_view *out, const struct hob_view *in)
{
    const uint32_t size = hob_dtype_size(out->dtype);
    struct cube_space space;
    struct cube_job job;
    uint32_t width = 16 / size;
    int is_dense;

    cube_space_init(&space, out->rank, out->shape);
    cube_space_add(&space, out);
    cube_space_add(&space, in);
    space.dtypes[0] = space.dtypes[1] = cube_bits_dtype(size);
    if (space.count == 0)
        return HOB_OK;
    cube_space_collapse(&space);
    while (width > 1 && !(cube_space_takes(&space, 0, width) &&
                          cube_space_takes(&space, 1, width)))
        width /= 2;
    is_dense = cube_space_is_dense(&space, 0) && cube_space_is_dense(&space, 1);
    cube_job_init(&job, device, call, &program);
    cube_job_operand(&job, &space, 0);
    cube_job_operand(&job, &space, 1);
    job.variant.widths[0] = job.variant.widths[1] = (uint8_t)width;
    cube_space_widen(&space, width);
    if (is_dense)
        space.rank = 0;
    cube_job_i64(&job, space.count);
    cube_job_space(&job, &space);
    cube_job_strides(&job, &space, 0);
    cube_job_strides(&job, &space, 1);
    cube_job_constant(&job, (int32_t)space.rank);
    return cube_job_run(&job,
                        cube_groups(device, space.count, CUBE_GROUP_SIZE));
}

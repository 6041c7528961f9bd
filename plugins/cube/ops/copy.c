/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"

#include "map.h"

#include "../texts.h"

/* Elements are moved as integers of their size, so that NaN keeps its bits. */
static uint32_t moved_as(uint32_t dtype)
{
    switch (hob_dtype_size(dtype)) {
    case 1:
        return HOB_DTYPE_U8;
    case 2:
        return HOB_DTYPE_U16;
    case 4:
        return HOB_DTYPE_U32;
    default:
        return HOB_DTYPE_U64;
    }
}

/* ---- neighbours along different dimensions ---- */

enum { TILE = 32, TURNED_LEAST = 4096 };

static const struct cube_program transpose_program = {
    .name = "transpose",
    .text = cube_text_transpose,
    .buffers = {{"y", CUBE_WRITTEN}, {"x", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               {"near_size", CUBE_INDEX, 0},
               {"last_size", CUBE_INDEX, 0},
               {"near_stride", CUBE_INDEX, 0},
               {"last_stride", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("y"),
               CUBE_OPERAND_PARAMS("x")},
    .shared = {{"tile", "VALUE_x", "TILE * (TILE + 1)"}},
    .constants = {"RANK", "TILE"},
    .flags = CUBE_SPACES,
};

/* Take dimension D out of SPACE. */
static void drop_dim(struct cube_space *space, uint32_t d)
{
    space->rank--;
    space->count /= space->sizes[d];
    for (uint32_t i = d; i < space->rank; i++) {
        space->sizes[i] = space->sizes[i + 1];
        for (uint32_t k = 0; k < space->operand_count; k++)
            space->strides[k][i] = space->strides[k][i + 1];
    }
}

/* The dimension along which operand 1 of SPACE has its neighbours, if that is
 * not the last one and squares pay; else the rank. */
static uint32_t near_dim(const struct cube_space *space)
{
    const uint32_t last = space->rank - 1;

    if (space->rank < 2 || space->count < TURNED_LEAST ||
        space->sizes[last] < TILE / 4 || space->strides[1][last] < 2)
        return space->rank;
    for (uint32_t d = 0; d < last; d++)
        if (space->strides[1][d] == 1 && space->sizes[d] >= TILE / 4)
            return d;
    return space->rank;
}

static hob_status transpose(struct cube_device *device, struct hob_call *call,
                            const struct cube_space *whole, uint32_t near)
{
    const uint32_t last = whole->rank - 1;
    const int64_t tiles = ((whole->sizes[near] + TILE - 1) / TILE) *
                          ((whole->sizes[last] + TILE - 1) / TILE);
    struct cube_space space = *whole;
    struct cube_job job;

    cube_job_init(&job, device, call, &transpose_program);
    cube_job_operand(&job, whole, 0);
    cube_job_operand(&job, whole, 1);
    drop_dim(&space, last);
    drop_dim(&space, near);
    cube_job_i64(&job, space.count);
    cube_job_i64(&job, whole->sizes[near]);
    cube_job_i64(&job, whole->sizes[last]);
    cube_job_i64(&job, whole->strides[0][near]);
    cube_job_i64(&job, whole->strides[1][last]);
    cube_job_space(&job, &space);
    cube_job_strides(&job, &space, 0);
    cube_job_strides(&job, &space, 1);
    cube_job_constant(&job, (int32_t)space.rank);
    cube_job_constant(&job, TILE);
    return cube_job_run(&job, tiles * space.count);
}

hob_status cube_copy(struct cube_device *device, struct hob_call *call,
                     const struct hob_view *to, const struct hob_view *from)
{
    static const struct cube_map copy = {"map_copy", CUBE_CHECK_NONE, 0, NULL};
    struct hob_view in = *from, out = *to;
    struct cube_operand operand = {.view = &in};
    struct cube_space space;
    uint32_t near;

    in.dtype = out.dtype = (uint8_t)moved_as(from->dtype);
    cube_space_init(&space, out.rank, out.shape);
    cube_space_add(&space, &out);
    cube_space_add(&space, &in);
    cube_space_collapse(&space);
    near = near_dim(&space);
    if (near < space.rank)
        return transpose(device, call, &space, near);
    return cube_map_run(device, call, &copy, &out, &operand, 1);
}

static hob_status contiguous(void *device, struct hob_call *call)
{
    return cube_copy(device, call, hob_ret_view(call, 0),
                     hob_arg_view(call, 0));
}

static const uint32_t any_mask[] = {HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "contiguous",
        .signature = "(x: Any) -> x",
        .dtypes = any_mask,
        .dtype_count = 1,
        .execute = contiguous,
    },
};

const struct cube_entries cube_copy_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

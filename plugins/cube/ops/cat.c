/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cat.c - tensors one after the other along a dimension.
 */
#include "../cube.h"
#include "../move.h"
#include "../texts.h"

#include <string.h>

enum { ALIKE_MOST = 4 }; /* tensors of one launch */

static const struct cube_program program = {
    .name = "cat",
    .text = cube_text_cat,
    .buffers =
        {{"out", CUBE_WRITTEN}, {"x", 0}, {"x_2", 0}, {"x_3", 0}, {"x_4", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               {"apart", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("out"),
               CUBE_OPERAND_PARAMS("x")},
    .constants = {"RANK", "PARTS"},
    .flags = CUBE_SPACES,
};

/* ---- tensors that lie alike ---- */

/* Whether CALL's tensors have one shape and the same strides. */
static int lie_alike(const struct hob_call *call)
{
    const uint32_t count = call->args[0].count;
    const struct hob_view *first = hob_arg_item(call, 0, 0);
    const size_t bytes = first->rank * sizeof(first->shape[0]);

    if (count < 2 || count > ALIKE_MOST || !hob_view_count(first))
        return 0;
    for (uint32_t i = 1; i < count; i++) {
        const struct hob_view *in = hob_arg_item(call, 0, i);

        if (memcmp(in->shape, first->shape, bytes) != 0 ||
            memcmp(in->strides, first->strides, bytes) != 0)
            return 0;
    }
    return 1;
}

/* Elements that can be moved at once: of SPACE, whose operands are the result's
 * first part and the tensors. */
static uint32_t width_of(const struct cube_space *space, int64_t apart)
{
    uint32_t width = 16 / hob_dtype_size(space->dtypes[0]);

    for (uint32_t i = 0; i < space->operand_count; i++)
        while (width > 1 &&
               (!cube_space_takes(space, i, width) || apart % width))
            width /= 2;
    return width;
}

/* PART is the first tensor's in the result, which are APART. */
static hob_status cat_alike(struct cube_device *device, struct hob_call *call,
                            const struct hob_view *part, int64_t apart)
{
    const uint32_t parts = call->args[0].count;
    struct cube_space space;
    struct cube_job job;
    uint32_t width;
    int is_dense;

    cube_space_init(&space, part->rank, part->shape);
    cube_space_add(&space, part);
    for (uint32_t i = 0; i < parts; i++)
        cube_space_add(&space, hob_arg_item(call, 0, i));
    for (uint32_t i = 0; i <= parts; i++)
        space.dtypes[i] = cube_bits_dtype(hob_dtype_size(part->dtype));
    cube_space_collapse(&space);
    width = width_of(&space, apart);
    is_dense = cube_space_is_dense(&space, 0) && cube_space_is_dense(&space, 1);
    cube_job_init(&job, device, call, &program);
    cube_job_memory(&job, part->data, space.dtypes[0],
                    hob_view_count(hob_ret_view(call, 0)));
    for (uint32_t i = 1; i <= ALIKE_MOST; i++) {
        if (i <= parts)
            cube_job_operand(&job, &space, i);
        else
            cube_job_absent(&job);
    }
    for (uint32_t i = 0; i <= parts; i++)
        job.variant.widths[i] = (uint8_t)width;
    cube_space_widen(&space, width);
    if (is_dense)
        space.rank = 0;
    cube_job_i64(&job, space.count);
    cube_job_i64(&job, apart);
    cube_job_reach(&job, space.count * parts);
    cube_job_space(&job, &space);
    cube_job_strides(&job, &space, 0);
    cube_job_strides(&job, &space, 1);
    cube_job_constant(&job, (int32_t)space.rank);
    cube_job_constant(&job, (int32_t)parts);
    return cube_job_run(
        &job, cube_groups(device, space.count * parts, CUBE_GROUP_SIZE));
}

/* ---- the op ---- */

/* Each tensor into its part of the result. */
static hob_status cat(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t dim = cube_dim(cube_arg_i64(call, 1), out->rank);
    const int64_t step = out->strides[dim] * hob_dtype_size(out->dtype);
    struct hob_view part = *out;
    hob_status st = HOB_OK;

    if (lie_alike(call)) {
        part.shape[dim] = hob_arg_item(call, 0, 0)->shape[dim];
        return cat_alike(device, call, &part,
                         part.shape[dim] * out->strides[dim]);
    }
    for (uint32_t i = 0; i < call->args[0].count && !st; i++) {
        const struct hob_view *in = hob_arg_item(call, 0, i);

        part.shape[dim] = in->shape[dim];
        if (hob_view_count(in) > 0)
            st = cube_move(device, call, &part, in);
        part.data = (char *)part.data + in->shape[dim] * step;
    }
    return st;
}

static const uint32_t masks[] = {HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "cat",
        .signature = "(tensors: [Any], dim: i64) -> tensors",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = cat,
    },
};

const struct cube_entries cube_cat_entries = {entries, sizeof(entries) /
                                                           sizeof(entries[0])};

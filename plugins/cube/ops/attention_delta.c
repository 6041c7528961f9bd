/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_delta.c - sums of products of two tensors' rows, which lie
 * anywhere: the gradient of attention's result often has heads and queries
 * swapped.
 */
#include "attention.h"

#include "../texts.h"

enum { OUTPUT, GRADIENT, FACTORS };

static const struct cube_program program = {
    .name = "attention_delta",
    .text = cube_text_attention_delta,
    .buffers = {{"delta", CUBE_WRITTEN}, {"output", 0}, {"grad", 0}},
    .params = {CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("output"),
               CUBE_OPERAND_PARAMS("grad"),
               {"count", CUBE_INDEX, 0},
               {"length", CUBE_INDEX, 0}},
    .constants = {"RANK", "TEAM", "WIDE"},
    .flags = CUBE_SPACES | CUBE_SUBGROUPS,
};

/* The leading dimensions of both, merged, and then that of rows. */
static void lay_out(struct cube_space *space,
                    const struct hob_view *const *views)
{
    const uint32_t last = views[OUTPUT]->rank - 1u;

    cube_space_init(space, last, views[OUTPUT]->shape);
    for (uint32_t i = 0; i < FACTORS; i++) {
        struct hob_view outer = *views[i];

        outer.rank--;
        cube_space_add(space, &outer);
    }
    cube_space_collapse(space);
    space->sizes[space->rank] = views[OUTPUT]->shape[last];
    for (uint32_t i = 0; i < FACTORS; i++)
        space->strides[i][space->rank] = views[i]->strides[last];
    space->rank++;
    space->count *= views[OUTPUT]->shape[last];
}

/* Whether the rows of both can be read WIDE elements at a time. */
static int is_vector(const struct cube_space *space, int64_t wide)
{
    const uint32_t last = space->rank - 1;

    if (space->sizes[last] % wide)
        return 0;
    for (uint32_t i = 0; i < FACTORS; i++) {
        if (space->strides[i][last] != 1 || (uintptr_t)space->data[i] % 16)
            return 0;
        for (uint32_t d = 0; d < last; d++)
            if (space->strides[i][d] % wide || space->strides[i][d] < 0)
                return 0;
    }
    return 1;
}

hob_status cube_attention_delta(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct hob_view *views[FACTORS] = {hob_arg_view(call, 0),
                                             hob_arg_view(call, 1)};
    const struct hob_view *delta = hob_ret_view(call, 0);
    const int64_t length = views[OUTPUT]->shape[views[OUTPUT]->rank - 1];
    const int64_t count = hob_view_count(delta);
    struct cube_space space;
    struct cube_job job;
    uint32_t wide = 16 / hob_dtype_size(views[OUTPUT]->dtype), team;

    lay_out(&space, views);
    if (!is_vector(&space, wide))
        wide = 1;
    team = cube_power_from(cube_divide_up(length, wide),
                           device->limits.subgroup_size);
    cube_job_init(&job, device, call, &program);
    cube_job_view(&job, delta);
    for (uint32_t i = 0; i < FACTORS; i++) {
        cube_job_operand(&job, &space, i);
        job.variant.widths[1 + i] = (uint8_t)wide;
    }
    cube_job_space(&job, &space);
    for (uint32_t i = 0; i < FACTORS; i++)
        cube_job_strides(&job, &space, i);
    cube_job_i64(&job, count);
    cube_job_i64(&job, length);
    cube_job_reach(&job, count);
    cube_job_reach(&job, length + (int64_t)team * wide);
    cube_job_constant(&job, (int32_t)space.rank);
    cube_job_constant(&job, (int32_t)team);
    cube_job_constant(&job, (int32_t)wide);
    return cube_job_run(&job,
                        cube_groups(device, count, CUBE_GROUP_SIZE / team));
}

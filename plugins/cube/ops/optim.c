/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optim.c - adam_step in one pass over its seven streams.
 */
#include "../cube.h"

#include "../texts.h"

#include <math.h>

enum { INPUTS = 4, OUTPUTS = 3 };

static const struct cube_program adam_program = {
    .name = "adam",
    .text = cube_text_adam,
    .buffers = {{"out", CUBE_WRITTEN},
                {"out_m", CUBE_WRITTEN},
                {"out_v", CUBE_WRITTEN},
                {"param", 0},
                {"grad", 0},
                {"m", 0},
                {"v", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               {"keep", CUBE_VALUE_OF(0), 0},
               {"rate", CUBE_VALUE_OF(0), 0},
               {"beta1", CUBE_VALUE_OF(0), 0},
               {"new1", CUBE_VALUE_OF(0), 0},
               {"beta2", CUBE_VALUE_OF(0), 0},
               {"new2", CUBE_VALUE_OF(0), 0},
               {"correction", CUBE_VALUE_OF(0), 0},
               {"epsilon", CUBE_VALUE_OF(0), 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("param"),
               CUBE_OPERAND_PARAMS("grad"),
               CUBE_OPERAND_PARAMS("m"),
               CUBE_OPERAND_PARAMS("v")},
    .constants = {"RANK", "WIDE"},
    .flags = CUBE_SPACES | CUBE_MATHS,
};

/* The space of all that is read; its rank is 0 where all of it is dense and
 * takes vectors. */
static void space_init(struct cube_space *space, const struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    int is_dense = 1;

    cube_space_init(space, out->rank, out->shape);
    for (uint32_t i = 0; i < INPUTS; i++)
        cube_space_add(space, hob_arg_view(call, i));
    cube_space_collapse(space);
    for (uint32_t i = 0; i < INPUTS; i++)
        is_dense = is_dense && cube_space_is_dense(space, i) &&
                   (uintptr_t)space->data[i] % 16 == 0;
    for (uint32_t i = 0; i < OUTPUTS; i++)
        is_dense = is_dense && (uintptr_t)hob_ret_view(call, i)->data % 16 == 0;
    if (is_dense)
        space->rank = 0;
    else if (space->rank == 0) { /* a single element, off the boundary */
        space->rank = 1;
        space->sizes[0] = 1;
    }
}

static void add_rates(struct cube_job *job, const struct hob_call *call)
{
    const double count = (double)cube_arg_i64(call, 4);
    const double lr = cube_arg_f64(call, 5);
    const double beta1 = cube_arg_f64(call, 6);
    const double beta2 = cube_arg_f64(call, 7);

    cube_job_f64(job, 1 - lr * cube_arg_f64(call, 9));
    cube_job_f64(job, lr / (1 - pow(beta1, count)));
    cube_job_f64(job, beta1);
    cube_job_f64(job, 1 - beta1);
    cube_job_f64(job, beta2);
    cube_job_f64(job, 1 - beta2);
    cube_job_f64(job, 1 / sqrt(1 - pow(beta2, count)));
    cube_job_f64(job, cube_arg_f64(call, 8));
}

static hob_status adam_step(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const uint32_t dtype = hob_arg_view(call, 0)->dtype;
    struct cube_space space;
    struct cube_job job;
    uint32_t wide;

    space_init(&space, call);
    wide = space.rank == 0 ? 16 / hob_dtype_size(dtype) : 1;
    cube_job_init(&job, device, call, &adam_program);
    for (uint32_t i = 0; i < OUTPUTS; i++)
        cube_job_view(&job, hob_ret_view(call, i));
    for (uint32_t i = 0; i < INPUTS; i++)
        if (space.rank == 0)
            cube_job_memory(&job, space.data[i], dtype, space.count);
        else
            cube_job_operand(&job, &space, i);
    for (uint32_t i = 0; i < OUTPUTS + INPUTS; i++)
        job.variant.widths[i] = (uint8_t)wide;
    cube_job_i64(&job, space.count);
    add_rates(&job, call);
    cube_job_space(&job, &space);
    for (uint32_t i = 0; i < INPUTS; i++)
        cube_job_strides(&job, &space, i);
    cube_job_constant(&job, (int32_t)space.rank);
    cube_job_constant(&job, (int32_t)wide);
    return cube_job_run(&job, cube_groups(device, space.count,
                                          (int64_t)wide * CUBE_GROUP_SIZE));
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "adam_step",
        .signature =
            "(param: Float, grad: Float, m: Float, v: Float, step: i64, "
            "lr: f64, beta1: f64 = 0.9, beta2: f64 = 0.999, "
            "epsilon: f64 = 1e-8, weight_decay: f64 = 0) -> (param, m, v)",
        .dtypes = masks,
        .dtype_count = 4,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = adam_step,
    },
};

const struct cube_entries cube_optim_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

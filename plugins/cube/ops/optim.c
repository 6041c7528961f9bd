/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optim.c - adam_step in one pass over its seven streams, sgd_step over three.
 */
#include "optim.h"

#include "../texts.h"

#include <math.h>

static const struct cube_program adam_program = {
    .name = "adam",
    .text = cube_text_adam,
    .buffers = {{"out", CUBE_WRITTEN},
                {"out_m", CUBE_WRITTEN},
                {"out_v", CUBE_WRITTEN},
                {"param", 0},
                {"grad", 0},
                {"m", 0},
                {"v", 0},
                {"now", 0}},
    /* With NOW decay and logarithms are in the places of what the kernel
     * computes of them. */
    .params = {{"count", CUBE_INDEX, 0},
               {"keep_or_decay", CUBE_VALUE_OF(0), 0},
               {"rate_or_log1", CUBE_VALUE_OF(0), 0},
               {"beta1", CUBE_VALUE_OF(0), 0},
               {"new1", CUBE_VALUE_OF(0), 0},
               {"beta2", CUBE_VALUE_OF(0), 0},
               {"new2", CUBE_VALUE_OF(0), 0},
               {"correction_or_log2", CUBE_VALUE_OF(0), 0},
               {"epsilon", CUBE_VALUE_OF(0), 0},
               {"now_at", CUBE_INDEX, CUBE_LENGTH(2)},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("param"),
               CUBE_OPERAND_PARAMS("grad"),
               CUBE_OPERAND_PARAMS("m"),
               CUBE_OPERAND_PARAMS("v")},
    .constants = {"RANK", "WIDE", "NOW"},
    .flags = CUBE_SPACES | CUBE_MATHS,
};

static const struct cube_program sgd_program = {
    .name = "sgd",
    .text = cube_text_sgd,
    .buffers = {{"out", CUBE_WRITTEN}, {"param", 0}, {"grad", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               {"keep", CUBE_VALUE_OF(0), 0},
               {"rate", CUBE_VALUE_OF(0), 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("param"),
               CUBE_OPERAND_PARAMS("grad")},
    .constants = {"RANK", "WIDE"},
    .flags = CUBE_SPACES,
};

/* A pass over the first arguments of a call; its results are as many as the
 * call has. */
struct pass {
    struct cube_space space;
    struct cube_job job;
    uint32_t inputs;
    uint32_t wide; /* elements an invocation takes at a time */
};

/* The space of all that is read; its rank is 0 where all of it is dense and
 * takes vectors. */
static void space_init(struct cube_space *space, const struct hob_call *call,
                       uint32_t inputs)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    int is_dense = 1;

    cube_space_init(space, out->rank, out->shape);
    for (uint32_t i = 0; i < inputs; i++)
        cube_space_add(space, hob_arg_view(call, i));
    cube_space_collapse(space);
    for (uint32_t i = 0; i < inputs; i++)
        is_dense = is_dense && cube_space_is_dense(space, i) &&
                   (uintptr_t)space->data[i] % 16 == 0;
    for (uint32_t i = 0; i < call->ret_count; i++)
        is_dense = is_dense && (uintptr_t)hob_ret_view(call, i)->data % 16 == 0;
    if (is_dense)
        space->rank = 0;
    else if (space->rank == 0) { /* a single element, off the boundary */
        space->rank = 1;
        space->sizes[0] = 1;
    }
}

void cube_adam_now(struct cube_job *job, const struct hob_view *now)
{
    const int64_t stride = now ? now->strides[0] : 0;

    if (now)
        cube_job_memory(job,
                        (const char *)now->data +
                            (stride < 0 ? stride : 0) *
                                (int64_t)hob_dtype_size(now->dtype),
                        now->dtype, cube_magnitude(stride) + 1);
    else
        cube_job_absent(job);
}

void cube_adam_rates(struct cube_job *job, const hob_value *args,
                     const struct hob_view *now)
{
    const double count = (double)args[4].u.i64;
    const double lr = args[5].u.f64;
    const double beta1 = args[6].u.f64;
    const double beta2 = args[7].u.f64;
    const double decay = args[9].u.f64;

    cube_job_f64(job, now ? decay : 1 - lr * decay);
    cube_job_f64(job, now ? log(beta1) : lr / (1 - pow(beta1, count)));
    cube_job_f64(job, beta1);
    cube_job_f64(job, 1 - beta1);
    cube_job_f64(job, beta2);
    cube_job_f64(job, 1 - beta2);
    cube_job_f64(job, now ? log(beta2) : 1 / sqrt(1 - pow(beta2, count)));
    cube_job_f64(job, args[8].u.f64);
    if (now) {
        cube_job_i64(job, now->strides[0] < 0 ? -now->strides[0] : 0);
        cube_job_i64(job, now->strides[0] > 0 ? now->strides[0] : 0);
    }
}

static void pass_begin(struct pass *pass, struct cube_device *device,
                       struct hob_call *call,
                       const struct cube_program *program, uint32_t inputs)
{
    const uint32_t dtype = hob_arg_view(call, 0)->dtype;

    pass->inputs = inputs;
    space_init(&pass->space, call, inputs);
    pass->wide = pass->space.rank == 0 ? 16 / hob_dtype_size(dtype) : 1;
    cube_job_init(&pass->job, device, call, program);
    for (uint32_t i = 0; i < call->ret_count; i++)
        cube_job_view(&pass->job, hob_ret_view(call, i));
    for (uint32_t i = 0; i < inputs; i++)
        if (pass->space.rank == 0)
            cube_job_memory(&pass->job, pass->space.data[i], dtype,
                            pass->space.count);
        else
            cube_job_operand(&pass->job, &pass->space, i);
    for (uint32_t i = 0; i < call->ret_count + inputs; i++)
        pass->job.variant.widths[i] = (uint8_t)pass->wide;
    cube_job_constant(&pass->job, (int32_t)pass->space.rank);
    cube_job_constant(&pass->job, (int32_t)pass->wide);
    cube_job_i64(&pass->job, pass->space.count);
}

/* The rates have been added. */
static hob_status pass_run(struct pass *pass)
{
    struct cube_job *job = &pass->job;

    cube_job_space(job, &pass->space);
    for (uint32_t i = 0; i < pass->inputs; i++)
        cube_job_strides(job, &pass->space, i);
    return cube_job_run(job,
                        cube_groups(job->device, pass->space.count,
                                    (int64_t)pass->wide * CUBE_GROUP_SIZE));
}

static hob_status adam_step(void *device, struct hob_call *call)
{
    const struct hob_view *now =
        cube_arg_absent(call, 10) ? NULL : hob_arg_view(call, 10);
    struct pass pass;

    pass_begin(&pass, device, call, &adam_program, 4);
    cube_adam_now(&pass.job, now);
    cube_adam_rates(&pass.job, call->args, now);
    cube_job_constant(&pass.job, now ? 2 : 0);
    return pass_run(&pass);
}

static hob_status sgd_step(void *device, struct hob_call *call)
{
    const double lr = cube_arg_f64(call, 2);
    struct pass pass;

    pass_begin(&pass, device, call, &sgd_program, 2);
    cube_job_f64(&pass.job, 1 - lr * cube_arg_f64(call, 3));
    cube_job_f64(&pass.job, -lr);
    return pass_run(&pass);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "adam_step",
        .signature =
            "(param: Float, grad: Float, m: Float, v: Float, step: i64, "
            "lr: f64, beta1: f64 = 0.9, beta2: f64 = 0.999, "
            "epsilon: f64 = 1e-8, weight_decay: f64 = 0, now: Any?) "
            "-> (param, m, v)",
        .dtypes = masks,
        .dtype_count = 5,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = adam_step,
    },
    {
        .op = "sgd_step",
        .signature = "(param: Float, grad: Float, lr: f64, weight_decay: f64 "
                     "= 0) -> param",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = sgd_step,
    },
};

const struct cube_entries cube_optim_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

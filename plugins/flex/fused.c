/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused.c - the interface "fused.compute": programs kept as plans, and the
 * plan that fits a run.
 */
#include "fused_plan.h"

#include <hob/ops.h>

#include <stdio.h>
#include <string.h>

/* ---- compile ---- */

/* Whether PROGRAM is one that this interface describes, and flex has it. */
static int is_good(struct flex_device *device,
                   const struct hob_fused_program *program)
{
    uint8_t dtypes[FUSED_REGISTERS];

    if (program->rank > HOB_MAX_RANK || program->row_rank > program->rank ||
        program->input_count > HOB_FUSED_MAX_INPUTS ||
        program->output_count > HOB_FUSED_MAX_OUTPUTS ||
        program->step_count > HOB_FUSED_MAX_STEPS ||
        program->scalar_count > HOB_FUSED_MAX_SCALARS)
        return 0;
    for (uint32_t i = 0; i < program->input_count; i++)
        dtypes[i] = program->inputs[i].dtype;
    for (uint32_t s = 0; s < program->step_count; s++) {
        const struct hob_fused_step *step = hob_fused_step_at(program, s);
        const uint32_t reg = program->input_count + s;
        uint8_t args[3] = {0, 0, 0};

        for (uint32_t i = 0; i < 3; i++) {
            if (step->args[i] == HOB_FUSED_NONE)
                continue;
            if (step->args[i] >= reg)
                return 0;
            args[i] = dtypes[step->args[i]];
        }
        if (step->scalar + step->scalar_count > program->scalar_count ||
            step->scalar_count < fused_scalar_count(step->op) ||
            !fused_supports(device, step, args) ||
            (fused_op_find(step->op)->form == FUSED_ALONG &&
             (step->kind != HOB_FUSED_FULL || !program->row_rank)))
            return 0;
        dtypes[reg] = step->dtype;
    }
    for (uint32_t i = 0; i < program->output_count; i++)
        if (program->outputs[i] < program->input_count ||
            program->outputs[i] >= program->input_count + program->step_count)
            return 0;
    return 1;
}

static void copy_program(struct fused_kernel *kernel,
                         const struct hob_fused_program *program)
{
    memcpy(kernel->inputs, program->inputs,
           program->input_count * sizeof(kernel->inputs[0]));
    for (uint32_t s = 0; s < program->step_count; s++)
        kernel->steps[s] = *hob_fused_step_at(program, s);
    memcpy(kernel->outputs, program->outputs, program->output_count);
    kernel->program = *program;
    kernel->program.struct_size = sizeof(kernel->program);
    kernel->program.step_size = sizeof(kernel->steps[0]);
    kernel->program.inputs = kernel->inputs;
    kernel->program.steps = kernel->steps;
    kernel->program.outputs = kernel->outputs;
}

static void fused_release(void *instance, void *opened)
{
    const struct hob_host *host = ((struct flex_device *)instance)->host;
    struct fused_kernel *kernel = opened;

    if (!kernel)
        return;
    for (uint32_t i = 0; i < FUSED_PLANS; i++)
        if (kernel->plans[i])
            host->mem_free(host, kernel->plans[i]);
    host->mem_free(host, kernel);
}

/* The plan for FLAGS, made in SPACE; only as large as it has to be. */
static hob_status add_plan(struct fused_kernel *kernel, uint32_t flags,
                           struct fused_plan *space)
{
    const struct hob_host *host = kernel->device->host;
    hob_status st = fused_plan_build(space, kernel->device->kernels,
                                     &kernel->program, flags);
    uint64_t bytes = offsetof(struct fused_plan, instructions) +
                     space->instruction_count * sizeof(space->instructions[0]);

    if (st)
        return st;
    kernel->plans[flags] = host->mem_alloc(host, bytes);
    if (!kernel->plans[flags])
        return HOB_ERR_MEMORY;
    memcpy(kernel->plans[flags], space, bytes);
    return HOB_OK;
}

static hob_status fused_compile(void *instance,
                                const struct hob_fused_program *program,
                                void **out_kernel, char **out_message)
{
    struct flex_device *device = instance;
    const struct hob_host *host = device->host;
    struct fused_kernel *kernel;
    struct fused_plan *space = NULL;
    hob_status st = HOB_ERR_MEMORY;

    *out_kernel = NULL;
    *out_message = NULL;
    if (!is_good(device, program))
        return HOB_ERR_UNSUPPORTED;
    kernel = host->mem_alloc(host, sizeof(*kernel));
    if (!kernel)
        return HOB_ERR_MEMORY;
    memset(kernel, 0, sizeof(*kernel));
    kernel->device = device;
    copy_program(kernel, program);
    space = host->mem_alloc(host, sizeof(*space));
    if (!space)
        goto out;
    for (uint32_t flags = 0; flags < FUSED_PLANS; flags++) {
        st = add_plan(kernel, flags, space);
        if (st == HOB_ERR_MEMORY || (st && flags == 0))
            goto out;
        st = HOB_OK;
        if (kernel->plans[0]->pass_count == 1)
            break;
    }
out:
    if (space)
        host->mem_free(host, space);
    if (st)
        fused_release(device, kernel);
    else
        *out_kernel = kernel;
    return st;
}

/* ---- run ---- */

static int lies_over_input(const struct hob_fused_program *program,
                           const struct hob_fused_run *run)
{
    for (uint32_t o = 0; o < program->output_count; o++)
        for (uint32_t i = 0; i < program->input_count; i++)
            if (run->outputs[o].data == run->inputs[i].data)
                return 1;
    return 0;
}

/* NULL: none fits. */
static const struct fused_plan *choose_plan(const struct fused_kernel *kernel,
                                            const struct fused_order *order,
                                            const struct hob_fused_run *run)
{
    const int64_t rows = order->way == FUSED_BY_COLUMNS
                             ? flex_least(order->rows, FUSED_COLUMNS)
                             : 1;
    uint32_t flags = 0;

    if (kernel->plans[0]->pass_count == 1)
        return kernel->plans[0];
    if (lies_over_input(&kernel->program, run))
        flags |= FUSED_LATE;
    if (order->way == FUSED_BY_ALL ||
        (kernel->plans[flags] &&
         kernel->plans[flags]->kept_bytes * (uint64_t)(rows * order->n) >
             kernel->device->l2_bytes / 2))
        flags |= FUSED_AGAIN;
    return kernel->plans[flags];
}

static hob_status fail(struct flex_device *device,
                       const struct hob_fused_run *run, char **out_message)
{
    enum { SPACE = 256 };

    *out_message = device->host->mem_alloc(device->host, SPACE);
    if (*out_message)
        snprintf(*out_message, SPACE, "%s: no memory for values of a row",
                 run->name ? run->name : "fused");
    return HOB_ERR_MEMORY;
}

static hob_status fused_run_product(void *instance, void *opened,
                                    const struct hob_fused_run *run,
                                    const struct hob_fused_product *product,
                                    char **out_message)
{
    const struct fused_kernel *kernel = opened;
    const struct fused_plan *plan = kernel->plans[0];
    struct fused_order order;
    struct fused_job job;
    hob_status st;

    *out_message = NULL;
    if (kernel->program.row_rank)
        return HOB_ERR_UNSUPPORTED;
    fused_order_init(&order, kernel, run);
    st = fused_job_init(&job, kernel, plan, &order, run);
    if (!st)
        st = fused_product(&job, kernel, run, product);
    if (!st || st == HOB_ERR_UNSUPPORTED)
        return st;
    return fail(instance, run, out_message);
}

static hob_status fused_run_kernel(void *instance, void *opened,
                                   const struct hob_fused_run *run,
                                   char **out_message)
{
    const struct fused_kernel *kernel = opened;
    const struct fused_plan *plan;
    struct fused_order order;
    struct fused_job job;
    hob_status st;

    *out_message = NULL;
    fused_order_init(&order, kernel, run);
    plan = choose_plan(kernel, &order, run);
    if (!plan)
        return HOB_ERR_UNSUPPORTED;
    st = fused_job_init(&job, kernel, plan, &order, run);
    if (st)
        return st;
    st = fused_run(&job);
    return st ? fail(instance, run, out_message) : HOB_OK;
}

/* A tape goes through rows of one vector or two more quickly than the kernel of
 * the op, which has more to do for each row. Of longer rows that kernel is an
 * instruction. */
static uint32_t fused_body_cost(void *instance, uint32_t op, uint32_t dtype,
                                int64_t row)
{
    enum { SHORT = 16 };
    int64_t most = FUSED_ARENA / 8;

    (void)instance;
    if (row <= SHORT)
        return 0;
    /* Blocks are whole rows, with some values and, of halves, what they are
     * converted from; numbers of channels need no room. */
    if (op == HOB_OP_GROUP_NORM)
        most = FUSED_ARENA / 4;
    return row * (dtype == HOB_DTYPE_F32 ? 4 : 8) <= most ? HOB_FUSED_WHOLE
                                                          : HOB_FUSED_NEVER;
}

/* Blocks of columns are as good as those of rows, and threads share both. */
static uint32_t fused_apart_cost(void *instance, uint32_t op, uint32_t dtype,
                                 const int64_t *parts)
{
    (void)instance;
    (void)op;
    (void)dtype;
    (void)parts;
    return 0;
}

const struct hob_fused_compute flex_fused_compute = {
    .struct_size = sizeof(flex_fused_compute),
    .version = HOB_FUSED_COMPUTE_VERSION,
    .supports = fused_supports,
    .compile = fused_compile,
    .release = fused_release,
    .run = fused_run_kernel,
    .run_product = fused_run_product,
    .body_cost = fused_body_cost,
    .apart_cost = fused_apart_cost,
    .run_update = flex_run_update,
    .product_passes = 1,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_product.c - a matrix product whose parts are finished while they are in
 * the cache.
 *
 * The product hands out blocks of its result, and the program goes over them
 * row by row, in place. A bias and a relu that come first are done by the tiles
 * of the product themselves: then there is nothing to go over, if that is all.
 */
#include "fused_plan.h"
#include "gemm.h"

#include <hob/ops.h>

struct finish {
    struct fused_job *job;
    int64_t columns; /* of the whole product */
};

static void finish_block(void *context, void *block, int64_t first_row,
                         int64_t rows, int64_t first_column, int64_t columns,
                         int64_t ldc)
{
    const struct finish *finish = context;
    struct fused_thread thread;

    (void)block;
    (void)ldc;
    if (fused_thread_begin(&thread, finish->job, NULL))
        return;
    if (columns == finish->columns) { /* its rows follow each other */
        fused_elements(&thread, first_row * columns,
                       (first_row + rows) * columns);
    } else {
        for (int64_t r = first_row; r < first_row + rows; r++) {
            const int64_t first = r * finish->columns + first_column;

            fused_elements(&thread, first, first + columns);
        }
    }
    fused_thread_end(&thread);
}

/* The operand of STEP, an add of register REG and another one; or none. */
static uint32_t added_to(const struct hob_fused_step *step, uint32_t reg)
{
    if (step->op != HOB_OP_ADD || step->args[0] == step->args[1] ||
        (step->args[0] != reg && step->args[1] != reg))
        return HOB_FUSED_NONE;
    return step->args[step->args[0] == reg];
}

/* Whether operand REG of RUN is one row of COLUMNS elements for all rows. */
static int is_bias(const struct hob_fused_program *program,
                   const struct hob_fused_run *run, uint32_t reg,
                   int64_t columns)
{
    const uint32_t last = (uint32_t)program->rank - 1;
    const int64_t *strides;

    if (reg >= program->input_count || program->rank < 1)
        return 0;
    strides = run->inputs[reg].strides;
    for (uint32_t i = 0; i < last; i++)
        if (strides[i] != 0)
            return 0;
    return run->shape[last] == columns && strides[last] == 1 &&
           program->rank > 1;
}

/* Whether the tiles do all of KERNEL: [add bias] [relu], one output. HOOKS are
 * set then. A NaN or a zero of relu is that of the op. */
static int is_in_tiles(const struct fused_kernel *kernel,
                       const struct hob_fused_run *run,
                       const struct hob_fused_product *product,
                       struct flex_gemm *hooks)
{
    const struct hob_fused_program *program = &kernel->program;
    const int64_t columns = product->out->shape[product->out->rank - 1];
    uint32_t reg = product->input, s = 0, bias;

    if (program->output_count != 1)
        return 0;
    bias = s < program->step_count && !product->args[2]
               ? added_to(fused_step(program, s), reg)
               : HOB_FUSED_NONE;
    if (bias != HOB_FUSED_NONE && is_bias(program, run, bias, columns)) {
        hooks->bias = run->inputs[bias].data;
        reg = program->input_count + s++;
    }
    if (s < program->step_count && fused_step(program, s)->op == HOB_OP_RELU &&
        fused_step(program, s)->args[0] == reg) {
        hooks->relu = 1;
        reg = program->input_count + s++;
    }
    if (s == program->step_count && s > 0 && program->outputs[0] == reg)
        return 1;
    hooks->bias = NULL;
    hooks->relu = 0;
    return 0;
}

hob_status fused_product(struct fused_job *job,
                         const struct fused_kernel *kernel,
                         const struct hob_fused_run *run,
                         const struct hob_fused_product *product)
{
    const struct hob_view *out = product->out;
    struct finish finish = {.job = job, .columns = out->shape[out->rank - 1]};
    struct flex_gemm hooks = {.struct_size = sizeof(hooks)};
    hob_status st;

    if (!is_in_tiles(kernel, run, product, &hooks)) {
        hooks.epilogue = finish_block;
        hooks.epilogue_context = &finish;
    }
    st = flex_product(job->device, product->args[0], product->args[1],
                      product->args[2], out, &hooks);
    return st ? st : job->failed ? HOB_ERR_MEMORY : HOB_OK;
}

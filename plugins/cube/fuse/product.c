/* SPDX-License-Identifier: Apache-2.0 */
#include "product.h"

#include "../compute.h"
#include "../cube.h"
#include "../runtime.h"

#include <hob/ops.h>

/* Whether operand REG of RUN is one row of COLUMNS elements for all rows. */
static int is_bias(const struct fuse_program *program,
                   const struct hob_fused_run *run, uint32_t reg,
                   int64_t columns)
{
    const uint32_t last = program->rank - 1u;

    if (reg >= program->input_count || program->rank < 2)
        return 0;
    for (uint32_t i = 0; i < last; i++)
        if (run->inputs[reg].strides[i] != 0)
            return 0;
    return run->shape[last] == columns && run->inputs[reg].strides[last] == 1;
}

/* What follows the product as an epilogue: [add BIAS] [relu]. 0 if it is more
 * than that. */
static int find_epilogue(const struct fuse_program *program,
                         const struct hob_fused_run *run,
                         const struct hob_fused_product *product,
                         struct hob_cube_gemm *gemm, struct hob_view *bias)
{
    const int64_t columns = gemm->c->shape[1];
    const struct hob_fused_step *step = program->steps;
    const struct hob_fused_step *end = step + program->step_count;
    uint32_t reg = product->input;

    if (product->args[2]) {
        gemm->bias = product->args[2];
        gemm->epilogue |= HOB_CUBE_BIAS;
    } else if (step < end && step->op == HOB_OP_ADD &&
               step->args[0] != step->args[1] &&
               (step->args[0] == reg || step->args[1] == reg) &&
               is_bias(program, run, step->args[step->args[0] == reg],
                       columns)) {
        *bias = *gemm->c;
        bias->rank = 1;
        bias->shape[0] = columns;
        bias->strides[0] = 1;
        bias->data = run->inputs[step->args[step->args[0] == reg]].data;
        gemm->bias = bias;
        gemm->epilogue |= HOB_CUBE_BIAS;
        reg = program->input_count;
        step++;
    }
    if (step < end && step->op == HOB_OP_RELU && step->args[0] == reg) {
        gemm->epilogue |= HOB_CUBE_RELU;
        reg = program->input_count + (uint32_t)(step - program->steps);
        step++;
    }
    return step == end && program->output_count == 1 &&
           program->outputs[0] == reg;
}

hob_status fuse_product_run(struct cube_device *device,
                            const struct fuse_program *program,
                            const struct hob_fused_run *run,
                            const struct hob_fused_product *product,
                            char **out_message)
{
    struct hob_view a, c, bias;
    struct hob_cube_gemm gemm = {HOB_CUBE_GEMM_INIT_HEAD, .a = &a,
                                 .b = product->args[1], .c = &c};

    /* Halves would be rounded once and not after each step. */
    if (!device->runtime->gemm || product->out->dtype != HOB_DTYPE_F32 ||
        product->args[1]->rank != 2 || product->args[0]->rank < 2 ||
        (product->args[2] && product->args[2]->strides[0] != 1) ||
        !cube_as_matrix(product->args[0], &a) ||
        !cube_as_matrix(product->out, &c) || !a.shape[0] || !a.shape[1] ||
        !c.shape[1] || !find_epilogue(program, run, product, &gemm, &bias))
        return HOB_ERR_UNSUPPORTED;
    return device->runtime->gemm(device, run->name ? run->name : "fused", &gemm,
                                 out_message);
}

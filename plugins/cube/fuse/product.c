/* SPDX-License-Identifier: Apache-2.0 */
#include "product.h"

#include "../compute.h"
#include "../cube.h"
#include "../runtime.h"

#include <hob/ops.h>

/* Let GEMM do OWN, which follows it. 0 if it is more than an epilogue. */
static int add_epilogue(const struct fuse_program *own,
                        const struct hob_fused_run *run,
                        const struct hob_fused_product *product,
                        struct hob_cube_gemm *gemm, struct hob_view *bias)
{
    const struct hob_fused_program program = {
        .struct_size = sizeof(program),
        .step_size = sizeof(own->steps[0]),
        .rank = own->rank,
        .input_count = own->input_count,
        .output_count = own->output_count,
        .step_count = own->step_count,
        .steps = own->steps,
        .outputs = own->outputs,
    };
    uint32_t input;
    int relu;

    if (!hob_fused_is_epilogue(&program, run, product, &input, &relu))
        return 0;
    gemm->bias = product->args[2];
    if (input != HOB_FUSED_NONE) {
        *bias = *gemm->c;
        bias->rank = 1;
        bias->shape[0] = gemm->c->shape[1];
        bias->strides[0] = 1;
        bias->data = run->inputs[input].data;
        gemm->bias = bias;
    }
    gemm->epilogue =
        (gemm->bias ? HOB_CUBE_BIAS : 0u) | (relu ? HOB_CUBE_RELU : 0u);
    return 1;
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
        !c.shape[1] || !add_epilogue(program, run, product, &gemm, &bias))
        return HOB_ERR_UNSUPPORTED;
    return device->runtime->gemm(device, run->name ? run->name : "fused", &gemm,
                                 out_message);
}

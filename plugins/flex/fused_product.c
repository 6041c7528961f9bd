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

/* Whether the tiles do all of KERNEL: HOOKS are set then. A NaN or a zero of
 * relu is that of the op. */
static int is_in_tiles(const struct fused_kernel *kernel,
                       const struct hob_fused_run *run,
                       const struct hob_fused_product *product,
                       struct flex_gemm *hooks)
{
    uint32_t bias;
    int relu;

    if (!hob_fused_is_epilogue(&kernel->program, run, product, &bias, &relu))
        return 0;
    if (bias != HOB_FUSED_NONE)
        hooks->bias = run->inputs[bias].data;
    hooks->relu = relu;
    return 1;
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

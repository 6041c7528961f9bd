/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_product.c - a matrix product whose parts are finished while they are in
 * the cache.
 *
 * The product hands out blocks of its result, and the program goes over them
 * row by row, in place, or from memory of the block's own if the product has
 * none. A bias and a relu that come first are done by the tiles of the product
 * themselves: then there is nothing to go over, if that is all.
 */
#include "fused_plan.h"
#include "gemm.h"

#include <hob/ops.h>

struct finish {
    struct fused_job *job;
    int64_t columns; /* of the whole product */
    uint32_t input;  /* that it is */
    int has_memory;  /* where the job finds it */
};

/* Elements FIRST .. LAST - 1, whose products are at PRODUCTS. */
static void finish_run(const struct finish *finish, struct fused_thread *thread,
                       int64_t first, int64_t last, char *products)
{
    if (!finish->has_memory) {
        thread->part[finish->input] = products;
        thread->part_at = first;
    }
    fused_elements(thread, first, last);
}

static void finish_block(void *context, void *block, int64_t first_row,
                         int64_t rows, int64_t first_column, int64_t columns,
                         int64_t ldc)
{
    const struct finish *finish = context;
    const int64_t size = (int64_t)finish->job->in[finish->input].loop.size;
    struct fused_thread thread;

    if (fused_thread_begin(&thread, finish->job, NULL))
        return;
    if (columns == finish->columns && ldc == columns) { /* one after another */
        finish_run(finish, &thread, first_row * columns,
                   (first_row + rows) * columns, block);
    } else {
        for (int64_t r = 0; r < rows; r++) {
            const int64_t first =
                (first_row + r) * finish->columns + first_column;

            finish_run(finish, &thread, first, first + columns,
                       (char *)block + r * ldc * size);
        }
    }
    fused_thread_end(&thread);
}

/* What the job reads of other arrays that lie as the product does. */
static void name_reads(const struct fused_job *job, uint32_t product,
                       struct flex_gemm *hooks)
{
    const uint32_t size = job->in[product].loop.size;
    uint32_t count = 0;

    for (uint32_t i = 0;
         i < job->plan->input_count && count < FLEX_EPILOGUE_READS; i++) {
        const struct fused_job_input *in = &job->in[i];

        if (i != product && !in->is_row && in->walk == FUSED_DENSE &&
            in->loop.size == size)
            hooks->reads[count++] = in->loop.data;
    }
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

    if (!product->out->data ||
        !hob_fused_is_epilogue(&kernel->program, run, product, &bias, &relu))
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
    struct finish finish = {.job = job,
                            .columns = out->shape[out->rank - 1],
                            .input = product->input,
                            .has_memory = out->data != NULL};
    struct flex_gemm hooks = {.struct_size = sizeof(hooks)};
    hob_status st;

    if (!is_in_tiles(kernel, run, product, &hooks)) {
        hooks.epilogue = finish_block;
        hooks.epilogue_context = &finish;
        name_reads(job, product->input, &hooks);
    }
    st = flex_product(job->device, product->args[0], product->args[1],
                      product->args[2], out, &hooks);
    return st ? st : job->failed ? HOB_ERR_MEMORY : HOB_OK;
}

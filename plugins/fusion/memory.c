/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - where the outputs of a program lie.
 */
#include "program.h"

#include <string.h>

/* ---- what follows from how the operands lie ---- */

/* Bits of the inputs whose elements output OUT may be written over. */
static uint32_t find_alike(const struct fu_program *p, uint32_t out)
{
    const struct fu_value *value = &p->stored[out]->node->values[0];
    const uint32_t size = hob_dtype_size(value->dtype);
    int64_t count = 1;
    uint32_t set = 0;

    for (uint32_t k = 0; k < value->rank; k++)
        count *= value->shape[k];
    for (uint32_t i = 0; i < p->program.input_count; i++) {
        const struct hob_view *view;

        if (!p->ins[i].tensor)
            continue;
        view = hob_tensor_view(p->ins[i].tensor);
        if (!p->constants[i] && p->inputs[i].kind == HOB_FUSED_FULL &&
            hob_dtype_size(p->inputs[i].dtype) == size &&
            (view->flags & HOB_VIEW_CONTIGUOUS) &&
            hob_view_count(view) == count && !p->ins[i].start &&
            !memcmp(p->run_ins[i].strides, p->run_outs[out].strides,
                    p->program.rank * sizeof(int64_t)))
            set |= UINT32_C(1) << i;
    }
    return set;
}

/* The output that the product is to lie under, until it is finished, or that
 * takes its place if it has no memory; -1: there is none of as large a dtype.
 */
static int under_product(const struct fu_program *p)
{
    const uint32_t in = p->product->reg;

    for (uint32_t i = 0; i < p->program.output_count; i++)
        if (!p->stored[i]->is_row &&
            hob_dtype_size(p->stored[i]->node->values[0].dtype) ==
                hob_dtype_size(p->inputs[in].dtype) &&
            !memcmp(p->run_ins[in].strides, p->run_outs[i].strides,
                    p->program.rank * sizeof(int64_t)))
            return (int)i;
    return -1;
}

int fu_program_lay(const struct fu_window *window, struct fu_program *p)
{
    const int passes = FU_HAS(window->layer->fused, product_passes) != 0;

    p->under = p->product ? under_product(p) : -1;
    for (uint32_t i = 0; i < p->program.output_count; i++)
        p->may_lie[i] = p->stored[i]->is_row || ((int)i == p->under && !passes)
                            ? 0
                            : find_alike(p, i);
    return p->product && p->under < 0;
}

/* ---- what each run has to look at ---- */

/* Whether the elements of input IN are in memory that only members of the
 * group hold which will not run again, and that is read as that input alone: of
 * two views of one storage, what is written of one may be read of the other. */
static int is_dead_locked(const struct fu_window *window,
                          const struct fu_program *p, uint32_t in)
{
    const struct hob_view *view = hob_tensor_view(p->ins[in].tensor);
    hob_tensor *holders[FU_MOST_READS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->read_count; i++) {
        const struct fu_read *read = &p->reads[i];
        const struct fu_input *input = fu_read_input(window, read);
        const struct fu_value *value = input->value;
        hob_tensor *tensor = fu_tensor_of(input);
        uint32_t known = 0;

        if (hob_tensor_view(tensor)->storage != view->storage)
            continue;
        if (read->reg != in || window->items[read->item].stays ||
            (value && (value->handles || value->users != read->users)))
            return 0;
        while (known < count && holders[known] != tensor)
            known++;
        holders[known] = tensor;
        count += known == count;
    }
    return window->layer->host->is_last(holders, count);
}

/* The input that each output lies over, by OVER; -1: none. */
static void choose_over(const struct fu_window *window,
                        const struct fu_program *p, int *over)
{
    uint32_t taken = 0;

    fu_lock(&window->layer->lock);
    for (uint32_t i = 0; i < p->program.output_count; i++) {
        over[i] = -1;
        for (uint32_t set = p->may_lie[i] & ~taken; set && over[i] < 0;
             set &= set - 1) {
            const uint32_t in = (uint32_t)__builtin_ctz(set);

            if (is_dead_locked(window, p, in))
                over[i] = (int)in;
        }
        if (over[i] >= 0)
            taken |= UINT32_C(1) << over[i];
    }
    fu_unlock(&window->layer->lock);
}

/* Say where the operands are. */
static void fill_in(struct fu_program *p, char *product)
{
    p->product_view.data = product;
    for (uint32_t i = 0; i < p->program.input_count; i++)
        p->run_ins[i].data =
            p->ins[i].tensor
                ? (char *)hob_tensor_view(p->ins[i].tensor)->data +
                      p->ins[i].start *
                          (int64_t)hob_dtype_size(p->inputs[i].dtype)
                : product;
    for (uint32_t i = 0; i < p->program.output_count; i++)
        p->run_outs[i].data = hob_tensor_view(p->outs[i].tensor)->data;
}

int fu_program_allocate(const struct fu_window *window, struct fu_program *p)
{
    const struct fu_layer *layer = window->layer;
    int over[HOB_FUSED_MAX_OUTPUTS];
    char *product = NULL; /* nowhere if what it lies under is over an input */

    choose_over(window, p, over);
    p->in_place = 0;
    for (uint32_t i = 0; i < p->program.output_count; i++) {
        const struct fu_value *value = &p->stored[i]->node->values[0];
        struct hob_meta meta = {.dtype = value->dtype,
                                .rank = value->rank,
                                .scheme = value->scheme};

        memcpy(meta.shape, value->shape, value->rank * sizeof(int64_t));
        p->outs[i].tensor = layer->host->tensor_new(
            layer->below, &meta, over[i] >= 0 ? p->ins[over[i]].tensor : NULL);
        if (!p->outs[i].tensor) {
            while (i--)
                layer->host->tensor_unref(p->outs[i].tensor);
            return 1;
        }
        p->in_place += over[i] >= 0;
    }
    if (p->under >= 0 && over[p->under] < 0)
        product = hob_tensor_view(p->outs[p->under].tensor)->data;
    fill_in(p, product);
    return 0;
}

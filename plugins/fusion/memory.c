/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - where the outputs of a program lie.
 */
#include "program.h"

#include <string.h>

/* Whether the elements of input IN are in memory that only members of the
 * group hold which will not run again. */
static int is_dead_locked(const struct fu_window *window, uint32_t index,
                          const struct fu_program *p, uint32_t in)
{
    const struct fu_group *group = &window->groups[index];
    const struct hob_host *host = window->layer->host;
    const struct hob_view *view = hob_tensor_view(p->ins[in].tensor);
    hob_tensor *holders[FU_WINDOW];
    uint32_t count = 0;

    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next) {
        const struct fu_item *item = &window->items[at];

        for (uint32_t i = 0; i < item->node->input_count; i++) {
            const struct fu_input *input = &item->node->inputs[i];
            const struct fu_value *value = input->value;
            hob_tensor *tensor = fu_tensor_of(input);
            uint32_t known = 0;

            if (!tensor || hob_tensor_view(tensor)->storage != view->storage)
                continue;
            if (item->stays ||
                (value && !fu_is_only_for_locked(window, index, value)))
                return 0;
            while (known < count && holders[known] != tensor)
                known++;
            if (known == FU_WINDOW)
                return 0;
            holders[known] = tensor;
            count += known == count;
        }
    }
    return host->is_last(holders, count);
}

static int is_dead(const struct fu_window *window, uint32_t index,
                   const struct fu_program *p, uint32_t in)
{
    int is;

    fu_lock(&window->layer->lock);
    is = is_dead_locked(window, index, p, in);
    fu_unlock(&window->layer->lock);
    return is;
}

/* An input whose elements output OUT may be written over; -1: none. */
static int find_dead(const struct fu_window *window, uint32_t index,
                     const struct fu_program *p, uint32_t out, uint32_t taken)
{
    const struct fu_value *value = &p->stored[out]->node->values[0];
    const uint32_t size = hob_dtype_size(value->dtype);

    for (uint32_t i = 0; i < p->program.input_count; i++) {
        const struct hob_view *view;
        int64_t count = 1;

        if (!p->ins[i].tensor)
            continue;
        view = hob_tensor_view(p->ins[i].tensor);
        for (uint32_t k = 0; k < value->rank; k++)
            count *= value->shape[k];
        if (taken >> i & 1 || p->constants[i] ||
            p->inputs[i].kind != HOB_FUSED_FULL ||
            hob_dtype_size(p->inputs[i].dtype) != size ||
            !(view->flags & HOB_VIEW_CONTIGUOUS) ||
            hob_view_count(view) != count || p->ins[i].start ||
            memcmp(p->ins[i].strides, p->outs[out].strides,
                   p->program.rank * sizeof(int64_t)) != 0)
            continue;
        if (is_dead(window, index, p, i))
            return (int)i;
    }
    return -1;
}

/* Bits of the inputs that lie in the storage of input IN: only one output
 * may lie there. */
static uint32_t sharing(const struct fu_program *p, uint32_t in)
{
    const struct hob_view *view = hob_tensor_view(p->ins[in].tensor);
    uint32_t set = 0;

    for (uint32_t i = 0; i < p->program.input_count; i++)
        if (p->ins[i].tensor &&
            hob_tensor_view(p->ins[i].tensor)->storage == view->storage)
            set |= UINT32_C(1) << i;
    return set;
}

/* Whether the product reads the storage of input IN: other parts of it than
 * those that are written meanwhile. */
static int product_reads(const struct fu_program *p, uint32_t in)
{
    const struct hob_view *view = hob_tensor_view(p->ins[in].tensor);

    for (uint32_t i = 0; p->product && i < p->product->node->input_count; i++) {
        hob_tensor *tensor = fu_tensor_of(&p->product->node->inputs[i]);

        if (tensor && hob_tensor_view(tensor)->storage == view->storage)
            return 1;
    }
    return 0;
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
            !memcmp(p->ins[in].strides, p->outs[i].strides,
                    p->program.rank * sizeof(int64_t)))
            return (int)i;
    return -1;
}

int fu_program_allocate(const struct fu_window *window, uint32_t index,
                        struct fu_program *p)
{
    const struct fu_layer *layer = window->layer;
    const int under = p->product ? under_product(p) : -1;
    const int passes = FU_HAS(layer->fused, product_passes) != 0;
    uint32_t taken = 0;
    char *product;   /* where it lies; NULL: nowhere */
    int is_over = 0; /* what it would lie under is over an input */

    if (p->product && under < 0)
        return 1;
    for (uint32_t i = 0; i < p->program.input_count; i++) {
        const uint32_t set = p->ins[i].tensor ? sharing(p, i) : 0;

        /* Two views of one storage: what is written of one may be read of
         * the other. */
        if (set & (set - 1) || (set && product_reads(p, i)))
            taken |= set;
    }
    for (uint32_t i = 0; i < p->program.output_count; i++) {
        const struct fu_value *value = &p->stored[i]->node->values[0];
        struct hob_meta meta = {.dtype = value->dtype,
                                .rank = value->rank,
                                .scheme = value->scheme};
        int over = p->stored[i]->is_row || ((int)i == under && !passes)
                       ? -1
                       : find_dead(window, index, p, i, taken);

        memcpy(meta.shape, value->shape, value->rank * sizeof(int64_t));
        p->outs[i].tensor = layer->host->tensor_new(
            layer->below, &meta, over >= 0 ? p->ins[over].tensor : NULL);
        if (!p->outs[i].tensor) {
            while (i--)
                layer->host->tensor_unref(p->outs[i].tensor);
            return 1;
        }
        if (over < 0)
            continue;
        taken |= UINT32_C(1) << over;
        p->in_place++;
        is_over |= (int)i == under;
    }
    product = under < 0 || is_over
                  ? NULL
                  : hob_tensor_view(p->outs[under].tensor)->data;
    p->product_view.data = product;
    for (uint32_t i = 0; i < p->program.input_count; i++) {
        p->run_ins[i].data =
            p->ins[i].tensor
                ? (char *)hob_tensor_view(p->ins[i].tensor)->data +
                      p->ins[i].start *
                          (int64_t)hob_dtype_size(p->inputs[i].dtype)
                : product;
        memcpy(p->run_ins[i].strides, p->ins[i].strides,
               sizeof(p->ins[i].strides));
    }
    for (uint32_t i = 0; i < p->program.output_count; i++) {
        p->run_outs[i].data = hob_tensor_view(p->outs[i].tensor)->data;
        memcpy(p->run_outs[i].strides, p->outs[i].strides,
               sizeof(p->outs[i].strides));
    }
    return 0;
}

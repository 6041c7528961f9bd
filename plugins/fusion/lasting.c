/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lasting.c - programs that stay with the groups of a window.
 *
 * That a window's plan is for other nodes says that these are as those were,
 * with their metadata and who reads what. It says nothing of how tensors lie
 * and which of them share elements, nor of numbers.
 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- whether it is for these tensors, too ---- */

static int lies_as_before(const struct fu_program *p,
                          const struct fu_read *read,
                          const struct hob_view *view)
{
    const int64_t *layout = p->layouts + read->layout;

    if (layout[0] != view->rank)
        return 0;
    for (uint32_t k = 0; k < view->rank; k++)
        if (layout[1 + k] != view->strides[k])
            return 0;
    return 1;
}

/* Let P have the tensors that the members read now; 0 if it is for others. */
static int take_inputs(const struct fu_window *window, struct fu_program *p)
{
    const struct hob_host *host = window->layer->host;

    for (uint32_t i = 0; i < p->program.input_count; i++)
        p->ins[i].tensor = NULL;
    for (uint32_t i = 0; i < p->read_count; i++) {
        const struct fu_read *read = &p->reads[i];
        hob_tensor *tensor = fu_tensor_of(fu_read_input(window, read));
        struct fu_operand *in;

        if (!tensor || host->tensor_is_error(tensor) ||
            !lies_as_before(p, read, hob_tensor_view(tensor)))
            return 0;
        if (read->reg == HOB_FUSED_NONE)
            continue;
        in = &p->ins[read->reg];
        if (!in->tensor)
            in->tensor = tensor;
        else if (hob_tensor_view(in->tensor)->data !=
                 hob_tensor_view(tensor)->data)
            return 0;
    }
    return 1;
}

/* The numbers that P reads, some of them as constants in SCOPE. */
static int take_numbers(const struct fu_window *window, struct fu_program *p,
                        hob_scope *scope)
{
    for (uint32_t i = 0; i < p->program.scalar_count; i++) {
        const struct fu_number *number = &p->numbers[i];

        p->scalars[i] =
            fu_number_of(window->items[number->item].node, number->arg);
    }
    for (uint32_t i = 0; i < p->program.input_count; i++) {
        if (!p->constants[i])
            continue;
        p->ins[i].tensor =
            fu_constant_make(window->layer, p->constants[i], scope);
        if (!p->ins[i].tensor)
            return 0;
    }
    return 1;
}

/* ---- keeping ---- */

/* Note how what P reads lies. */
static int keep_layouts(const struct fu_window *window, struct fu_program *p)
{
    int64_t *layouts;
    size_t count = 0;

    for (uint32_t i = 0; i < p->read_count; i++) {
        p->reads[i].layout = (uint16_t)count;
        count += 1 + hob_tensor_view(
                         fu_tensor_of(fu_read_input(window, &p->reads[i])))
                         ->rank;
    }
    if (count > p->layout_room) {
        layouts = realloc(p->layouts, count * sizeof(*layouts));
        if (!layouts)
            return 0;
        p->layouts = layouts;
        p->layout_room = count;
    }
    for (uint32_t i = 0; i < p->read_count; i++) {
        const struct hob_view *view =
            hob_tensor_view(fu_tensor_of(fu_read_input(window, &p->reads[i])));

        p->layouts[p->reads[i].layout] = view->rank;
        memcpy(p->layouts + p->reads[i].layout + 1, view->strides,
               view->rank * sizeof(int64_t));
    }
    return 1;
}

static void drop_kernel(const struct fu_layer *layer, struct fu_program *p)
{
    if (p->kernel)
        fu_kernel_give(layer->kernels, p->kernel);
    p->kernel = NULL;
}

/* "mul+add", or "matmul+mul+add" where there is a product. */
static const char *name_of(const struct fu_layer *layer, struct fu_program *p)
{
    const char *name = fu_kernel_name(p->kernel);

    if (!p->product)
        return name;
    snprintf(p->product_name, sizeof(p->product_name), "%s+%s",
             layer->host->op_name(layer->host, p->product->node->op), name);
    return p->product_name;
}

/* ---- the way in ---- */

struct fu_program *fu_program_get(struct fu_window *window, uint32_t index,
                                  int is_whole, hob_scope *scope)
{
    struct fu_layer *layer = window->layer;
    struct fu_program **place = &window->groups[index].programs[is_whole];
    struct fu_program *p = *place;

    if (p && p->kernel && take_inputs(window, p) &&
        take_numbers(window, p, scope)) {
        fu_kernel_again(layer->kernels);
        return p;
    }
    if (!p)
        *place = p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    drop_kernel(layer, p);
    p->declined = 0;
    if (fu_program_make(window, index, is_whole, scope, p) ||
        !keep_layouts(window, p))
        return NULL;
    p->kernel = fu_kernel_get(layer->kernels, &p->program);
    if (!p->kernel)
        return NULL;
    p->run.name = name_of(layer, p);
    return p;
}

void fu_programs_drop(struct fu_window *window)
{
    for (uint32_t i = 0; i < window->group_count; i++)
        for (uint32_t k = 0; k < 2; k++) {
            struct fu_program *p = window->groups[i].programs[k];

            if (!p)
                continue;
            drop_kernel(window->layer, p);
            free(p->layouts);
            free(p);
        }
    window->group_count = 0;
}

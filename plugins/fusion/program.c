/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <hob/ops.h>

#include <string.h>

enum { NO_REGISTER = HOB_FUSED_NONE };

/* ---- operands ---- */

/* The strides over GROUP's space of a tensor of SHAPE that ITEM reads or gives,
 * NULL: anybody: 0 where it is broadcast. Returns where it begins. */
static int64_t spread(const struct fu_group *group, const struct fu_item *item,
                      const int64_t *shape, const int64_t *strides,
                      uint32_t rank, int64_t *out)
{
    const struct fu_frame *frame =
        item && item->frame.rank ? &item->frame : NULL;
    const uint32_t own = frame ? frame->rank : group->rank;
    int64_t start = 0;

    memset(out, 0, group->rank * sizeof(out[0]));
    for (uint32_t i = 0; i < group->rank; i++) {
        const uint32_t at = (frame ? frame->from[i] : i) + rank - own;

        if (at < rank && shape[at] != 1) /* beyond it: below 0, or nowhere */
            out[i] = strides[at] * (frame ? frame->times[i] : 1);
    }
    for (uint32_t i = 0; frame && i < rank && i < own; i++)
        if (shape[rank - 1 - i] != 1)
            start += frame->start[own - 1 - i] * strides[rank - 1 - i];
    return start;
}

/* Whether a shape, which ITEM has as in spread(), is 1 in all dimensions of
 * GROUP's rows. */
static int is_row_shape(const struct fu_group *group,
                        const struct fu_item *item, const int64_t *shape,
                        uint32_t rank)
{
    const struct fu_frame *frame =
        item && item->frame.rank ? &item->frame : NULL;
    const uint32_t own = frame ? frame->rank : group->rank;

    for (uint32_t i = 0; i < group->rank && group->rows; i++) {
        const uint32_t at = (frame ? frame->from[i] : i) + rank - own;

        if (fu_has_dim(group->rows, group->rank - 1 - i) && at < rank &&
            shape[at] != 1)
            return 0;
    }
    return group->rows != 0;
}

/* A vector [c] lies as [c, 1, ..] along dimension 1 of what ITEM gives. */
static void lay_along_channels(const struct fu_item *item,
                               struct hob_view *vector)
{
    vector->rank = (uint16_t)(item->node->values[0].rank - 1);
    for (uint32_t i = 1; i < vector->rank; i++) {
        vector->shape[i] = 1;
        vector->strides[i] = 0;
    }
}

/* The register of an input, IS_CHANNELS: which is one number a channel; a new
 * one if it is not there yet. */
static uint8_t add_input(const struct fu_group *group,
                         const struct fu_item *item, struct fu_program *p,
                         hob_tensor *tensor, int is_channels)
{
    const struct hob_view *view = hob_tensor_view(tensor);
    const uint32_t count = p->program.input_count;
    int64_t strides[HOB_MAX_RANK] = {0};
    struct hob_view vector;
    int64_t start;

    if (is_channels) {
        vector = *view;
        lay_along_channels(item, &vector);
        view = &vector;
    }
    start =
        spread(group, item, view->shape, view->strides, view->rank, strides);
    for (uint32_t i = 0; i < count; i++)
        if (p->ins[i].tensor &&
            hob_tensor_view(p->ins[i].tensor)->data == view->data &&
            p->inputs[i].dtype == view->dtype && !p->constants[i] &&
            p->ins[i].start == start &&
            !memcmp(p->run_ins[i].strides, strides, sizeof(strides)))
            return (uint8_t)i;
    if (count == HOB_FUSED_MAX_INPUTS)
        return NO_REGISTER;
    p->ins[count] = (struct fu_operand){tensor, start};
    memcpy(p->run_ins[count].strides, strides, sizeof(strides));
    p->inputs[count].dtype = view->dtype;
    p->inputs[count].kind = is_row_shape(group, item, view->shape, view->rank)
                                ? HOB_FUSED_ROW
                                : HOB_FUSED_FULL;
    p->inputs[count].reserved = 0;
    p->constants[count] = NULL;
    p->program.input_count++;
    return (uint8_t)count;
}

hob_tensor *fu_constant_make(const struct fu_layer *layer,
                             const struct fu_item *item, hob_scope *scope)
{
    const struct fu_node *node = item->node;
    const hob_value number = node->op == HOB_OP_FULL
                                 ? node->args[1]
                                 : hob_i64(node->op == HOB_OP_ONES);
    hob_tensor *tensor = hob_full(scope, NULL, 0, number, layer->below,
                                  (hob_dtype)node->values[0].dtype);

    return layer->host->tensor_is_error(tensor) ? NULL : tensor;
}

/* A constant is read from one element. */
static uint8_t add_constant(const struct fu_layer *layer,
                            const struct fu_group *group, hob_scope *scope,
                            struct fu_program *p, const struct fu_item *item)
{
    hob_tensor *tensor;
    uint8_t reg;

    for (uint32_t i = 0; i < p->program.input_count; i++)
        if (p->constants[i] == item)
            return (uint8_t)i;
    tensor = fu_constant_make(layer, item, scope);
    if (!tensor)
        return NO_REGISTER;
    reg = add_input(group, NULL, p, tensor, 0);
    if (reg != NO_REGISTER)
        p->constants[reg] = item;
    return reg;
}

/* Note that REG is input INPUT of NODE. Nonzero if there is no room. */
static int note_read(struct fu_program *p, const struct fu_node *node,
                     const struct fu_input *input, uint32_t reg)
{
    if (p->read_count == FU_MOST_READS)
        return 1;
    p->reads[p->read_count++] =
        (struct fu_read){.item = (uint16_t)node->slot,
                         .input = (uint8_t)(input - node->inputs),
                         .reg = (uint8_t)reg};
    return 0;
}

/* ---- steps ---- */

/* The member of group INDEX that makes what INPUT reads, or a constant. */
static const struct fu_item *maker_in(const struct fu_window *window,
                                      uint32_t index,
                                      const struct fu_input *input)
{
    const struct fu_node *node = input->value ? input->value->node : NULL;
    const struct fu_item *item;

    if (!node || node->slot >= window->count)
        return NULL;
    item = &window->items[node->slot];
    if (item->node != node || (item->class == FU_CONSTANT && item->is_stored) ||
        (item->group == index && input->value->tensor)) /* the product */
        return NULL;
    return item->class == FU_CONSTANT || item->group == index ? item : NULL;
}

/* The register of INPUT of ITEM. */
static uint8_t operand_of(const struct fu_window *window, uint32_t index,
                          hob_scope *scope, struct fu_program *p,
                          const struct fu_item *item,
                          const struct fu_input *input)
{
    const struct fu_group *group = &window->groups[index];
    const struct fu_item *maker = maker_in(window, index, input);
    hob_tensor *tensor = fu_tensor_of(input);
    uint8_t reg;

    if (maker && maker->class == FU_CONSTANT)
        return add_constant(window->layer, group, scope, p, maker);
    if (maker)
        return maker->reg;
    if (!tensor || window->layer->host->tensor_is_error(tensor))
        return NO_REGISTER; /* what reads it fails, op by op */
    reg = add_input(group, item, p, tensor,
                    item->node->op == HOB_OP_GROUP_NORM &&
                        input != &item->node->inputs[0]);
    return reg == NO_REGISTER || note_read(p, item->node, input, reg)
               ? NO_REGISTER
               : reg;
}

int fu_add_number(struct fu_program *p, const struct fu_node *node,
                  uint32_t arg)
{
    if (p->program.scalar_count == HOB_FUSED_MAX_SCALARS)
        return 1;
    p->numbers[p->program.scalar_count] =
        (struct fu_number){(uint16_t)node->slot, (uint16_t)arg};
    p->scalars[p->program.scalar_count++] = fu_number_of(node, arg);
    return 0;
}

static int add_scalars(struct fu_program *p, const struct fu_node *node,
                       struct hob_fused_step *step)
{
    step->scalar = p->program.scalar_count;
    for (uint32_t i = 0; i < node->arg_count && step->scalar_count; i++) {
        const hob_value *arg = &node->args[i];

        if (arg->tag == HOB_TAG_TENSOR || arg->tag == HOB_TAG_DTYPE ||
            arg->tag == HOB_TAG_ENUM || arg->tag == HOB_TAG_I64S ||
            (step->is_reduction && arg->tag == HOB_TAG_I64))
            continue;
        if (fu_add_number(p, node, i))
            return 1;
    }
    return p->program.scalar_count - step->scalar != step->scalar_count;
}

/* The inputs come first: registers of steps are counted from 0 until their
 * number is known. */
enum { STEP_MARK = 0x80 };

/* The product that the program begins with: an input that lies row-major, and
 * has no tensor of its own. */
static int add_product(const struct fu_layer *layer,
                       const struct fu_group *group, struct fu_program *p,
                       struct fu_item *item)
{
    const struct fu_node *node = item->node;
    const struct fu_value *value = &item->node->values[0];
    const uint32_t at = p->program.input_count;
    struct hob_view *view = &p->product_view;
    int64_t stride = 1;

    if (at == HOB_FUSED_MAX_INPUTS)
        return 1;
    for (uint32_t i = 0; i < node->input_count; i++) {
        hob_tensor *tensor = fu_tensor_of(&node->inputs[i]);

        /* The op tells of it in its own words. */
        if (!tensor || layer->host->tensor_is_error(tensor) ||
            note_read(p, node, &node->inputs[i], NO_REGISTER))
            return 1;
    }
    memset(view, 0, sizeof(*view));
    view->dtype = value->dtype;
    view->rank = value->rank;
    view->flags = HOB_VIEW_CONTIGUOUS;
    for (uint32_t k = value->rank; k-- > 0;) {
        view->shape[k] = value->shape[k];
        view->strides[k] = stride;
        stride *= value->shape[k];
    }
    memset(&p->ins[at], 0, sizeof(p->ins[at]));
    spread(group, NULL, view->shape, view->strides, view->rank,
           p->run_ins[at].strides);
    p->inputs[at].dtype = value->dtype;
    p->inputs[at].kind = HOB_FUSED_FULL;
    p->inputs[at].reserved = 0;
    p->constants[at] = NULL;
    p->program.input_count++;
    p->product = item;
    p->saved_bytes += fu_bytes(fu_see_value(value));
    item->reg = (uint8_t)at;
    return 0;
}

/* The step of ITEM, or those of its body, on registers ARGS. */
static int add_own_steps(struct fu_program *p, const struct fu_item *item,
                         const uint8_t *args)
{
    struct hob_fused_step *step = &p->steps[p->program.step_count];

    if (item->class == FU_BODY || fu_is_steps(item))
        return fu_add_body(p, item, args, STEP_MARK);
    if (p->program.step_count == HOB_FUSED_MAX_STEPS)
        return 1;
    *step = item->step;
    step->kind = item->is_row ? HOB_FUSED_ROW : HOB_FUSED_FULL;
    memcpy(step->args, args, item->node->input_count);
    if (add_scalars(p, item->node, step))
        return 1;
    p->program.step_count++;
    return 0;
}

static int add_step(const struct fu_window *window, uint32_t index,
                    hob_scope *scope, struct fu_program *p,
                    struct fu_item *item)
{
    const struct fu_node *node = item->node;
    const uint64_t bytes = fu_bytes(fu_see_value(&node->values[0]));
    uint8_t args[3];

    if (item->class == FU_VIEW) {
        item->reg = operand_of(window, index, scope, p, item, &node->inputs[0]);
        return item->reg == NO_REGISTER;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        args[i] = operand_of(window, index, scope, p, item, &node->inputs[i]);
        if (args[i] == NO_REGISTER)
            return 1;
        if (maker_in(window, index, &node->inputs[i]))
            p->saved_bytes += fu_bytes(fu_see(&node->inputs[i]));
    }
    if (add_own_steps(p, item, args))
        return 1;
    item->reg = (uint8_t)(STEP_MARK | (p->program.step_count - 1));
    if (!item->is_stored) {
        p->saved_bytes += bytes;
        return 0;
    }
    if (p->program.output_count == HOB_FUSED_MAX_OUTPUTS)
        return 1;
    p->stored[p->program.output_count] = item;
    p->outputs[p->program.output_count++] = item->reg;
    p->written_bytes += bytes;
    return 0;
}

static uint8_t renumbered(const struct fu_program *p, uint8_t reg)
{
    return reg != HOB_FUSED_NONE && reg & STEP_MARK
               ? (uint8_t)(p->program.input_count + (reg & ~STEP_MARK))
               : reg;
}

/* Give steps their registers, and check that what is said to be the same for
 * a row follows from what is. */
static int finish_steps(struct fu_program *p)
{
    uint8_t kinds[HOB_FUSED_MAX_INPUTS + HOB_FUSED_MAX_STEPS];

    for (uint32_t i = 0; i < p->program.input_count; i++)
        kinds[i] = p->inputs[i].kind;
    for (uint32_t s = 0; s < p->program.step_count; s++) {
        struct hob_fused_step *step = &p->steps[s];
        uint8_t kind = HOB_FUSED_ROW;

        for (uint32_t i = 0; i < 3; i++) {
            step->args[i] = renumbered(p, step->args[i]);
            if (step->args[i] != HOB_FUSED_NONE &&
                kinds[step->args[i]] == HOB_FUSED_FULL)
                kind = HOB_FUSED_FULL;
        }
        if (step->is_reduction)
            kind = HOB_FUSED_ROW;
        if (kind != step->kind)
            return 1;
        kinds[p->program.input_count + s] = kind;
    }
    for (uint32_t i = 0; i < p->program.output_count; i++)
        p->outputs[i] = renumbered(p, p->outputs[i]);
    return 0;
}

/* ---- the space ---- */

/* Where all operands step through dimensions AT and AT + 1 as through one. */
static int is_one(const struct fu_program *p, const int64_t *shape, uint32_t at)
{
    for (uint32_t i = 0; i < p->program.input_count; i++)
        if (p->run_ins[i].strides[at] !=
            p->run_ins[i].strides[at + 1] * shape[at + 1])
            return 0;
    for (uint32_t i = 0; i < p->program.output_count; i++)
        if (p->run_outs[i].strides[at] !=
            p->run_outs[i].strides[at + 1] * shape[at + 1])
            return 0;
    return 1;
}

static void drop_dimension(struct fu_program *p, int64_t *shape, uint32_t *rank,
                           uint32_t at)
{
    const size_t bytes = (*rank - 1 - at) * sizeof(int64_t);

    --*rank;
    if (!bytes)
        return;
    memmove(shape + at, shape + at + 1, bytes);
    for (uint32_t i = 0; i < p->program.input_count; i++)
        memmove(p->run_ins[i].strides + at, p->run_ins[i].strides + at + 1,
                bytes);
    for (uint32_t i = 0; i < p->program.output_count; i++)
        memmove(p->run_outs[i].strides + at, p->run_outs[i].strides + at + 1,
                bytes);
}

static void reorder(int64_t *numbers, const uint8_t *from, uint32_t rank)
{
    int64_t before[HOB_MAX_RANK];

    memcpy(before, numbers, rank * sizeof(int64_t));
    for (uint32_t i = 0; i < rank; i++)
        numbers[i] = before[from[i]];
}

/* Dimensions of rows come last. Returns how many these are. */
static uint32_t put_rows_last(const struct fu_group *group,
                              struct fu_program *p)
{
    uint8_t from[HOB_MAX_RANK];
    uint32_t count = 0, rows = 0;

    if (!group->rows)
        return 0;
    for (uint32_t is_row = 0; is_row < 2; is_row++) {
        rows = count;
        for (uint32_t i = 0; i < group->rank; i++)
            if ((uint32_t)fu_has_dim(group->rows, group->rank - 1 - i) ==
                is_row)
                from[count++] = (uint8_t)i;
    }
    reorder(p->run.shape, from, count);
    for (uint32_t i = 0; i < p->program.input_count; i++)
        reorder(p->run_ins[i].strides, from, count);
    for (uint32_t i = 0; i < p->program.output_count; i++)
        reorder(p->run_outs[i].strides, from, count);
    return count - rows;
}

/* As few dimensions as will do, so that layouts that are alike share a
 * program: sizes of 1 go, and neighbours that all operands take as one. */
static void collapse(const struct fu_group *group, struct fu_program *p)
{
    int64_t *shape = p->run.shape;
    uint32_t rank = group->rank;
    uint32_t rows;

    memcpy(shape, group->shape, rank * sizeof(int64_t));
    rows = put_rows_last(group, p);
    for (uint32_t at = rank; at-- > 0;) {
        const int in_row = at >= rank - rows;

        if (shape[at] != 1 || rank == 1)
            continue;
        drop_dimension(p, shape, &rank, at);
        rows -= (uint32_t)in_row;
    }
    for (uint32_t at = rank; at-- > 1;) {
        const int in_row = at - 1 >= rank - rows;

        if ((!in_row && at >= rank - rows) || !is_one(p, shape, at - 1))
            continue;
        shape[at] *= shape[at - 1];
        drop_dimension(p, shape, &rank, at - 1);
        rows -= (uint32_t)in_row;
    }
    p->program.rank = (uint8_t)rank;
    p->program.row_rank = (uint8_t)rows;
}

static void place_outputs(const struct fu_group *group, struct fu_program *p)
{
    for (uint32_t i = 0; i < p->program.output_count; i++) {
        const struct fu_value *value = &p->stored[i]->node->values[0];
        int64_t strides[HOB_MAX_RANK];
        int64_t stride = 1;

        for (uint32_t k = value->rank; k-- > 0;) {
            strides[k] = stride;
            stride *= value->shape[k];
        }
        memset(&p->run_outs[i], 0, sizeof(p->run_outs[i]));
        p->outs[i].start = 0;
        spread(group, p->stored[i], value->shape, strides, value->rank,
               p->run_outs[i].strides);
    }
}

/* Bytes that P reads of input I, which may be a part of the tensor. */
static uint64_t read_of(const struct fu_program *p, uint32_t i)
{
    uint64_t bytes = hob_dtype_size(p->inputs[i].dtype);

    for (uint32_t k = 0; k < p->program.rank; k++)
        if (p->run_ins[i].strides[k])
            bytes *= (uint64_t)p->run.shape[k];
    return bytes;
}

/* Count for each read how many are of the same value. */
static void count_users(const struct fu_window *window, struct fu_program *p)
{
    for (uint32_t i = 0; i < p->read_count; i++) {
        struct fu_read *read = &p->reads[i];
        const struct fu_input *input = fu_read_input(window, read);

        for (uint32_t k = 0; k < p->read_count; k++)
            read->users +=
                fu_read_input(window, &p->reads[k])->value == input->value;
    }
}

int fu_program_make(const struct fu_window *window, uint32_t index,
                    int is_whole, hob_scope *scope, struct fu_program *p)
{
    const struct fu_group *group = &window->groups[index];

    memset(&p->program, 0, sizeof(p->program));
    memset(&p->run, 0, sizeof(p->run));
    p->product = NULL;
    p->read_count = p->op_count = 0;
    p->read_bytes = p->written_bytes = p->saved_bytes = 0;
    for (uint16_t at = group->first; at < FU_WINDOW;
         at = window->items[at].next) {
        struct fu_item *item = &window->items[at];

        if (at + 1 == group->product) {
            if (is_whole && add_product(window->layer, group, p, item))
                return 1;
            p->op_count += (uint32_t)is_whole;
            continue;
        }
        if (add_step(window, index, scope, p, item))
            return 1;
        p->op_count++;
    }
    if (!p->program.output_count || finish_steps(p))
        return 1;
    place_outputs(group, p);
    collapse(group, p);
    count_users(window, p);
    for (uint32_t i = 0; i < p->program.input_count; i++)
        if (p->ins[i].tensor)
            p->read_bytes += read_of(p, i);
    for (uint32_t i = 0; p->product && i < p->product->node->input_count; i++)
        p->read_bytes += fu_bytes(fu_see(&p->product->node->inputs[i]));
    p->program.struct_size = sizeof(p->program);
    p->program.step_size = sizeof(p->steps[0]);
    p->program.inputs = p->inputs;
    p->program.steps = p->steps;
    p->program.outputs = p->outputs;
    p->run.struct_size = sizeof(p->run);
    p->run.inputs = p->run_ins;
    p->run.outputs = p->run_outs;
    p->run.scalars = p->scalars;
    return fu_program_lay(window, p);
}

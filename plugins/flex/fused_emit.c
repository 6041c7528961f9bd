/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_emit.c - the instructions of a plan's passes: steps one by one, and
 * what each reads.
 */
#include "fused_plan.h"

#include <hob/ops.h>

#include <string.h>

struct fused_instruction *fused_emit(struct builder *b, uint32_t kind)
{
    struct fused_plan *plan = b->plan;
    struct fused_instruction *made;

    if (plan->instruction_count == FUSED_INSTRUCTIONS) {
        b->is_full = 1;
        plan->instruction_count--;
    }
    made = &plan->instructions[plan->instruction_count++];
    memset(made, 0, sizeof(*made));
    made->kind = (uint8_t)kind;
    for (int i = 0; i < 3; i++)
        made->args[i] = FUSED_NO_VALUE;
    return made;
}

/* Register REG as an operand of a step of KIND. */
static uint16_t operand(struct builder *b, uint32_t reg, uint32_t kind)
{
    uint16_t value = (uint16_t)reg;

    if (kind == HOB_FUSED_FULL && fused_is_row(b, reg))
        value = fused_value_expanded(b, reg);
    b->plan->values[value].is_used = 1;
    return value;
}

static uint16_t attribute(struct builder *b, const struct hob_fused_step *step,
                          uint32_t index, uint32_t dtype, uint32_t bound)
{
    return fused_value_scalar(b, step->scalar + index, dtype, bound, 1);
}

/* The kernel's operands, in its order. */
static void set_operands(struct builder *b, const struct hob_fused_step *step,
                         struct fused_instruction *made)
{
    const struct fused_op *op = fused_op_find(step->op);
    const uint32_t dtype = fused_operand_dtype(b, step);
    const uint32_t wide =
        dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    const int is_channels = step->op == HOB_OP_GROUP_NORM;
    uint16_t tensors[3] = {FUSED_NO_VALUE, FUSED_NO_VALUE, FUSED_NO_VALUE};
    uint16_t *args = made->args;

    for (uint32_t i = 0; i < 3; i++)
        if (step->args[i] != HOB_FUSED_NONE)
            tensors[i] = operand(b, step->args[i],
                                 is_channels && i ? HOB_FUSED_ROW : step->kind);
    memcpy(args, tensors, sizeof(tensors));
    switch (op->form) {
    case FUSED_SCALAR:
    case FUSED_POWER:
        args[1] = attribute(b, step, 0, dtype, 0);
        break;
    case FUSED_SCALAR_FIRST:
        args[0] = attribute(b, step, 0, dtype, 0);
        args[1] = tensors[0];
        break;
    case FUSED_CLAMP:
        args[1] = attribute(b, step, 0, dtype, 1);
        args[2] = attribute(b, step, 1, dtype, 2);
        break;
    case FUSED_FILL:
        args[0] = tensors[1];
        args[1] = attribute(b, step, 0, dtype, 0);
        args[2] = tensors[0];
        break;
    case FUSED_WIDE:
        for (uint32_t i = 0; i < step->scalar_count && i < 2; i++)
            args[1 + i] = attribute(b, step, i, wide, 0);
        break;
    case FUSED_BACKWARD:
        args[2] = attribute(b, step, 0, wide, 0);
        break;
    default:
        break;
    }
}

/* The half that what step S gives is rounded to, or 0: what is only stored is
 * rounded then. */
static uint8_t half_of(struct builder *b, uint32_t s)
{
    const uint32_t reg = fused_inputs_of(b) + s;

    if (!flex_is_half(fused_step_at(b, s)->dtype))
        return 0;
    for (uint32_t t = s + 1; t < b->program->step_count; t++)
        for (uint32_t i = 0; i < 3; i++)
            if (fused_step_at(b, t)->args[i] == reg) {
                b->plan->narrow = 1;
                return fused_step_at(b, s)->dtype;
            }
    return 0;
}

/* An op along rows, on blocks of whole ones. */
static void emit_along(struct builder *b, uint32_t s)
{
    const struct hob_fused_step *step = fused_step_at(b, s);
    struct fused_instruction *made = fused_emit(b, FUSED_DO_ALONG);

    made->step = (uint8_t)s;
    made->out = (uint16_t)(fused_inputs_of(b) + s);
    set_operands(b, step, made);
    made->fn.along = fused_op_along(step->op);
    made->number = FUSED_NO_VALUE;
    if (step->scalar_count)
        made->number = fused_value_scalar(b, step->scalar, HOB_DTYPE_F64, 0, 0);
    made->round = half_of(b, s);
    b->plan->is_along = 1;
    b->plan->cost += 12;
}

static void emit_step(struct builder *b, uint32_t s)
{
    const struct hob_fused_step *step = fused_step_at(b, s);
    const struct fused_op *op = fused_op_find(step->op);
    const int is_cast = op->form == FUSED_CAST;
    struct fused_instruction *made =
        fused_emit(b, is_cast ? FUSED_DO_CAST : FUSED_DO_MAP);
    const uint32_t from = fused_dtype(fused_operand_dtype(b, step));

    made->step = (uint8_t)s;
    made->out = (uint16_t)(fused_inputs_of(b) + s);
    set_operands(b, step, made);
    if (is_cast && flex_is_half(step->dtype)) {
        made->round = step->dtype;
        b->plan->narrow = 1;
    } else if (!(op->flags & FUSED_EXACT)) {
        made->round = half_of(b, s);
    }
    if (is_cast)
        made->fn.cast = b->kernels->cast[step->dtype][from];
    else
        made->fn.map = fused_op_map(b->kernels, step, from);
    made->is_power = op->form == FUSED_POWER;
    if (is_cast && !made->round) /* of a half it is the number itself */
        made->fn.cast = b->kernels->cast[fused_dtype(step->dtype)][from];
    if (step->kind == HOB_FUSED_FULL)
        b->plan->cost += op->flags & FUSED_DEAR ? 12 : 1;
}

static void emit_fold(struct builder *b, uint32_t s, uint32_t p)
{
    const struct hob_fused_step *step = fused_step_at(b, s);
    const struct fused_op *op = fused_op_find(step->op);
    struct fused_plan *plan = b->plan;
    struct fused_instruction *made = fused_emit(b, FUSED_DO_FOLD);
    struct fused_fold *fold = &plan->folds[plan->fold_count];
    const uint32_t dtype = fused_operand_dtype(b, step);

    made->step = (uint8_t)s;
    made->fold = (uint8_t)plan->fold_count++;
    made->out = (uint16_t)(fused_inputs_of(b) + s);
    made->args[0] = operand(b, step->args[0], HOB_FUSED_FULL);
    flex_reduction_init(&fold->is, b->kernels, op->kernel,
                        op->flags & FUSED_MEAN, dtype, step->dtype);
    fold->out = made->out;
    fold->pass = (uint8_t)p;
    /* A greatest half is an f32 already. */
    if (flex_is_half(step->dtype) && !(op->flags & FUSED_EXACT))
        fold->half = step->dtype;
    else
        fold->is.finish =
            b->kernels->cast[fused_dtype(step->dtype)][fold->is.acc_dtype];
    fold->offset = plan->row_bytes;
    plan->row_bytes += sizeof(union flex_cell);
    plan->cost += 1;
}

static void emit_rows(struct builder *b, uint32_t p)
{
    for (uint32_t s = 0; s < b->program->step_count; s++) {
        const struct hob_fused_step *step = fused_step_at(b, s);

        if ((b->live & fused_bit(s)) && step->kind == HOB_FUSED_ROW &&
            !step->is_reduction && b->level[fused_inputs_of(b) + s] == p)
            emit_step(b, s);
    }
}

int fused_is_fold_of(const struct builder *b, uint32_t s, uint32_t p)
{
    return (b->live & fused_bit(s)) && fused_step_at(b, s)->is_reduction &&
           b->level[fused_inputs_of(b) + s] == p + 1;
}

static void emit_full(struct builder *b, uint32_t p)
{
    uint32_t s = 0;

    while (s < b->program->step_count) {
        uint32_t taken = 1;

        if (fused_is_fold_of(b, s, p)) {
            emit_fold(b, s, p);
        } else if (b->needed[p] & fused_bit(s)) {
            taken = fused_chain(b, s, p);
            if (!taken) {
                if (fused_is_along(b, s))
                    emit_along(b, s);
                else
                    emit_step(b, s);
                taken = 1;
            }
        }
        s += taken;
    }
}

/* The inputs that FULL steps of pass P with numbers above AFTER read; those of
 * folds too. */
uint16_t fused_inputs_read(const struct builder *b, uint32_t p, int after)
{
    uint16_t inputs = 0;

    for (int s = after + 1; s < (int)b->program->step_count; s++) {
        const struct hob_fused_step *step = fused_step_at(b, (uint32_t)s);

        if (!(b->needed[p] & fused_bit((uint32_t)s)) &&
            !fused_is_fold_of(b, (uint32_t)s, p))
            continue;
        for (uint32_t i = 0; i < 3; i++)
            if (step->args[i] < fused_inputs_of(b) &&
                !fused_is_row(b, step->args[i]))
                inputs |= (uint16_t)(1u << step->args[i]);
    }
    return inputs;
}

void fused_emit_pass(struct builder *b, uint32_t p)
{
    struct fused_plan *plan = b->plan;
    struct fused_pass *pass = &plan->passes[p];

    pass->row_first = plan->instruction_count;
    emit_rows(b, p);
    pass->row_end = plan->instruction_count;
    pass->first = plan->instruction_count;
    pass->expanded_first = plan->expanded_count;
    if (p < b->passes) {
        emit_full(b, p);
        pass->inputs = fused_inputs_read(b, p, -1);
    }
    pass->expanded_end = plan->expanded_count;
    pass->end = plan->instruction_count;
}

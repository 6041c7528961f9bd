/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_plan.c - a program as passes of instructions.
 *
 * The level of a FULL register is the first pass that can compute it, that of
 * a ROW register the first that can use it: a reduction's is one more than
 * that of what it goes over. A pass computes the reductions and outputs of its
 * level and what they need. What it needs of an earlier pass is kept, or
 * computed again where FUSED_AGAIN is set. FUSED_LATE: outputs are stored in
 * the last pass, when no input is read any more, as they may lie over one.
 */
#include "fused_plan.h"

#include <string.h>

static const struct hob_fused_step *step_at(const struct builder *b,
                                            uint32_t index)
{
    return hob_fused_step_at(b->program, index);
}

static uint32_t inputs_of(const struct builder *b)
{
    return b->program->input_count;
}

static int is_along(const struct builder *b, uint32_t s)
{
    return fused_op_find(step_at(b, s)->op)->form == FUSED_ALONG;
}

int fused_is_row(const struct builder *b, uint32_t reg)
{
    const uint32_t inputs = inputs_of(b);

    return (reg < inputs ? b->program->inputs[reg].kind
                         : step_at(b, reg - inputs)->kind) == HOB_FUSED_ROW;
}

uint32_t fused_reg_dtype(const struct builder *b, uint32_t reg)
{
    const uint32_t inputs = inputs_of(b);

    return reg < inputs ? b->program->inputs[reg].dtype
                        : step_at(b, reg - inputs)->dtype;
}

/* ---- levels and passes ---- */

/* The steps that outputs depend on. */
static uint64_t live_steps(const struct builder *b)
{
    const struct hob_fused_program *program = b->program;
    uint64_t live = 0;

    for (uint32_t i = 0; i < program->output_count; i++)
        live |= fused_bit(program->outputs[i] - inputs_of(b));
    for (uint32_t s = program->step_count; s-- > 0;)
        for (uint32_t i = 0; i < 3 && (live & fused_bit(s)); i++) {
            const uint32_t reg = step_at(b, s)->args[i];

            if (reg != HOB_FUSED_NONE && reg >= inputs_of(b))
                live |= fused_bit(reg - inputs_of(b));
        }
    return live;
}

static void find_levels(struct builder *b)
{
    const uint32_t inputs = inputs_of(b);

    b->live = live_steps(b);
    b->passes = 1;
    for (uint32_t s = 0; s < b->program->step_count; s++) {
        const struct hob_fused_step *step = step_at(b, s);
        uint8_t level = 0;

        for (uint32_t i = 0; i < 3; i++)
            if (step->args[i] != HOB_FUSED_NONE &&
                b->level[step->args[i]] > level)
                level = b->level[step->args[i]];
        if ((b->live & fused_bit(s)) &&
            (step->is_reduction || step->kind == HOB_FUSED_FULL) &&
            level + 1u > b->passes)
            b->passes = level + 1u;
        b->level[inputs + s] = (uint8_t)(level + step->is_reduction);
    }
}

/* Whether REG is a FULL step; its number. */
static int is_full_step(const struct builder *b, uint32_t reg,
                        uint32_t *out_step)
{
    if (reg == HOB_FUSED_NONE || reg < inputs_of(b) || fused_is_row(b, reg))
        return 0;
    *out_step = reg - inputs_of(b);
    return 1;
}

/* Step S's value is wanted in pass P. */
static void want(struct builder *b, uint32_t p, uint32_t s)
{
    const uint32_t level = b->level[inputs_of(b) + s];

    if (level < p && !(b->flags & FUSED_AGAIN)) {
        b->kept |= fused_bit(s);
        b->needed[level] |= fused_bit(s);
    } else {
        b->needed[p] |= fused_bit(s);
    }
}

/* What each pass computes, the last one first: what it wants of earlier ones
 * is known before those. */
static void find_needed(struct builder *b)
{
    const struct hob_fused_program *program = b->program;
    uint32_t t;

    for (uint32_t i = 0; i < program->output_count; i++) {
        const uint32_t reg = program->outputs[i];
        const uint32_t p =
            b->flags & FUSED_LATE ? b->passes - 1 : b->level[reg];

        b->output_pass[i] = FUSED_NO_PASS;
        if (!is_full_step(b, reg, &t))
            continue;
        b->output_pass[i] = (uint8_t)p;
        want(b, p, t);
    }
    for (uint32_t p = b->passes; p-- > 0;) {
        for (uint32_t s = 0; s < program->step_count; s++) {
            const struct hob_fused_step *step = step_at(b, s);

            if ((b->live & fused_bit(s)) && step->is_reduction &&
                b->level[inputs_of(b) + s] == p + 1 &&
                is_full_step(b, step->args[0], &t))
                want(b, p, t);
        }
        for (uint32_t s = program->step_count; s-- > 0;)
            for (uint32_t i = 0; i < 3 && (b->needed[p] & fused_bit(s)); i++)
                if (is_full_step(b, step_at(b, s)->args[i], &t))
                    want(b, p, t);
    }
}

/* ---- values ---- */

static uint16_t new_value(struct builder *b, uint32_t kind, uint32_t dtype,
                          uint32_t of)
{
    struct fused_plan *plan = b->plan;
    struct fused_value *value = &plan->values[plan->value_count];

    value->kind = (uint8_t)kind;
    value->dtype = (uint8_t)dtype;
    value->size = (uint8_t)hob_dtype_size(dtype);
    value->of = (uint16_t)of;
    return plan->value_count++;
}

static void begin_values(struct builder *b)
{
    const uint32_t inputs = inputs_of(b);
    const uint32_t count = inputs + b->program->step_count;

    for (uint32_t reg = 0; reg < count; reg++) {
        uint32_t kind = FUSED_SLOT;

        if (fused_is_row(b, reg))
            kind = FUSED_ROW;
        else if (reg < inputs)
            kind = FUSED_INPUT;
        else if (b->kept & fused_bit(reg - inputs))
            kind = FUSED_KEPT;
        new_value(b, kind, fused_dtype(fused_reg_dtype(b, reg)), reg);
        b->expanded[reg] = FUSED_NO_VALUE;
    }
}

uint16_t fused_value_expanded(struct builder *b, uint32_t reg)
{
    if (b->expanded[reg] == FUSED_NO_VALUE) {
        b->expanded[reg] = new_value(b, FUSED_EXPANDED,
                                     fused_dtype(fused_reg_dtype(b, reg)), reg);
        b->plan->expanded[b->plan->expanded_count++] = b->expanded[reg];
    }
    return b->expanded[reg];
}

/* The number of the cell that is like WANTED. */
static uint32_t cell_of(struct builder *b, struct fused_cell wanted)
{
    struct fused_plan *plan = b->plan;
    uint32_t i = 0;

    for (; i < plan->cell_count; i++)
        if (memcmp(&plan->cells[i], &wanted, sizeof(wanted)) == 0)
            return i;
    plan->cells[i] = wanted;
    b->filled[i] = FUSED_NO_VALUE;
    b->single[i] = FUSED_NO_VALUE;
    plan->cell_count++;
    return i;
}

uint16_t fused_value_scalar(struct builder *b, uint32_t scalar, uint32_t dtype,
                            uint32_t bound, int is_filled)
{
    const struct fused_cell wanted = {(uint8_t)scalar, (uint8_t)dtype,
                                      (uint8_t)bound};
    const uint32_t cell = cell_of(b, wanted);
    uint16_t *value = is_filled ? &b->filled[cell] : &b->single[cell];

    if (*value == FUSED_NO_VALUE)
        *value = new_value(b, is_filled ? FUSED_FILLED : FUSED_CELL,
                           fused_dtype(dtype), cell);
    return *value;
}

/* ---- instructions ---- */

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
    uint16_t tensors[3] = {FUSED_NO_VALUE, FUSED_NO_VALUE, FUSED_NO_VALUE};
    uint16_t *args = made->args;

    for (uint32_t i = 0; i < 3; i++)
        if (step->args[i] != HOB_FUSED_NONE)
            tensors[i] = operand(b, step->args[i], step->kind);
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
    const uint32_t reg = inputs_of(b) + s;

    if (!flex_is_half(step_at(b, s)->dtype))
        return 0;
    for (uint32_t t = s + 1; t < b->program->step_count; t++)
        for (uint32_t i = 0; i < 3; i++)
            if (step_at(b, t)->args[i] == reg) {
                b->plan->narrow = 1;
                return step_at(b, s)->dtype;
            }
    return 0;
}

/* An op along rows, on blocks of whole ones. */
static void emit_along(struct builder *b, uint32_t s)
{
    const struct hob_fused_step *step = step_at(b, s);
    struct fused_instruction *made = fused_emit(b, FUSED_DO_ALONG);

    made->step = (uint8_t)s;
    made->out = (uint16_t)(inputs_of(b) + s);
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
    const struct hob_fused_step *step = step_at(b, s);
    const struct fused_op *op = fused_op_find(step->op);
    const int is_cast = op->form == FUSED_CAST;
    struct fused_instruction *made =
        fused_emit(b, is_cast ? FUSED_DO_CAST : FUSED_DO_MAP);
    const uint32_t from = fused_dtype(fused_operand_dtype(b, step));

    made->step = (uint8_t)s;
    made->out = (uint16_t)(inputs_of(b) + s);
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
    const struct hob_fused_step *step = step_at(b, s);
    const struct fused_op *op = fused_op_find(step->op);
    struct fused_plan *plan = b->plan;
    struct fused_instruction *made = fused_emit(b, FUSED_DO_FOLD);
    struct fused_fold *fold = &plan->folds[plan->fold_count];
    const uint32_t dtype = fused_operand_dtype(b, step);

    made->step = (uint8_t)s;
    made->fold = (uint8_t)plan->fold_count++;
    made->out = (uint16_t)(inputs_of(b) + s);
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
        const struct hob_fused_step *step = step_at(b, s);

        if ((b->live & fused_bit(s)) && step->kind == HOB_FUSED_ROW &&
            !step->is_reduction && b->level[inputs_of(b) + s] == p)
            emit_step(b, s);
    }
}

int fused_is_fold_of(const struct builder *b, uint32_t s, uint32_t p)
{
    return (b->live & fused_bit(s)) && step_at(b, s)->is_reduction &&
           b->level[inputs_of(b) + s] == p + 1;
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
                if (is_along(b, s))
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
static uint16_t inputs_read(const struct builder *b, uint32_t p, int after)
{
    uint16_t inputs = 0;

    for (int s = after + 1; s < (int)b->program->step_count; s++) {
        const struct hob_fused_step *step = step_at(b, (uint32_t)s);

        if (!(b->needed[p] & fused_bit((uint32_t)s)) &&
            !fused_is_fold_of(b, (uint32_t)s, p))
            continue;
        for (uint32_t i = 0; i < 3; i++)
            if (step->args[i] < inputs_of(b) && !fused_is_row(b, step->args[i]))
                inputs |= (uint16_t)(1u << step->args[i]);
    }
    return inputs;
}

static void emit_pass(struct builder *b, uint32_t p)
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
        pass->inputs = inputs_read(b, p, -1);
    }
    pass->expanded_end = plan->expanded_count;
    pass->end = plan->instruction_count;
}

/* The inputs that nothing but the weights and biases of ops along rows is. */
static void find_vectors(struct builder *b)
{
    uint32_t vectors = 0, others = 0;

    for (uint32_t s = 0; s < b->program->step_count; s++)
        for (uint32_t i = 0; i < 3; i++) {
            const uint32_t reg = step_at(b, s)->args[i];

            if (reg < inputs_of(b))
                *(i && is_along(b, s) ? &vectors : &others) |= 1u << reg;
        }
    b->plan->vectors = (uint16_t)(vectors & ~others);
}

static void set_outputs(struct builder *b)
{
    const struct hob_fused_program *program = b->program;
    struct fused_plan *plan = b->plan;

    for (uint32_t i = 0; i < program->output_count; i++) {
        struct fused_output *out = &plan->outputs[i];
        const uint32_t p = b->output_pass[i];

        out->value = program->outputs[i];
        out->dtype = (uint8_t)fused_reg_dtype(b, out->value);
        out->is_row = p == FUSED_NO_PASS;
        plan->narrow |= flex_is_half(out->dtype);
        if (out->is_row)
            continue;
        out->later = inputs_read(b, p, (int)(out->value - inputs_of(b)));
        out->is_chained = (b->chained >> (out->value - inputs_of(b))) & 1;
        plan->passes[p].outputs |= (uint16_t)(1u << i);
    }
}

hob_status fused_plan_build(struct fused_plan *plan,
                            const struct flex_kernels *kernels,
                            const struct hob_fused_program *program,
                            uint32_t flags)
{
    struct builder b;

    memset(plan, 0, sizeof(*plan));
    memset(&b, 0, sizeof(b));
    b.plan = plan;
    b.kernels = kernels;
    b.program = program;
    b.flags = flags;
    find_levels(&b);
    find_needed(&b);
    begin_values(&b);
    plan->register_count = plan->value_count;
    plan->pass_count = (uint16_t)b.passes;
    plan->input_count = program->input_count;
    plan->output_count = program->output_count;
    find_vectors(&b);
    for (uint32_t p = 0; p <= b.passes; p++)
        emit_pass(&b, p);
    set_outputs(&b);
    fused_place(&b);
    return b.is_full ? HOB_ERR_UNSUPPORTED : HOB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_plan.c - a program as passes of instructions.
 *
 * The level of a FULL register is the first pass that can compute it, that of
 * a ROW register the first that can use it: a reduction's is one more than
 * that of what it goes over. A pass computes the reductions and outputs of its
 * level and what they need. What it needs of an earlier pass is kept, or, where
 * FUSED_AGAIN is set and it is not dear, computed again. FUSED_LATE: outputs
 * are stored in the last pass, when no input is read any more, as they may lie
 * over one.
 */
#include "fused_plan.h"

#include <hob/ops.h>

#include <string.h>

int fused_is_row(const struct builder *b, uint32_t reg)
{
    const uint32_t inputs = fused_inputs_of(b);

    return (reg < inputs
                ? b->program->inputs[reg].kind
                : fused_step_at(b, reg - inputs)->kind) == HOB_FUSED_ROW;
}

uint32_t fused_reg_dtype(const struct builder *b, uint32_t reg)
{
    const uint32_t inputs = fused_inputs_of(b);

    return reg < inputs ? b->program->inputs[reg].dtype
                        : fused_step_at(b, reg - inputs)->dtype;
}

/* ---- levels and passes ---- */

/* The steps that outputs depend on. */
static uint64_t live_steps(const struct builder *b)
{
    const struct hob_fused_program *program = b->program;
    uint64_t live = 0;

    for (uint32_t i = 0; i < program->output_count; i++)
        live |= fused_bit(program->outputs[i] - fused_inputs_of(b));
    for (uint32_t s = program->step_count; s-- > 0;)
        for (uint32_t i = 0; i < 3 && (live & fused_bit(s)); i++) {
            const uint32_t reg = fused_step_at(b, s)->args[i];

            if (reg != HOB_FUSED_NONE && reg >= fused_inputs_of(b))
                live |= fused_bit(reg - fused_inputs_of(b));
        }
    return live;
}

static void find_levels(struct builder *b)
{
    const uint32_t inputs = fused_inputs_of(b);

    b->live = live_steps(b);
    b->passes = 1;
    for (uint32_t s = 0; s < b->program->step_count; s++) {
        const struct hob_fused_step *step = fused_step_at(b, s);
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
    if (reg == HOB_FUSED_NONE || reg < fused_inputs_of(b) ||
        fused_is_row(b, reg))
        return 0;
    *out_step = reg - fused_inputs_of(b);
    return 1;
}

/* Step S's value is wanted in pass P. */
static void want(struct builder *b, uint32_t p, uint32_t s)
{
    const uint32_t level = b->level[fused_inputs_of(b) + s];
    const int is_dear =
        fused_op_find(fused_step_at(b, s)->op)->flags & FUSED_DEAR;

    if (level < p && (is_dear || !(b->flags & FUSED_AGAIN))) {
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
            const struct hob_fused_step *step = fused_step_at(b, s);

            if ((b->live & fused_bit(s)) && step->is_reduction &&
                b->level[fused_inputs_of(b) + s] == p + 1 &&
                is_full_step(b, step->args[0], &t))
                want(b, p, t);
        }
        for (uint32_t s = program->step_count; s-- > 0;)
            for (uint32_t i = 0; i < 3 && (b->needed[p] & fused_bit(s)); i++)
                if (is_full_step(b, fused_step_at(b, s)->args[i], &t))
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
    const uint32_t inputs = fused_inputs_of(b);
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

/* ---- all ---- */

/* The inputs that nothing but the weights and biases of ops along rows is. */
static void find_vectors(struct builder *b)
{
    uint32_t vectors = 0, channels = 0, others = 0;

    for (uint32_t s = 0; s < b->program->step_count; s++)
        for (uint32_t i = 0; i < 3; i++) {
            const uint32_t reg = fused_step_at(b, s)->args[i];

            if (reg >= fused_inputs_of(b))
                continue;
            if (i && fused_step_at(b, s)->op == HOB_OP_GROUP_NORM)
                channels |= 1u << reg;
            else
                *(i && fused_is_along(b, s) ? &vectors : &others) |= 1u << reg;
        }
    b->plan->vectors = (uint16_t)(vectors & ~(channels | others));
    b->plan->channels = (uint16_t)(channels & ~(vectors | others));
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
        out->later =
            fused_inputs_read(b, p, (int)(out->value - fused_inputs_of(b)));
        out->is_chained = (b->chained >> (out->value - fused_inputs_of(b))) & 1;
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
        fused_emit_pass(&b, p);
    set_outputs(&b);
    fused_place(&b);
    return b.is_full ? HOB_ERR_UNSUPPORTED : HOB_OK;
}

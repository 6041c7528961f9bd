/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_slots.c - where values lie: slots are shared by values of one size of
 * which no pass needs two at a time.
 */
#include "fused_plan.h"

#include <string.h>

enum { NEVER = -1, TO_THE_END = 1 << 8 };

/* The last step of each pass that reads what step S gives; TO_THE_END if the
 * pass stores it at its end. */
struct use {
    int last[HOB_FUSED_MAX_STEPS + 1];
};

static void note_use(const struct builder *b, struct use *uses, uint32_t reg,
                     uint32_t p, int at)
{
    const uint32_t inputs = b->program->input_count;

    if (reg == HOB_FUSED_NONE || reg < inputs || fused_is_row(b, reg))
        return;
    if (uses[reg - inputs].last[p] < at)
        uses[reg - inputs].last[p] = at;
}

static void find_uses(const struct builder *b, struct use *uses)
{
    for (uint32_t s = 0; s < b->program->step_count; s++)
        for (uint32_t p = 0; p < b->passes; p++)
            uses[s].last[p] = NEVER;
    for (uint32_t s = 0; s < b->program->step_count; s++) {
        const struct hob_fused_step *step = hob_fused_step_at(b->program, s);
        const uint32_t level = b->level[b->program->input_count + s];

        for (uint32_t p = 0; p < b->passes; p++) {
            if (!(b->needed[p] & fused_bit(s)) &&
                !((b->live & fused_bit(s)) && step->is_reduction &&
                  level == p + 1))
                continue;
            for (uint32_t i = 0; i < 3; i++)
                note_use(b, uses, step->args[i], p, (int)s);
            note_use(b, uses, b->program->input_count + s, p, (int)s);
        }
    }
    for (uint32_t i = 0; i < b->program->output_count; i++)
        if (b->output_pass[i] != FUSED_NO_PASS)
            note_use(b, uses, b->program->outputs[i], b->output_pass[i],
                     TO_THE_END);
}

/* Whether EARLY, a step before LATE, is still needed when LATE has its value.
 * A kernel's result may lie over its operand of the same size. */
static int meet(const struct builder *b, const struct use *uses, uint32_t early,
                uint32_t late)
{
    for (uint32_t p = 0; p < b->passes; p++)
        if ((b->needed[p] & fused_bit(early)) &&
            (b->needed[p] & fused_bit(late)) && uses[early].last[p] > (int)late)
            return 1;
    return 0;
}

/* The first slot of VALUE's size that is free while step S needs it. */
static void place_step(struct builder *b, const struct use *uses, uint32_t s)
{
    const uint32_t inputs = b->program->input_count;
    struct fused_value *values = b->plan->values + inputs;
    struct fused_value *value = &values[s];

    for (uint32_t t = 0; t < s; t++) {
        const uint32_t offset = values[t].offset;
        int is_free = values[t].kind == FUSED_SLOT &&
                      values[t].size == value->size && (b->live & fused_bit(t));

        for (uint32_t other = 0; other < s && is_free; other++)
            if (values[other].kind == FUSED_SLOT &&
                (b->live & fused_bit(other)) && values[other].offset == offset)
                is_free = !meet(b, uses, other, s);
        if (is_free) {
            value->offset = offset;
            return;
        }
    }
    value->offset = b->plan->slot_bytes;
    b->plan->slot_bytes += value->size;
}

void fused_place(struct builder *b)
{
    struct fused_plan *plan = b->plan;
    const uint32_t inputs = b->program->input_count;
    struct use uses[HOB_FUSED_MAX_STEPS];

    find_uses(b, uses);
    for (uint32_t s = 0; s < b->program->step_count; s++)
        if (plan->values[inputs + s].kind == FUSED_SLOT &&
            (b->live & fused_bit(s)))
            place_step(b, uses, s);
    for (uint32_t i = 0; i < plan->value_count; i++) {
        struct fused_value *value = &plan->values[i];
        uint32_t *area = value->kind == FUSED_KEPT  ? &plan->kept_bytes
                         : value->kind == FUSED_ROW ? &plan->row_bytes
                                                    : &plan->slot_bytes;

        if (value->kind == FUSED_SLOT || value->kind == FUSED_INPUT ||
            value->kind == FUSED_CELL)
            continue;
        value->offset = *area;
        /* Rows' values are few: let each be on a boundary. */
        *area += value->kind == FUSED_ROW ? (uint32_t)sizeof(union flex_cell)
                                          : value->size;
    }
    plan->narrow_offset = plan->slot_bytes;
    if (plan->narrow)
        plan->slot_bytes += 2;
}

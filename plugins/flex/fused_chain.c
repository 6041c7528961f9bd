/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_chain.c - cheap steps on floats that follow each other as one
 * instruction: a chain of links (kernels/chain.h), whose accumulator holds what
 * the step before gave. A value goes to memory only where more than the next
 * step wants it.
 */
#include "fused_plan.h"

#include <string.h>

struct chain {
    struct builder *b;
    uint32_t p;
    uint32_t held;  /* the register that the accumulator holds */
    uint32_t dtype; /* of all values, as in slots */
    uint32_t first; /* link */
};

enum { NO_STEP = HOB_FUSED_MAX_STEPS };

/* What links can do of step S, with the accumulator in *OUT_DTYPE. */
static int is_linkable(const struct builder *b, uint32_t s, uint32_t *out_dtype)
{
    const struct hob_fused_step *step = hob_fused_step_at(b->program, s);
    const struct fused_op *op = fused_op_find(step->op);
    const uint32_t dtype = fused_dtype(step->dtype);

    *out_dtype = dtype;
    if (op->link == FLEX_LINK_NONE ||
        (dtype != HOB_DTYPE_F32 && dtype != HOB_DTYPE_F64))
        return 0;
    /* Of casts those from one kind of f32 to another. */
    return op->form != FUSED_CAST ||
           (dtype == HOB_DTYPE_F32 &&
            fused_dtype(fused_operand_dtype(b, step)) == HOB_DTYPE_F32);
}

/* The next step after S in pass P that a chain may go on with. */
static uint32_t next_link(const struct builder *b, uint32_t s, uint32_t p,
                          uint32_t dtype)
{
    uint32_t found;

    while (++s < b->program->step_count) {
        if (fused_is_fold_of(b, s, p))
            return NO_STEP;
        if (!(b->needed[p] & fused_bit(s)))
            continue;
        return is_linkable(b, s, &found) && found == dtype ? s : NO_STEP;
    }
    return NO_STEP;
}

/* ---- links ---- */

static int is_output(const struct builder *b, uint32_t reg)
{
    for (uint32_t i = 0; i < b->program->output_count; i++)
        if (b->program->outputs[i] == reg)
            return 1;
    return 0;
}

static void add_link(struct chain *chain, uint32_t link, uint32_t value)
{
    struct fused_plan *plan = chain->b->plan;
    struct flex_link *made;

    if (plan->link_count == FUSED_LINKS) {
        chain->b->is_full = 1;
        plan->link_count--;
    }
    made = &plan->links[plan->link_count++];
    memset(made, 0, sizeof(*made)); /* what is not used is at any place */
    made->link = (uint8_t)link;
    if (value == FUSED_NO_VALUE)
        return;
    made->value = (uint16_t)value;
    made->is_single = plan->values[value].kind == FUSED_CELL;
}

/* The link that does FIRST, then SECOND; FLEX_LINK_NONE without one. */
static uint32_t pair_of(uint32_t first, uint32_t second)
{
    static const uint8_t pairs[][3] = {
        {FLEX_LINK_MUL, FLEX_LINK_ADD, FLEX_LINK_MUL_ADD},
        {FLEX_LINK_MUL, FLEX_LINK_SUB, FLEX_LINK_MUL_SUB},
        {FLEX_LINK_ADD, FLEX_LINK_MUL, FLEX_LINK_ADD_MUL},
        {FLEX_LINK_SUB, FLEX_LINK_MUL, FLEX_LINK_SUB_MUL},
        {FLEX_LINK_SUB, FLEX_LINK_DIV, FLEX_LINK_SUB_DIV},
        {FLEX_LINK_DIV, FLEX_LINK_ADD, FLEX_LINK_DIV_ADD},
        {FLEX_LINK_ADD, FLEX_LINK_RELU, FLEX_LINK_ADD_RELU},
        {FLEX_LINK_SUB, FLEX_LINK_RELU, FLEX_LINK_SUB_RELU},
        {FLEX_LINK_MUL, FLEX_LINK_RELU, FLEX_LINK_MUL_RELU},
        {FLEX_LINK_RELU, FLEX_LINK_MUL, FLEX_LINK_RELU_MUL},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (pairs[i][0] == first && pairs[i][1] == second)
            return pairs[i][2];
    return FLEX_LINK_NONE;
}

/* LINK with VALUE, as a part of the link before where that can be. */
static void append(struct chain *chain, uint32_t link, uint32_t value)
{
    struct fused_plan *plan = chain->b->plan;
    struct flex_link *last = NULL, before;
    uint32_t both;

    if (plan->link_count > chain->first)
        last = &plan->links[plan->link_count - 1];
    if (!last || last->link == FLEX_LINK_STORE ||
        (last->moves & FLEX_LINK_GIVES)) {
        add_link(chain, link, value);
        return;
    }
    if (last->link == FLEX_LINK_LOAD && link != FLEX_LINK_STORE &&
        plan->values[last->value].kind != FUSED_EXPANDED) {
        before = *last;
        plan->link_count--;
        add_link(chain, link, value);
        last->moves = FLEX_LINK_TAKES;
        last->from = before.value;
        plan->values[before.value].is_used = 1; /* all of its elements */
        return;
    }
    if (link == FLEX_LINK_STORE && last->link != FLEX_LINK_LOAD &&
        !is_output(chain->b, value)) {
        last->moves |= FLEX_LINK_GIVES;
        last->to = (uint16_t)value;
        return;
    }
    both = pair_of(last->link, link);
    if (!both ||
        (both <= FLEX_LINK_DIV_ADD &&
         !(last->is_single && plan->values[value].kind == FUSED_CELL))) {
        add_link(chain, link, value);
        return;
    }
    last->link = (uint8_t)both;
    if (both <= FLEX_LINK_DIV_ADD)
        last->second = (uint16_t)value;
    else if (both == FLEX_LINK_RELU_MUL) {
        last->value = (uint16_t)value;
        last->is_single = plan->values[value].kind == FUSED_CELL;
    }
}

static uint32_t value_of(struct chain *chain, uint32_t reg)
{
    return fused_is_row(chain->b, reg) ? fused_value_expanded(chain->b, reg)
                                       : reg;
}

static uint32_t scalar_of(struct chain *chain,
                          const struct hob_fused_step *step, uint32_t index,
                          uint32_t dtype, uint32_t bound)
{
    return fused_value_scalar(chain->b, step->scalar + index, dtype, bound, 0);
}

/* LINK with its operands exchanged. */
static uint32_t exchanged(uint32_t link)
{
    switch (link) {
    case FLEX_LINK_ADD:
    case FLEX_LINK_MUL:
        return link;
    default: /* the list has each beside its other */
        return link + 1;
    }
}

static void load(struct chain *chain, uint32_t reg)
{
    if (chain->held != reg)
        append(chain, FLEX_LINK_LOAD, value_of(chain, reg));
    chain->held = reg;
}

static void link_two(struct chain *chain, const struct hob_fused_step *step,
                     uint32_t link)
{
    const uint32_t a = step->args[0], b = step->args[1];

    if (a == b && link == FLEX_LINK_MUL) {
        load(chain, a);
        append(chain, FLEX_LINK_SQUARE, FUSED_NO_VALUE);
    } else if (chain->held == b && a != b) {
        append(chain, exchanged(link), value_of(chain, a));
    } else {
        load(chain, a);
        append(chain, link, value_of(chain, b));
    }
}

/* The link that does STEP on register HELD and what ASIDE gives; FLEX_LINK_NONE
 * without one. */
static uint32_t link_of(const struct hob_fused_step *step, uint32_t held,
                        const struct hob_fused_step *aside)
{
    const uint32_t link = fused_op_find(step->op)->link;
    const uint32_t first = fused_op_find(aside->op)->link;

    switch (first) {
    case FLEX_LINK_ADD:
        return link == FLEX_LINK_MUL ? FLEX_LINK_MUL_OF_ADD : FLEX_LINK_NONE;
    case FLEX_LINK_SUB:
        return link == FLEX_LINK_MUL ? FLEX_LINK_MUL_OF_SUB : FLEX_LINK_NONE;
    case FLEX_LINK_MUL:
        break;
    default:
        return FLEX_LINK_NONE;
    }
    switch (link) {
    case FLEX_LINK_ADD:
        return FLEX_LINK_ADD_OF_MUL;
    case FLEX_LINK_SUB:
        return step->args[0] == held ? FLEX_LINK_SUB_OF_MUL
                                     : FLEX_LINK_RSUB_OF_MUL;
    case FLEX_LINK_MUL:
        return FLEX_LINK_MUL_OF_MUL;
    default:
        return FLEX_LINK_NONE;
    }
}

/* STEP on the accumulator and what ASIDE gives. */
static void link_aside(struct chain *chain, const struct hob_fused_step *step,
                       const struct hob_fused_step *aside)
{
    struct fused_plan *plan = chain->b->plan;
    const uint32_t x = aside->args[0];

    append(chain, link_of(step, chain->held, aside), x);
    plan->links[plan->link_count - 1].second =
        (uint16_t)scalar_of(chain, aside, 0, chain->dtype, 0);
    plan->values[x].is_used = 1; /* all of its elements */
}

static void link_step(struct chain *chain, const struct hob_fused_step *step)
{
    const struct fused_op *op = fused_op_find(step->op);
    const uint32_t dtype = fused_operand_dtype(chain->b, step);

    if (op->form == FUSED_TWO) {
        link_two(chain, step, op->link);
    } else {
        load(chain, step->args[0]);
        switch (op->form) {
        case FUSED_SCALAR:
            append(chain, op->link, scalar_of(chain, step, 0, dtype, 0));
            break;
        case FUSED_SCALAR_FIRST:
            append(chain, exchanged(op->link),
                   scalar_of(chain, step, 0, dtype, 0));
            break;
        case FUSED_CLAMP:
            append(chain, FLEX_LINK_UPPER, scalar_of(chain, step, 1, dtype, 2));
            append(chain, FLEX_LINK_LOWER, scalar_of(chain, step, 0, dtype, 1));
            break;
        case FUSED_WIDE: /* halves do not round its attribute */
            append(chain, op->link,
                   scalar_of(chain, step, 0, fused_dtype(dtype), 0));
            break;
        case FUSED_CAST:
            break;
        default:
            append(chain, op->link, FUSED_NO_VALUE);
            break;
        }
    }
    if (flex_is_half(step->dtype) && !(op->flags & FUSED_EXACT))
        append(chain,
               step->dtype == HOB_DTYPE_F16 ? FLEX_LINK_ROUND_F16
                                            : FLEX_LINK_ROUND_BF16,
               FUSED_NO_VALUE);
}

/* ---- what goes to memory ---- */

/* Whether step S is read again in pass P, but as the accumulator of step
 * NEXT. */
static int is_read_back(const struct builder *b, uint32_t s, uint32_t p,
                        uint32_t next)
{
    const uint32_t reg = b->program->input_count + s;

    for (uint32_t t = s + 1; t < b->program->step_count; t++) {
        const struct hob_fused_step *step = hob_fused_step_at(b->program, t);
        const int is_square = fused_op_find(step->op)->link == FLEX_LINK_MUL &&
                              fused_op_find(step->op)->form == FUSED_TWO;
        uint32_t reads = 0;

        if (!(b->needed[p] & fused_bit(t)) && !fused_is_fold_of(b, t, p))
            continue;
        for (uint32_t i = 0; i < 3; i++)
            reads += step->args[i] == reg;
        if (reads && (t != next || (reads > 1 && !is_square)))
            return 1;
    }
    return 0;
}

/* The step that goes on with what step S gives and has step ASIDE, the next
 * one, as a part, with a number, of its other operand; NO_STEP: none. */
static uint32_t find_user(const struct builder *b, uint32_t s, uint32_t aside,
                          uint32_t p, uint32_t dtype)
{
    const uint32_t reg = b->program->input_count + s;
    const struct hob_fused_step *first, *step;
    uint32_t user, other;

    if (aside == NO_STEP)
        return NO_STEP;
    user = next_link(b, aside, p, dtype);
    if (user == NO_STEP)
        return NO_STEP;
    other = b->program->input_count + aside;
    first = hob_fused_step_at(b->program, aside);
    step = hob_fused_step_at(b->program, user);
    if (fused_op_find(first->op)->form != FUSED_SCALAR ||
        fused_op_find(step->op)->form != FUSED_TWO ||
        flex_is_half(first->dtype) || first->args[0] == reg ||
        fused_is_row(b, first->args[0]) || is_output(b, other) ||
        (b->kept & fused_bit(aside)) || is_read_back(b, aside, p, user) ||
        !((step->args[0] == reg && step->args[1] == other) ||
          (step->args[1] == reg && step->args[0] == other)))
        return NO_STEP;
    return link_of(step, reg, first) ? user : NO_STEP;
}

static int is_stored(const struct builder *b, uint32_t s, uint32_t p)
{
    for (uint32_t i = 0; i < b->program->output_count; i++)
        if (b->program->outputs[i] == b->program->input_count + s &&
            b->output_pass[i] == p)
            return 1;
    return 0;
}

/* Whether a chain of one step saves the slots of scalars and rows. */
static int has_single(const struct builder *b, uint32_t s)
{
    const struct hob_fused_step *step = hob_fused_step_at(b->program, s);

    if (step->scalar_count || fused_op_find(step->op)->form == FUSED_CAST)
        return step->scalar_count != 0;
    for (uint32_t i = 0; i < 3; i++)
        if (step->args[i] != HOB_FUSED_NONE && fused_is_row(b, step->args[i]))
            return 1;
    return 0;
}

uint32_t fused_chain(struct builder *b, uint32_t s, uint32_t p)
{
    struct chain chain = {.b = b, .p = p, .held = HOB_FUSED_NONE};
    const uint32_t first = s;
    const struct flex_chain_kernels *kernels =
        FLEX_BY_ISA(b->kernels->isa, &flex_chain);
    struct fused_instruction *made;
    uint32_t next, user, aside = NO_STEP;

    if (!is_linkable(b, s, &chain.dtype))
        return 0;
    next = next_link(b, s, p, chain.dtype);
    if (next == NO_STEP && !has_single(b, s))
        return 0;
    made = fused_emit(b, FUSED_DO_CHAIN);
    made->fn.chain = chain.dtype == HOB_DTYPE_F64 ? kernels->f64 : kernels->f32;
    made->first = b->plan->link_count;
    chain.first = made->first;
    for (;; s = next) {
        const uint32_t reg = b->program->input_count + s;
        const struct hob_fused_step *step = hob_fused_step_at(b->program, s);
        const int is_out = is_stored(b, s, p);
        int is_back;

        if (aside == NO_STEP)
            link_step(&chain, step);
        else
            link_aside(&chain, step, hob_fused_step_at(b->program, aside));
        chain.held = reg;
        aside = NO_STEP;
        next = next_link(b, s, p, chain.dtype);
        user = find_user(b, s, next, p, chain.dtype);
        if (user != NO_STEP) {
            aside = next;
            next = user;
        }
        is_back = is_read_back(b, s, p, next) || (b->kept & fused_bit(s));
        if (is_out && !is_back)
            b->chained |= fused_bit(s);
        if (is_out || is_back)
            append(&chain, FLEX_LINK_STORE, reg);
        b->plan->cost += 1;
        if (next == NO_STEP)
            break;
    }
    made->count = (uint16_t)(b->plan->link_count - made->first);
    return s - first + 1;
}

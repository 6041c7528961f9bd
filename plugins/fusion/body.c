/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - ops that are several steps in a group with what comes before and
 * after: sgd_step, and those that go along rows, softmax and norms. Of
 * group_norm a row is all of a group.
 *
 * The backend has a kernel of its own for such an op, which is what a lone one
 * runs as. It says whether the op may be a step of a program, or how much
 * dearer the steps of its body are; in a group that saves more bytes than that
 * they are taken.
 */
#include "program.h"

#include <hob/ops.h>

#include <string.h>

enum { MOST = 14, NONE = HOB_FUSED_NONE };

/* Registers of a body: the op's tensors, in the order of its parameters, and
 * from FIRST on what the lines give. */
enum { X, WEIGHT, BIAS, FIRST };

enum line_kind {
    MAP,    /* element by element */
    SCALED, /* the same, with a number */
    FOLD,   /* over the row */
    WIDEN,  /* to the type that halves are computed in */
    NARROW  /* back */
};

/* What a SCALED line has as its second argument. */
enum line_number { EPSILON, KEEP, RATE };

/* A line on a tensor that is not there gives its first operand, and so does a
 * conversion to the same type. */
struct line {
    uint16_t op;
    uint8_t kind; /* enum line_kind */
    uint8_t args[2];
};

static const struct body {
    uint32_t op;
    uint32_t count;
    struct line lines[MOST];
} bodies[] = {
    {HOB_OP_SOFTMAX,
     7,
     {{HOB_OP_CAST, WIDEN, {X, NONE}},
      {HOB_OP_MAX_DIM, FOLD, {3, NONE}},
      {HOB_OP_SUB, MAP, {3, 4}},
      {HOB_OP_EXP, MAP, {5, NONE}},
      {HOB_OP_SUM_DIM, FOLD, {6, NONE}},
      {HOB_OP_DIV, MAP, {6, 7}},
      {HOB_OP_CAST, NARROW, {8, NONE}}}},
    {HOB_OP_LOG_SOFTMAX,
     8,
     {{HOB_OP_CAST, WIDEN, {X, NONE}},
      {HOB_OP_MAX_DIM, FOLD, {3, NONE}},
      {HOB_OP_SUB, MAP, {3, 4}},
      {HOB_OP_EXP, MAP, {5, NONE}},
      {HOB_OP_SUM_DIM, FOLD, {6, NONE}},
      {HOB_OP_LOG, MAP, {7, NONE}},
      {HOB_OP_SUB, MAP, {5, 8}},
      {HOB_OP_CAST, NARROW, {9, NONE}}}},
    {HOB_OP_LAYER_NORM,
     14,
     {{HOB_OP_CAST, WIDEN, {X, NONE}},
      {HOB_OP_MEAN_DIM, FOLD, {3, NONE}},
      {HOB_OP_SUB, MAP, {3, 4}},
      {HOB_OP_SQUARE, MAP, {5, NONE}},
      {HOB_OP_MEAN_DIM, FOLD, {6, NONE}},
      {HOB_OP_ADD_SCALAR, SCALED, {7, EPSILON}},
      {HOB_OP_SQRT, MAP, {8, NONE}},
      {HOB_OP_RECIP, MAP, {9, NONE}},
      {HOB_OP_MUL, MAP, {5, 10}},
      {HOB_OP_CAST, WIDEN, {WEIGHT, NONE}},
      {HOB_OP_MUL, MAP, {11, 12}},
      {HOB_OP_CAST, WIDEN, {BIAS, NONE}},
      {HOB_OP_ADD, MAP, {13, 14}},
      {HOB_OP_CAST, NARROW, {15, NONE}}}},
    {HOB_OP_RMS_NORM,
     10,
     {{HOB_OP_CAST, WIDEN, {X, NONE}},
      {HOB_OP_SQUARE, MAP, {3, NONE}},
      {HOB_OP_MEAN_DIM, FOLD, {4, NONE}},
      {HOB_OP_ADD_SCALAR, SCALED, {5, EPSILON}},
      {HOB_OP_SQRT, MAP, {6, NONE}},
      {HOB_OP_RECIP, MAP, {7, NONE}},
      {HOB_OP_MUL, MAP, {3, 8}},
      {HOB_OP_CAST, WIDEN, {WEIGHT, NONE}},
      {HOB_OP_MUL, MAP, {9, 10}},
      {HOB_OP_CAST, NARROW, {11, NONE}}}},
    {HOB_OP_SGD_STEP, /* of param and grad */
     6,
     {{HOB_OP_CAST, WIDEN, {X, NONE}},
      {HOB_OP_MUL_SCALAR, SCALED, {3, KEEP}},
      {HOB_OP_CAST, WIDEN, {WEIGHT, NONE}},
      {HOB_OP_MUL_SCALAR, SCALED, {5, RATE}},
      {HOB_OP_ADD, MAP, {4, 6}},
      {HOB_OP_CAST, NARROW, {7, NONE}}}},
};

/* Of a group's channels the body is that of rows. */
static const struct body *find_body(uint32_t op)
{
    if (op == HOB_OP_GROUP_NORM)
        op = HOB_OP_LAYER_NORM;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (bodies[i].op == op)
            return &bodies[i];
    return NULL;
}

int fu_has_body(uint32_t op)
{
    return find_body(op) != NULL;
}

int fu_has_rows(uint32_t op)
{
    return op != HOB_OP_SGD_STEP && find_body(op);
}

/* ---- the op's arguments ---- */

/* Which of NODE's inputs are the op's tensors: NONE where one is absent. */
static void find_tensors(const struct fu_node *node, uint8_t out[FIRST])
{
    uint8_t input = 0, param = 0;

    memset(out, NONE, FIRST);
    for (uint32_t i = 0; i < node->arg_count; i++)
        if (node->args[i].tag == HOB_TAG_TENSOR)
            out[param++] = input++;
        else if (node->args[i].tag == HOB_TAG_ABSENT && node->args[i].count)
            param++;
}

/* The epsilon of a norm; NULL: there is none. */
static const hob_value *find_number(const struct fu_node *node)
{
    for (uint32_t i = 0; i < node->arg_count; i++)
        if (node->args[i].tag == HOB_TAG_F64)
            return &node->args[i];
    return NULL;
}

/* What an op goes along. */
struct rows {
    uint8_t dims;   /* as rows of struct fu_item */
    int64_t parts;  /* the same */
    int64_t length; /* elements of each; 0: there are none */
};

/* Those of NODE, a group_norm: the channels of a group with all their
 * places. */
static struct rows find_groups(const struct fu_node *node)
{
    const struct fu_value *value = &node->values[0];
    const int64_t groups = node->args[1].u.i64;
    const int64_t channels = value->shape[1];
    struct rows rows = {.length = channels / groups};

    if (groups < channels)
        rows.dims = (uint8_t)(1u << (value->rank - 2));
    if (groups > 1 && groups < channels) {
        if (value->rank == HOB_MAX_RANK) /* there is no room for one more */
            return (struct rows){.length = 0};
        rows.parts = groups;
    }
    for (uint32_t i = 2; i < value->rank; i++) {
        rows.length *= value->shape[i];
        if (value->shape[i] != 1)
            rows.dims |= (uint8_t)(1u << (value->rank - 1 - i));
    }
    return rows;
}

/* The same of one that goes along the last dimension. */
static struct rows find_last(const struct fu_node *node)
{
    const struct fu_value *value = &node->values[0];
    const int64_t last = (int64_t)value->rank - 1;
    struct rows rows = {.dims = 1};

    for (uint32_t i = 0; i < node->arg_count; i++)
        if (node->args[i].tag == HOB_TAG_I64 && node->args[i].u.i64 != last &&
            node->args[i].u.i64 != -1)
            return rows;
    rows.length = value->rank ? value->shape[last] : 0;
    return rows;
}

/* Whether all tensors of NODE are of one dtype. */
static int is_even(const struct fu_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (fu_see(&node->inputs[i]).dtype != node->values[0].dtype)
            return 0;
    return 1;
}

static struct rows find_rows(const struct fu_node *node)
{
    return node->op == HOB_OP_GROUP_NORM ? find_groups(node) : find_last(node);
}

/* ---- the body ---- */

/* NODE's body as STEPS, whose operands are numbered as its lines' are, and
 * whose scalar is an enum line_number. Returns how many there are; the last one
 * gives the result. */
static uint32_t make_steps(const struct fu_node *node,
                           struct hob_fused_step steps[MOST])
{
    const struct body *body = find_body(node->op);
    const uint8_t own = node->values[0].dtype;
    const uint8_t wide = own == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    uint8_t names[FIRST + MOST]; /* of a line's value among those of STEPS */
    uint8_t tensors[FIRST];
    uint32_t count = 0;

    find_tensors(node, tensors);
    for (uint8_t i = 0; i < FIRST; i++)
        names[i] = tensors[i] == NONE ? NONE : i;
    for (uint32_t i = 0; i < body->count; i++) {
        const struct line *line = &body->lines[i];
        const int is_cast = line->kind == WIDEN || line->kind == NARROW;
        const int is_scaled = line->kind == SCALED;
        const uint8_t other = is_scaled ? (uint8_t)NONE : line->args[1];
        const uint8_t a = names[line->args[0]];
        const uint8_t b = other == NONE ? a : names[other];
        struct hob_fused_step *step = &steps[count];

        names[FIRST + i] = a;
        if (a == NONE || b == NONE || (is_cast && own == wide))
            continue;
        memset(step, 0, sizeof(*step));
        step->op = line->op;
        step->dtype = line->kind == NARROW ? own : wide;
        step->is_reduction = line->kind == FOLD;
        step->args[0] = a;
        step->args[1] = other == NONE ? NONE : b;
        step->args[2] = NONE;
        step->scalar_count = (uint8_t)is_scaled;
        step->scalar = is_scaled ? line->args[1] : 0;
        names[FIRST + i] = (uint8_t)(FIRST + count++);
    }
    return count;
}

/* What the backend charges for the steps of NODE along rows of ROW elements, in
 * per cent of its bytes. */
static uint32_t percent_of(const struct fu_layer *layer,
                           const struct fu_node *node, int64_t row)
{
    const struct hob_fused_compute *fused = layer->fused;

    if (!FU_HAS(fused, body_cost))
        return HOB_FUSED_NEVER;
    return fused->body_cost(layer->fused_instance, node->op,
                            node->values[0].dtype, row);
}

/* Whether the backend takes ITEM's node as the steps of its body, which are
 * dearer by PERCENT. */
static int is_body(const struct fu_layer *layer, struct fu_item *item,
                   uint32_t percent)
{
    const uint64_t bytes = 2 * fu_bytes(fu_see_value(&item->node->values[0]));
    struct hob_fused_step steps[MOST];
    const uint32_t count = make_steps(item->node, steps);

    for (uint32_t i = 0; i < count; i++) {
        const struct hob_fused_step *step = &steps[i];
        uint8_t dtypes[2];

        for (int k = 0; k < 2; k++)
            if (step->args[k] != NONE)
                dtypes[k] = step->args[k] < FIRST
                                ? item->node->values[0].dtype
                                : steps[step->args[k] - FIRST].dtype;
        if (!layer->fused->supports(layer->fused_instance, step, dtypes))
            return 0;
    }
    memset(&item->step, 0, sizeof(item->step));
    for (uint32_t i = 0; i < count; i++)
        item->step.scalar_count += steps[i].scalar_count;
    item->cost = bytes / 100 * percent + bytes % 100 * percent / 100;
    return 1;
}

/* Whether it takes the node as one step. */
static int is_whole(const struct fu_layer *layer, struct fu_item *item)
{
    const struct fu_node *node = item->node;
    const uint8_t dtype = node->values[0].dtype;
    const uint8_t dtypes[FIRST] = {dtype, dtype, dtype};

    item->step =
        (struct hob_fused_step){.op = (uint16_t)node->op,
                                .dtype = dtype,
                                .scalar_count = find_number(node) != NULL};
    find_tensors(node, item->step.args);
    return layer->fused->supports(layer->fused_instance, &item->step, dtypes);
}

int fu_classify_body(const struct fu_layer *layer, struct fu_item *item)
{
    struct rows rows;
    uint32_t percent;

    if (!find_body(item->node->op) || !is_even(item->node))
        return 0;
    if (!fu_has_rows(item->node->op)) {
        item->class = is_body(layer, item, 0) ? FU_STEP : FU_OTHER;
        return item->class == FU_STEP;
    }
    rows = find_rows(item->node);
    if (rows.length < 2)
        return 0;
    percent = percent_of(layer, item->node, rows.length);
    if (percent == HOB_FUSED_NEVER ||
        !(percent == HOB_FUSED_WHOLE ? is_whole(layer, item)
                                     : is_body(layer, item, percent)))
        return 0;
    item->rows = rows.dims;
    item->parts = rows.parts;
    item->class = FU_BODY;
    return 1;
}

int fu_is_steps(const struct fu_item *item)
{
    return (item->class == FU_BODY || item->class == FU_STEP) && !item->step.op;
}

uint32_t fu_step_count(const struct fu_item *item)
{
    struct hob_fused_step steps[MOST];

    return fu_is_steps(item) ? make_steps(item->node, steps) : 1;
}

/* ---- in a program ---- */

hob_value fu_number_of(const struct fu_node *node, uint32_t arg)
{
    switch (arg) { /* as hob_sgd_step has them */
    case HOB_MAX_PARAMS + KEEP:
        return hob_f64(1 - node->args[2].u.f64 * node->args[3].u.f64);
    case HOB_MAX_PARAMS + RATE:
        return hob_f64(-node->args[2].u.f64);
    default:
        return node->args[arg];
    }
}

static int add_number(struct fu_program *p, const struct fu_node *node,
                      struct hob_fused_step *step)
{
    const uint32_t number = step->scalar;

    if (!step->scalar_count)
        return 0;
    step->scalar = p->program.scalar_count;
    return fu_add_number(p, node,
                         number == EPSILON
                             ? (uint32_t)(find_number(node) - node->args)
                             : HOB_MAX_PARAMS + number);
}

/* Of a value that is a step's of P if MARK is in REG, else an input. */
static uint8_t kind_of(const struct fu_program *p, uint8_t reg, uint8_t mark)
{
    return reg & mark ? p->steps[reg & ~mark].kind : p->inputs[reg].kind;
}

/* A step is for each row if all that it reads is. */
static void find_kind(const struct fu_program *p, struct hob_fused_step *step,
                      uint8_t mark)
{
    step->kind = HOB_FUSED_ROW;
    for (uint32_t k = 0; k < 3 && !step->is_reduction; k++)
        if (step->args[k] != NONE &&
            kind_of(p, step->args[k], mark) == HOB_FUSED_FULL)
            step->kind = HOB_FUSED_FULL;
}

int fu_add_body(struct fu_program *p, const struct fu_item *item,
                const uint8_t *inputs, uint8_t mark)
{
    const int is_one = !fu_is_steps(item);
    struct hob_fused_step steps[MOST];
    uint8_t regs[FIRST + MOST], tensors[FIRST];
    uint32_t count = 1;

    find_tensors(item->node, tensors);
    for (uint32_t i = 0; i < FIRST; i++)
        regs[i] = tensors[i] == NONE ? NONE : inputs[tensors[i]];
    if (is_one)
        steps[0] = item->step;
    else
        count = make_steps(item->node, steps);
    if (p->program.step_count + count > HOB_FUSED_MAX_STEPS)
        return 1;
    for (uint32_t i = 0; i < count; i++) {
        struct hob_fused_step *step = &p->steps[p->program.step_count];

        *step = steps[i];
        for (uint32_t k = 0; k < 3; k++)
            if (is_one)
                step->args[k] = regs[k];
            else if (step->args[k] != NONE)
                step->args[k] = regs[step->args[k]];
        find_kind(p, step, mark);
        if (add_number(p, item->node, step))
            return 1;
        regs[FIRST + i] = (uint8_t)(mark | p->program.step_count++);
    }
    return 0;
}

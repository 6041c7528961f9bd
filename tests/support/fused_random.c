/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_random.c - random programs: whatever ops and operands the backend says
 * it supports.
 */
#include "fused_case.h"

#include "hob_check.h"

#include <math.h>
#include <string.h>

enum { NONE = HOB_FUSED_NONE, TRIES = 400 };

/* Tensors and attributes of the ops that programs are made of; what result
 * dtype to try: that of the first operand, of the second, bool, any. */
enum result { FIRST, SECOND, TRUTH, ANY };

static const struct choice {
    uint16_t from, to; /* ops */
    uint8_t tensors, scalars;
    uint8_t result;
} choices[] = {
    {HOB_OP_ADD, HOB_OP_HYPOT, 2, 0, FIRST},
    {HOB_OP_ADD, HOB_OP_MINIMUM, 2, 0, FIRST},
    {HOB_OP_ADD, HOB_OP_DIV, 2, 0, FIRST},
    {HOB_OP_ADD_SCALAR, HOB_OP_RSUB_SCALAR, 1, 1, FIRST},
    {HOB_OP_ADD_SCALAR, HOB_OP_DIV_SCALAR, 1, 1, FIRST},
    {HOB_OP_CLAMP, HOB_OP_CLAMP, 1, 2, FIRST},
    {HOB_OP_NEG, HOB_OP_TRUNC, 1, 0, FIRST},
    {HOB_OP_NEG, HOB_OP_EXP, 1, 0, FIRST},
    {HOB_OP_CAST, HOB_OP_CAST, 1, 0, ANY},
    {HOB_OP_RELU, HOB_OP_SIGMOID, 1, 0, FIRST},
    {HOB_OP_RELU_BACKWARD, HOB_OP_SIGMOID_BACKWARD, 2, 0, FIRST},
    {HOB_OP_SILU, HOB_OP_SILU, 1, 0, FIRST},
    {HOB_OP_SOFTPLUS, HOB_OP_SOFTPLUS, 1, 1, FIRST},
    {HOB_OP_LOG_SIGMOID, HOB_OP_LOG_SIGMOID, 1, 0, FIRST},
    {HOB_OP_LEAKY_RELU, HOB_OP_LEAKY_RELU, 1, 1, FIRST},
    {HOB_OP_ELU, HOB_OP_CELU, 1, 1, FIRST},
    {HOB_OP_SELU, HOB_OP_SELU, 1, 0, FIRST},
    {HOB_OP_HARD_SIGMOID, HOB_OP_HARD_SIGMOID, 1, 2, FIRST},
    {HOB_OP_HARD_SWISH, HOB_OP_SOFTSIGN, 1, 0, FIRST},
    {HOB_OP_ACTIVATION_BACKWARD, HOB_OP_ACTIVATION_BACKWARD, 2, 1, FIRST},
    {HOB_OP_EQUAL, HOB_OP_LESS_EQUAL, 2, 0, TRUTH},
    {HOB_OP_EQUAL_SCALAR, HOB_OP_LESS_EQUAL_SCALAR, 1, 1, TRUTH},
    {HOB_OP_IS_NAN, HOB_OP_IS_INF, 1, 0, TRUTH},
    {HOB_OP_LOGICAL_AND, HOB_OP_LOGICAL_XOR, 2, 0, TRUTH},
    {HOB_OP_LOGICAL_NOT, HOB_OP_LOGICAL_NOT, 1, 0, TRUTH},
    {HOB_OP_BITWISE_AND, HOB_OP_BITWISE_RIGHT_SHIFT, 2, 0, FIRST},
    {HOB_OP_BITWISE_NOT, HOB_OP_BITWISE_NOT, 1, 0, FIRST},
    {HOB_OP_BITWISE_AND_SCALAR, HOB_OP_BITWISE_RIGHT_SHIFT_SCALAR, 1, 1, FIRST},
    {HOB_OP_WHERE, HOB_OP_WHERE, 3, 0, SECOND},
    {HOB_OP_MASK_FILL, HOB_OP_MASK_FILL, 2, 1, FIRST},
    {HOB_OP_SOFTMAX, HOB_OP_SOFTMAX, 1, 0, FIRST},
    {HOB_OP_LOG_SOFTMAX, HOB_OP_LOG_SOFTMAX, 1, 0, FIRST},
    {HOB_OP_LAYER_NORM, HOB_OP_LAYER_NORM, 1, 1, FIRST},
    {HOB_OP_RMS_NORM, HOB_OP_RMS_NORM, 1, 1, FIRST},
};

enum { CHOICES = sizeof(choices) / sizeof(choices[0]), BACKWARD_KINDS = 10 };

static uint64_t next(struct fused_case *c)
{
    uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t below(struct fused_case *c, uint32_t limit)
{
    return (uint32_t)(next(c) % limit);
}

static hob_dtype any_dtype(struct fused_case *c)
{
    static const uint8_t often[] = {
        HOB_DTYPE_F32, HOB_DTYPE_F32,  HOB_DTYPE_F32, HOB_DTYPE_F64,
        HOB_DTYPE_F16, HOB_DTYPE_BF16, HOB_DTYPE_BOOL};

    return (hob_dtype)(below(c, 3) ? often[below(c, sizeof(often))]
                                   : HOB_DTYPE_F64 + below(c, HOB_DTYPE_BOOL));
}

static uint32_t dtype_of(const struct fused_case *c, uint32_t reg)
{
    const uint32_t inputs = c->program.input_count;

    return reg < inputs ? c->inputs[reg].dtype : c->steps[reg - inputs].dtype;
}

static int is_row_reg(const struct fused_case *c, uint32_t reg)
{
    const uint32_t inputs = c->program.input_count;

    return (reg < inputs ? c->inputs[reg].kind : c->steps[reg - inputs].kind) ==
           HOB_FUSED_ROW;
}

static hob_value any_scalar(struct fused_case *c, uint32_t op, uint32_t dtype)
{
    static const double often[] = {2, -1, -2, 0, 1, 0.5, 3};

    if (dtype == HOB_DTYPE_BOOL)
        return hob_bool((int)below(c, 2));
    if (!(HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT))
        return hob_i64(below(c, 6));
    if (op == HOB_OP_SOFTPLUS || op == HOB_OP_CELU)
        return hob_f64(0.25 + below(c, 8));
    return hob_f64(below(c, 2) ? often[below(c, 7)]
                               : (double)(int64_t)next(c) * 0x1p-61);
}

/* A register, the newest ones more often. */
static uint32_t any_register(struct fused_case *c)
{
    const uint32_t count = c->program.input_count + c->program.step_count;

    return below(c, 3) == 0 || count < 3 ? below(c, count)
                                         : count - 1 - below(c, 3);
}

static int supported(const struct fused_case *c, const struct fused_side *side,
                     struct hob_fused_step *step)
{
    uint8_t dtypes[3] = {0, 0, 0};

    for (int i = 0; i < 3 && step->args[i] != NONE; i++)
        dtypes[i] = (uint8_t)dtype_of(c, step->args[i]);
    return side->fused->supports(side->instance, step, dtypes);
}

/* Whether OP, which goes along rows, has one to go along; a block must have
 * room for all of it. */
static int has_row_for(const struct fused_case *c, uint32_t op, uint32_t reg)
{
    return !fused_case_along(op) || (c->program.row_rank && c->n > 0 &&
                                     c->n <= 65 && !is_row_reg(c, reg));
}

/* One more step, if one is found. */
static void add_step(struct fused_case *c, const struct fused_side *side)
{
    for (int try = 0; try < TRIES; try++) {
        const struct choice *choice = &choices[below(c, CHOICES)];
        struct hob_fused_step step = {
            .op = (uint16_t)(choice->from +
                             below(c, choice->to - choice->from + 1u)),
            .args = {NONE, NONE, NONE}};
        hob_value scalars[2];
        uint32_t operand;

        for (uint32_t i = 0; i < choice->tensors; i++)
            step.args[i] = (uint8_t)any_register(c);
        if (choice->tensors == 2 && below(c, 8) == 0)
            step.args[1] = step.args[0];
        operand = dtype_of(c, step.args[choice->result == SECOND]);
        step.dtype = (uint8_t)(choice->result == ANY     ? any_dtype(c)
                               : choice->result == TRUTH ? HOB_DTYPE_BOOL
                                                         : operand);
        if (step.op == HOB_OP_ACTIVATION_BACKWARD)
            step.variant = (uint16_t)below(c, BACKWARD_KINDS);
        if (c->program.scalar_count + 2 > HOB_FUSED_MAX_SCALARS ||
            !supported(c, side, &step) ||
            !has_row_for(c, step.op, step.args[0]))
            continue;
        for (uint32_t i = 0; i < choice->scalars; i++)
            scalars[i] = any_scalar(c, step.op, operand);
        if (step.op == HOB_OP_CLAMP && below(c, 2))
            scalars[below(c, 2)] = hob_none();
        fused_case_step(c, step.op, (hob_dtype)step.dtype, step.args[0],
                        step.args[1], step.args[2], step.variant, scalars,
                        choice->scalars);
        return;
    }
}

/* A reduction of a FULL register; whether there was one to be had. */
static int add_reduction(struct fused_case *c, const struct fused_side *side)
{
    for (int try = 0; try < TRIES; try++) {
        struct hob_fused_step step = {
            .op = (uint16_t)(HOB_OP_SUM + below(c, 14)),
            .is_reduction = 1,
            .args = {(uint8_t)any_register(c), NONE, NONE}};
        const uint32_t dtype = dtype_of(c, step.args[0]);
        const int is_float = (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) != 0;

        step.dtype = (uint8_t)(step.op >= HOB_OP_ANY ? HOB_DTYPE_BOOL
                                                     : (hob_dtype)dtype);
        if (is_row_reg(c, step.args[0]) || !supported(c, side, &step))
            continue;
        /* A product's error may be anything where numbers are huge. */
        if (is_float && (step.op == HOB_OP_PROD || step.op == HOB_OP_PROD_DIM))
            continue;
        /* Of no elements. */
        if (c->n == 0 &&
            ((step.op >= HOB_OP_MAX && step.op <= HOB_OP_MIN_DIM) ||
             (!is_float &&
              (step.op == HOB_OP_MEAN || step.op == HOB_OP_MEAN_DIM))))
            continue;
        fused_case_step(c, step.op, (hob_dtype)step.dtype, step.args[0], NONE,
                        NONE, 0, NULL, 0);
        return 1;
    }
    return 0;
}

static void any_shape(struct fused_case *c, const struct fused_wish *wish,
                      int64_t *shape, uint32_t rank, uint32_t row_rank)
{
    static const uint16_t sizes[] = {1,  1,  2,  3,  5,   7,   8,    16,
                                     17, 31, 64, 65, 100, 255, 1000, 1025};
    const int64_t most = wish->is_large ? 200000 : 6000;
    int64_t count = 1;

    for (uint32_t i = 0; i < rank; i++) {
        const int64_t size = sizes[below(c, sizeof(sizes) / sizeof(sizes[0]))];

        shape[i] = count * size <= most ? size : 1;
        count *= shape[i];
    }
    if (wish->is_large && count < most / 4)
        shape[below(c, rank)] *= most / count;
    if (wish->is_empty_row)
        shape[rank - 1 - below(c, row_rank)] = 0;
}

static int is_output(const struct fused_case *c, uint32_t reg)
{
    for (int i = 0; i < c->program.output_count; i++)
        if (c->outputs[i] == reg)
            return 1;
    return 0;
}

/* An input that an output of REG may lie over, each once; -1: none. */
static int input_under(struct fused_case *c, uint32_t reg, uint32_t *taken)
{
    for (int try = 0; try < 8; try++) {
        const uint32_t i = below(c, c->program.input_count);
        int fits = c->inputs[i].kind == HOB_FUSED_FULL && !(*taken >> i & 1) &&
                   !is_row_reg(c, reg) &&
                   hob_dtype_size(c->inputs[i].dtype) ==
                       hob_dtype_size(dtype_of(c, reg));

        for (uint32_t d = 0; d < c->program.rank; d++)
            fits &= c->in[i].strides[d] != 0 || c->shape[d] <= 1;
        if (!fits)
            continue;
        *taken |= 1u << i;
        return (int)i;
    }
    return -1;
}

static void add_outputs(struct fused_case *c)
{
    const uint32_t inputs = c->program.input_count;
    uint32_t taken = 0;

    for (uint32_t s = c->program.step_count; s-- > 0;) {
        const int last = s + 1u == c->program.step_count;
        const int has_room =
            c->program.output_count < HOB_FUSED_MAX_OUTPUTS - 4;

        /* Of reductions there are four at most. */
        if (c->steps[s].is_reduction || last || (has_room && !below(c, 4))) {
            int over = below(c, 3) ? -1 : input_under(c, inputs + s, &taken);

            if (!is_output(c, inputs + s))
                fused_case_output(c, inputs + s, (int)below(c, 2), over);
        }
    }
}

void fused_case_random(struct fused_case *c, const struct fused_side *side,
                       const struct fused_wish *wish)
{
    int64_t shape[HOB_MAX_RANK];
    uint32_t rank, row_rank = 0;
    int steps, reductions = 0, inputs;

    memset(c, 0, sizeof(*c));
    c->state = wish->seed;
    rank = 1 + below(c, 5);
    if (wish->has_rows)
        row_rank = 1 + below(c, rank);
    any_shape(c, wish, shape, rank, row_rank);
    fused_case_begin(c, c->state, rank, row_rank, shape);
    inputs = 1 + (int)below(c, below(c, 8) ? 4 : HOB_FUSED_MAX_INPUTS);
    for (int i = 0; i < inputs; i++)
        fused_case_input(c, any_dtype(c), row_rank && i && below(c, 4) == 0,
                         (int)below(c, 2));
    steps = 1 + (int)below(c, (uint32_t)wish->steps_most);
    for (int s = 0; s < steps; s++) {
        if (row_rank && reductions < 4 && below(c, 4) == 0)
            reductions += add_reduction(c, side);
        else
            add_step(c, side);
    }
    if (c->program.step_count == 0)
        fused_case_step(c, HOB_OP_CAST, HOB_DTYPE_F32, 0, NONE, NONE, 0, NULL,
                        0);
    add_outputs(c);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include "steps.h"

#include <hob/ops.h>

#include <string.h>

/* ---- may it be a step? ---- */

static int has_dtype(const struct cube_limits *limits, uint32_t dtype)
{
    if (dtype == HOB_DTYPE_F64)
        return limits->has_f64 != 0;
    if (dtype == HOB_DTYPE_I64 || dtype == HOB_DTYPE_U64)
        return limits->has_i64 != 0;
    return hob_dtype_size(dtype) != 0;
}

static uint32_t tensors_of(const struct cube_map_op *op)
{
    switch (op->form) {
    case CUBE_FORM_BINARY:
    case CUBE_FORM_MASK_FILL:
    case CUBE_FORM_PRELU:
    case CUBE_FORM_ACTIVATION_BACKWARD:
        return 2;
    case CUBE_FORM_WHERE:
        return 3;
    default:
        return 1;
    }
}

static int is_truth(const struct cube_map_op *op)
{
    return strstr(op->signature, "-> Bool") != NULL;
}

static int map_fits(const struct hob_fused_step *step,
                    const uint8_t *arg_dtypes)
{
    const struct cube_map_op *op = cube_map_op_find(step->op);
    const uint32_t count = fuse_arity(step);
    uint32_t main_dtype;

    if (!op || op->form == CUBE_FORM_GLU || count != tensors_of(op) ||
        (op->form == CUBE_FORM_ACTIVATION_BACKWARD &&
         step->variant >= CUBE_ACTIVATIONS))
        return 0;
    main_dtype = arg_dtypes[fuse_main_arg((enum cube_form)op->form)];
    for (uint32_t i = 0; i < count; i++)
        if (!(op->masks[i] >> arg_dtypes[i] & 1) ||
            (op->masks[i] != HOB_MASK_BOOL && arg_dtypes[i] != main_dtype))
            return 0;
    /* Integers without a result are looked for by the op alone. */
    if (op->map.check != CUBE_CHECK_NONE &&
        !(HOB_DTYPE_BIT(main_dtype) & HOB_MASK_FLOAT) &&
        op->form == CUBE_FORM_BINARY)
        return 0;
    if (step->op == HOB_OP_CAST)
        return 1;
    return step->dtype == (is_truth(op) ? HOB_DTYPE_BOOL : main_dtype);
}

static int fold_fits(const struct hob_fused_step *step,
                     const uint8_t *arg_dtypes)
{
    struct fuse_fold fold;
    const uint32_t bit = HOB_DTYPE_BIT(arg_dtypes[0]);

    if (fuse_arity(step) != 1 || !fuse_fold_find(step->op, &fold))
        return 0;
    if (fold.kind == CUBE_FOLD_ANY || fold.kind == CUBE_FOLD_ALL)
        return step->dtype == HOB_DTYPE_BOOL && (bit & HOB_MASK_ANY);
    return step->dtype == arg_dtypes[0] && (bit & HOB_MASK_NUM);
}

int fuse_step_fits(const struct cube_limits *limits,
                   const struct hob_fused_step *step, const uint8_t *arg_dtypes)
{
    if (step->args[0] == HOB_FUSED_NONE || !has_dtype(limits, step->dtype))
        return 0;
    for (uint32_t i = 0; i < fuse_arity(step); i++)
        if (!has_dtype(limits, arg_dtypes[i]))
            return 0;
    return step->is_reduction ? fold_fits(step, arg_dtypes)
                              : map_fits(step, arg_dtypes);
}

/* ---- copying and checking ---- */

static const char *copy_program(struct fuse_program *to,
                                const struct hob_fused_program *from)
{
    const size_t size = from->step_size < sizeof(to->steps[0])
                            ? from->step_size
                            : sizeof(to->steps[0]);

    memset(to, 0, sizeof(*to));
    if (from->input_count > HOB_FUSED_MAX_INPUTS ||
        from->output_count > HOB_FUSED_MAX_OUTPUTS ||
        from->step_count > HOB_FUSED_MAX_STEPS ||
        from->scalar_count > HOB_FUSED_MAX_SCALARS || !from->step_count ||
        !from->output_count)
        return "too much or nothing of something";
    if (from->rank > HOB_MAX_RANK || from->row_rank > from->rank)
        return "the space has no such rank";
    to->rank = from->rank;
    to->row_rank = from->row_rank;
    to->input_count = from->input_count;
    to->output_count = from->output_count;
    to->step_count = from->step_count;
    to->scalar_count = from->scalar_count;
    memcpy(to->outputs, from->outputs, from->output_count);
    memcpy(to->inputs, from->inputs, from->input_count * sizeof(to->inputs[0]));
    for (uint32_t i = 0; i < from->step_count; i++)
        memcpy(&to->steps[i],
               (const char *)from->steps + (size_t)i * from->step_size, size);
    return NULL;
}

/* The register of step INDEX, whose operands are known. */
static const char *take_step(struct fuse_plan *plan, uint32_t index)
{
    const struct hob_fused_step *step = &plan->program.steps[index];
    const uint32_t reg = fuse_register(plan, index);
    struct fuse_value *value = &plan->values[reg];
    int all_rows = 1;

    if (step->args[0] == HOB_FUSED_NONE)
        all_rows = step->kind == HOB_FUSED_ROW;
    for (uint32_t i = 0; i < fuse_arity(step); i++) {
        const struct fuse_value *arg;

        if (step->args[i] >= reg)
            return "a step needs a later one";
        arg = &plan->values[step->args[i]];
        all_rows = all_rows && arg->is_row;
        if (arg->level > value->level)
            value->level = arg->level;
    }
    if (step->scalar + step->scalar_count > plan->program.scalar_count)
        return "a step has scalars that are not there";
    if (step->is_reduction && !plan->program.row_rank)
        return "a reduction needs a row";
    value->dtype = step->dtype;
    value->is_row = step->is_reduction || all_rows;
    if (value->is_row != (step->kind == HOB_FUSED_ROW))
        return "a step is of the other kind";
    value->level = (uint8_t)(value->level + (step->is_reduction != 0));
    return NULL;
}

static const char *take_values(struct fuse_plan *plan)
{
    const struct fuse_program *program = &plan->program;
    const char *reason = NULL;

    plan->value_count = program->input_count + program->step_count;
    for (uint32_t i = 0; i < plan->value_count; i++) {
        plan->values[i].pass = FUSE_NEVER;
        plan->values[i].output = FUSE_NEVER;
    }
    for (uint32_t i = 0; i < program->input_count; i++) {
        plan->values[i].dtype = program->inputs[i].dtype;
        plan->values[i].is_row = program->inputs[i].kind == HOB_FUSED_ROW;
        if (plan->values[i].is_row && !program->row_rank)
            return "an input of rows needs rows";
    }
    for (uint32_t i = 0; i < program->step_count && !reason; i++)
        reason = take_step(plan, i);
    for (uint32_t i = 0; i < program->output_count && !reason; i++) {
        const uint32_t reg = program->outputs[i];

        if (reg < program->input_count || reg >= plan->value_count)
            reason = "an output is no step's";
        else if (plan->values[reg].output != FUSE_NEVER)
            reason = "an output is there twice";
        else
            plan->values[reg].output = (uint8_t)i;
    }
    return reason;
}

static int steps_fit(const struct fuse_plan *plan,
                     const struct cube_limits *limits)
{
    uint8_t dtypes[3];

    for (uint32_t i = 0; i < plan->program.step_count; i++) {
        const struct hob_fused_step *step = &plan->program.steps[i];

        for (uint32_t k = 0; k < fuse_arity(step); k++)
            dtypes[k] = plan->values[step->args[k]].dtype;
        if (!fuse_step_fits(limits, step, dtypes) ||
            (!step->is_reduction &&
             step->scalar_count < fuse_scalars(cube_map_op_find(step->op))))
            return 0;
    }
    for (uint32_t i = 0; i < plan->program.input_count; i++)
        if (!has_dtype(limits, plan->values[i].dtype))
            return 0;
    return 1;
}

/* ---- when what is computed ---- */

/*
 * Consumers come first: a value is computed in the first pass that needs it,
 * an output as soon as it can be. Row values need no pass, but a row step that
 * is needed is marked so by pass 0.
 */
static void set_passes(struct fuse_plan *plan)
{
    for (uint32_t i = plan->program.step_count; i-- > 0;) {
        const struct hob_fused_step *step = &plan->program.steps[i];
        struct fuse_value *value = &plan->values[fuse_register(plan, i)];
        uint8_t pass;

        if (value->output != FUSE_NEVER)
            value->pass = value->level;
        if (value->pass == FUSE_NEVER)
            continue;
        if (step->is_reduction)
            value->pass = (uint8_t)(value->level - 1);
        else if (value->is_row)
            value->pass = 0;
        pass = value->pass;
        if (!value->is_row || step->is_reduction)
            if (pass + 1u > plan->pass_count)
                plan->pass_count = pass + 1u;
        for (uint32_t k = 0; k < fuse_arity(step); k++) {
            struct fuse_value *arg = &plan->values[step->args[k]];

            if (arg->is_row)
                arg->pass = 0;
            else if (pass < arg->pass)
                arg->pass = pass;
        }
    }
}

/* The pass in which step INDEX reads its operands. */
static void set_lasts(struct fuse_plan *plan)
{
    for (uint32_t i = 0; i < plan->program.step_count; i++) {
        const struct hob_fused_step *step = &plan->program.steps[i];
        const struct fuse_value *value = &plan->values[fuse_register(plan, i)];

        if (value->pass == FUSE_NEVER)
            continue;
        for (uint32_t k = 0; k < fuse_arity(step); k++) {
            struct fuse_value *arg = &plan->values[step->args[k]];

            if (!arg->is_row && value->pass > arg->last)
                arg->last = value->pass;
        }
    }
}

static void count_kept(struct fuse_plan *plan)
{
    for (uint32_t pass = 0; pass < plan->pass_count; pass++) {
        uint32_t count = 0, loads = 0;

        for (uint32_t i = 0; i < plan->value_count; i++) {
            const struct fuse_value *value = &plan->values[i];

            if (value->is_row || value->pass == FUSE_NEVER)
                continue;
            count += value->pass <= pass && value->last > pass;
            loads +=
                pass == 0 && value->pass == 0 && i < plan->program.input_count;
        }
        if (count > plan->kept)
            plan->kept = count;
        if (loads > plan->kept)
            plan->kept = loads;
    }
}

/* ---- numbers and functions ---- */

static void add_number(struct fuse_plan *plan, uint32_t step, uint32_t scalar,
                       uint32_t type, enum fuse_part part)
{
    struct fuse_number *number = &plan->numbers[plan->number_count++];

    number->step = (uint8_t)step;
    number->scalar = (uint8_t)scalar;
    number->type = (uint8_t)type;
    number->index = (uint8_t)plan->numbers_of[type]++;
    number->part = (uint8_t)part;
}

static void add_map_step(struct fuse_plan *plan, uint32_t index)
{
    enum { PLAIN = 1, DEAR = 10 };
    const struct hob_fused_step *step = &plan->program.steps[index];
    const struct cube_map_op *op = cube_map_op_find(step->op);
    const struct cube_map *map = fuse_function(op, step);
    const uint32_t dtype =
        plan->values[step->args[fuse_main_arg((enum cube_form)op->form)]].dtype;
    const uint32_t type = cube_value_type(dtype);
    const int is_float = (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) != 0;
    const uint32_t count = fuse_scalars(op);
    /* An enum may be among them, of which VARIANT tells. */
    const uint32_t first = step->scalar + (uint32_t)step->scalar_count - count;

    plan->types |= 1u << type;
    if (map->has_maths && is_float)
        plan->flags |= CUBE_MATHS;
    if (!plan->values[fuse_register(plan, index)].is_row)
        plan->cost += map->has_maths && is_float ? DEAR : PLAIN;
    for (uint32_t i = 0; i < count; i++)
        add_number(plan, index, first + i, type,
                   op->form == CUBE_FORM_CLAMP ? (i ? FUSE_HIGH : FUSE_LOW)
                   : op->form == CUBE_FORM_ATTRIBUTES ||
                           op->form == CUBE_FORM_ACTIVATION_BACKWARD
                       ? FUSE_AS_IS
                       : FUSE_ROUNDED);
    if (op->form == CUBE_FORM_POW_SCALAR && is_float)
        add_number(plan, index, first, CUBE_I32, FUSE_POWER);
}

static void add_fold_step(struct fuse_plan *plan, uint32_t index,
                          const struct cube_limits *limits)
{
    const struct hob_fused_step *step = &plan->program.steps[index];
    const uint32_t dtype = plan->values[step->args[0]].dtype;
    struct fuse_fold fold;
    enum cube_type accum;

    fuse_fold_find(step->op, &fold);
    accum = cube_fold_accum(fold.kind, fold.is_mean, limits, dtype);
    if (fold.is_mean && (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT))
        plan->flags |= CUBE_MATHS;
    if (accum == CUBE_F64)
        plan->flags |= CUBE_USES_F64;
    if (accum == CUBE_I64 || accum == CUBE_U64)
        plan->flags |= CUBE_USES_I64;
    plan->cost += 4;
}

static void set_needs(struct fuse_plan *plan, const struct cube_limits *limits)
{
    for (uint32_t i = 0; i < plan->value_count; i++) {
        const struct fuse_value *value = &plan->values[i];
        const enum cube_type type = cube_value_type(value->dtype);

        if (type == CUBE_F64)
            plan->flags |= CUBE_USES_F64;
        if (type == CUBE_I64 || type == CUBE_U64)
            plan->flags |= CUBE_USES_I64;
    }
    for (uint32_t i = 0; i < plan->program.step_count; i++) {
        const struct fuse_value *value = &plan->values[fuse_register(plan, i)];

        if (value->pass == FUSE_NEVER)
            continue;
        if (plan->program.steps[i].is_reduction)
            add_fold_step(plan, i, limits);
        else
            add_map_step(plan, i);
        if (hob_dtype_size(value->dtype) < 4 && value->dtype != HOB_DTYPE_BOOL)
            plan->rounds |= 1u << value->dtype;
    }
    if (plan->program.row_rank)
        plan->flags |= CUBE_SUBGROUPS;
}

hob_status fuse_plan_init(struct fuse_plan *plan,
                          const struct cube_limits *limits,
                          const struct hob_fused_program *program,
                          const char **out_reason)
{
    memset(plan, 0, sizeof(*plan));
    *out_reason = copy_program(&plan->program, program);
    if (!*out_reason)
        *out_reason = take_values(plan);
    if (*out_reason)
        return HOB_ERR_ARGUMENT;
    if (!steps_fit(plan, limits))
        return HOB_ERR_UNSUPPORTED;
    set_passes(plan);
    set_lasts(plan);
    count_kept(plan);
    set_needs(plan, limits);
    return HOB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

#include "../buffers.h"
#include "../texts.h"
#include "pairs.h"
#include "quick.h"
#include "steps.h"

#include <hob/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fuse_type(const struct fuse_emitter *emitter, uint32_t reg)
{
    return cube_type_name(cube_value_type(emitter->plan->values[reg].dtype));
}

const char *fuse_rounding(uint32_t dtype)
{
    static const char *const names[HOB_DTYPE_COUNT_] = {
        [HOB_DTYPE_F16] = "round_to_f16(", [HOB_DTYPE_BF16] = "round_to_bf16(",
        [HOB_DTYPE_I16] = "round_to_i16(", [HOB_DTYPE_I8] = "round_to_i8(",
        [HOB_DTYPE_U16] = "round_to_u16(", [HOB_DTYPE_U8] = "round_to_u8("};

    return names[dtype] ? names[dtype] : "(";
}

/* ---- what steps call ---- */

/* The functions of ops for each type that some step computes in. */
static void add_functions(struct fuse_emitter *emitter)
{
    static const struct {
        uint8_t type, kind, bits;
        const char *kind_name;
    } types[] = {
        {CUBE_F32, 0, 32, "KIND_FLOAT"}, {CUBE_F64, 0, 64, "KIND_FLOAT"},
        {CUBE_I32, 0, 32, "KIND_INT"},   {CUBE_U32, 0, 32, "KIND_UINT"},
        {CUBE_I64, 0, 64, "KIND_INT"},   {CUBE_U64, 0, 64, "KIND_UINT"}};
    struct cube_text *text = &emitter->text;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (!(emitter->plan->types >> types[i].type & 1))
            continue;
        cube_text_addf(
            text, "#define T %s\n#define KIND_T %s\n#define BITS_T %u\n",
            cube_type_name(types[i].type), types[i].kind_name, types[i].bits);
        cube_text_add(text, cube_text_functions);
        cube_text_add(text, "#undef T\n#undef KIND_T\n#undef BITS_T\n");
    }
    for (uint32_t dtype = 1; dtype < HOB_DTYPE_COUNT_; dtype++)
        if (emitter->plan->rounds >> dtype & 1)
            cube_round_function(text, dtype);
}

/* ---- steps ---- */

void fuse_number_name(const struct fuse_plan *plan, uint32_t step, uint32_t nth,
                      char out[24])
{
    static const char *const arrays[CUBE_INDEX] = {
        [CUBE_I32] = "i32s", [CUBE_U32] = "u32s", [CUBE_I64] = "i64s",
        [CUBE_U64] = "u64s", [CUBE_F32] = "f32s", [CUBE_F64] = "f64s"};

    for (uint32_t i = 0; i < plan->number_count; i++)
        if (plan->numbers[i].step == step && nth-- == 0) {
            snprintf(out, 24, "%s[%u]", arrays[plan->numbers[i].type],
                     plan->numbers[i].index);
            return;
        }
    snprintf(out, 24, "no_number");
}

static void add_cast(struct fuse_emitter *emitter, uint32_t dtype, uint32_t arg)
{
    static const char *const casts[HOB_DTYPE_COUNT_] = {
        [HOB_DTYPE_F64] = "cast_to_f64",  [HOB_DTYPE_F32] = "cast_to_f32",
        [HOB_DTYPE_F16] = "cast_to_half", [HOB_DTYPE_BF16] = "cast_to_half",
        [HOB_DTYPE_I64] = "cast_to_i64",  [HOB_DTYPE_I32] = "cast_to_int",
        [HOB_DTYPE_I16] = "cast_to_int",  [HOB_DTYPE_I8] = "cast_to_int",
        [HOB_DTYPE_U64] = "cast_to_u64",  [HOB_DTYPE_U32] = "cast_to_uint",
        [HOB_DTYPE_U16] = "cast_to_uint", [HOB_DTYPE_U8] = "cast_to_uint",
        [HOB_DTYPE_BOOL] = "cast_to_bool"};
    const int has_bits =
        cube_value_type(dtype) == CUBE_I32 ||
        (cube_value_type(dtype) == CUBE_U32 && dtype != HOB_DTYPE_BOOL);

    cube_text_addf(&emitter->text, "%s(r%u", casts[dtype], arg);
    if (has_bits)
        cube_text_addf(&emitter->text, ", %u", hob_dtype_size(dtype) * 8);
    cube_text_add(&emitter->text, ")");
}

/* A power whose exponent is looked at when it runs. */
static void add_power(struct fuse_emitter *emitter, uint32_t index,
                      uint32_t arg)
{
    char exponent[24], power[24];

    fuse_number_name(emitter->plan, index, 0, exponent);
    fuse_number_name(emitter->plan, index, 1, power);
    cube_text_addf(&emitter->text,
                   "%s == %d ? map_square(r%u) : %s == %d ? map_recip(r%u) : "
                   "%s == %d ? map_recip_square(r%u) : map_pow(r%u, %s)",
                   power, CUBE_POWER_SQUARE, arg, power, CUBE_POWER_RECIP, arg,
                   power, CUBE_POWER_RECIP_SQUARE, arg, arg, exponent);
}

static void add_call(struct fuse_emitter *emitter, uint32_t index,
                     const struct cube_map_op *op)
{
    const struct fuse_plan *plan = emitter->plan;
    const struct hob_fused_step *step = &plan->program.steps[index];
    const struct cube_map *map = fuse_function(op, step);
    const uint8_t *args = step->args;
    struct cube_text *text = &emitter->text;
    char first[24], second[24];

    fuse_number_name(plan, index, 0, first);
    fuse_number_name(plan, index, 1, second);
    cube_text_addf(text, "%s(",
                   cube_map_function(map, plan->values[args[0]].dtype));
    switch (op->form) {
    case CUBE_FORM_BINARY:
    case CUBE_FORM_PRELU:
        cube_text_addf(text, "r%u, r%u", args[0], args[1]);
        break;
    case CUBE_FORM_SCALAR:
    case CUBE_FORM_POW_SCALAR: /* of integers */
        cube_text_addf(text, "r%u, %s", args[0], first);
        break;
    case CUBE_FORM_CLAMP:
        cube_text_addf(text, "r%u, %s, %s", args[0], first, second);
        break;
    case CUBE_FORM_WHERE:
        cube_text_addf(text, "r%u, r%u, r%u", args[2], args[1], args[0]);
        break;
    case CUBE_FORM_MASK_FILL:
        cube_text_addf(text, "r%u, %s, r%u", args[0], first, args[1]);
        break;
    case CUBE_FORM_ATTRIBUTES:
        cube_text_addf(text, "r%u", args[0]);
        if (fuse_scalars(op) > 0)
            cube_text_addf(text, ", %s", first);
        if (fuse_scalars(op) > 1)
            cube_text_addf(text, ", %s", second);
        break;
    case CUBE_FORM_ACTIVATION_BACKWARD:
        cube_text_addf(text, "r%u, r%u", args[0], args[1]);
        if (cube_activations[step->variant].count == 3)
            cube_text_addf(text, ", %s", first);
        break;
    default:
        cube_text_addf(text, "r%u", args[0]);
        break;
    }
    if (strstr(map->function, "_shift"))
        cube_text_addf(text, ", %u",
                       hob_dtype_size(plan->values[args[0]].dtype) * 8);
    cube_text_add(text, ")");
}

/* The step of register REG, or NULL for an input. */
static const struct hob_fused_step *step_of(const struct fuse_plan *plan,
                                            uint32_t reg)
{
    const uint32_t inputs = plan->program.input_count;

    return reg < inputs ? NULL : &plan->program.steps[reg - inputs];
}

/* Whether REG is a value less the greatest of its row: never above 0. */
static int is_below_most(const struct fuse_plan *plan, uint32_t reg)
{
    const struct hob_fused_step *step = step_of(plan, reg);
    const struct hob_fused_step *most;
    struct fuse_fold fold;

    if (!step || step->op != HOB_OP_SUB)
        return 0;
    most = step_of(plan, step->args[1]);
    return most && most->is_reduction && most->args[0] == step->args[0] &&
           fuse_fold_find(most->op, &fold) && fold.kind == CUBE_FOLD_MAX;
}

void fuse_emit_expression(struct fuse_emitter *emitter, uint32_t index)
{
    const struct hob_fused_step *step = &emitter->plan->program.steps[index];
    const struct cube_map_op *op = cube_map_op_find(step->op);
    const int is_float = (HOB_DTYPE_BIT(step->dtype) & HOB_MASK_FLOAT) != 0;

    if (step->op == HOB_OP_EXP && is_below_most(emitter->plan, step->args[0]))
        cube_text_addf(&emitter->text, "m_exp_low(r%u)", step->args[0]);
    else if (step->op == HOB_OP_CAST)
        add_cast(emitter, step->dtype, step->args[0]);
    else if (op->form == CUBE_FORM_POW_SCALAR && is_float)
        add_power(emitter, index, step->args[0]);
    else
        add_call(emitter, index, op);
}

void fuse_emit_step(struct fuse_emitter *emitter, uint32_t index,
                    const char *indent)
{
    const struct fuse_plan *plan = emitter->plan;
    const struct hob_fused_step *step = &plan->program.steps[index];
    const struct cube_map_op *op = cube_map_op_find(step->op);
    const uint32_t reg = fuse_register(plan, index);
    const int is_float = (HOB_DTYPE_BIT(step->dtype) & HOB_MASK_FLOAT) != 0;

    cube_text_addf(&emitter->text, "%s%s r%u = %s", indent,
                   fuse_type(emitter, reg), reg,
                   is_float && fuse_is_exact(fuse_function(op, step)) ? "("
                   : emitter->is_quick && fuse_rounds_quickly(plan, index)
                       ? "quick_to_bf16("
                       : fuse_rounding(step->dtype));
    fuse_emit_expression(emitter, index);
    cube_text_add(&emitter->text, ");\n");
}

char *fuse_emit(const struct fuse_plan *plan, const struct fuse_class *class,
                const struct cube_device *device)
{
    struct fuse_emitter emitter = {
        .plan = plan,
        .class = class,
        .limits = &device->limits,
        .is_paired = device->runtime->language == CUBE_CUDA &&
                     fuse_is_paired(plan, class),
        .is_quick = fuse_is_quick(plan, class, &device->limits)};

    add_functions(&emitter);
    if (plan->program.row_rank)
        fuse_emit_rows(&emitter);
    else
        fuse_emit_walk(&emitter);
    if (emitter.text.is_bad) {
        free(emitter.text.data);
        return NULL;
    }
    return emitter.text.data;
}

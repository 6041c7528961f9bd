/* SPDX-License-Identifier: Apache-2.0 */
#include "describe.h"

#include "../cube.h"
#include "pairs.h"
#include "quick.h"
#include "steps.h"

#include <string.h>

/* Constants of a fused program: lengths of its arrays of numbers. */
enum { RANK, SLOTS, STRIDES, TYPES };

static const char *const constant_names[] = {
    [RANK] = "RANK",
    [SLOTS] = "SLOTS",
    [STRIDES] = "STRIDES",
    [TYPES + CUBE_I32] = "I32S",
    [TYPES + CUBE_U32] = "U32S",
    [TYPES + CUBE_I64] = "I64S",
    [TYPES + CUBE_U64] = "U64S",
    [TYPES + CUBE_F32] = "F32S",
    [TYPES + CUBE_F64] = "F64S",
};
enum { CONSTANTS = sizeof(constant_names) / sizeof(constant_names[0]) };

static const struct cube_param params[] = {
    {"count", CUBE_INDEX, 0},
    {"length", CUBE_INDEX, 0},
    CUBE_SPACE_PARAMS,
    {"bases", CUBE_INDEX, CUBE_LENGTH(SLOTS)},
    {"strides", CUBE_INDEX, CUBE_LENGTH(STRIDES)},
    {"i32s", CUBE_I32, CUBE_LENGTH(TYPES + CUBE_I32)},
    {"u32s", CUBE_U32, CUBE_LENGTH(TYPES + CUBE_U32)},
    {"i64s", CUBE_I64, CUBE_LENGTH(TYPES + CUBE_I64)},
    {"u64s", CUBE_U64, CUBE_LENGTH(TYPES + CUBE_U64)},
    {"f32s", CUBE_F32, CUBE_LENGTH(TYPES + CUBE_F32)},
    {"f64s", CUBE_F64, CUBE_LENGTH(TYPES + CUBE_F64)},
};

static const char *const input_names[HOB_FUSED_MAX_INPUTS] = {
    "in0", "in1", "in2",  "in3",  "in4",  "in5",  "in6",  "in7",
    "in8", "in9", "in10", "in11", "in12", "in13", "in14", "in15"};
static const char *const output_names[HOB_FUSED_MAX_OUTPUTS] = {
    "out0", "out1", "out2", "out3", "out4", "out5", "out6", "out7"};

_Static_assert(sizeof(params) / sizeof(params[0]) <= CUBE_MAX_PARAMS &&
                   (int)CONSTANTS <= (int)CUBE_MAX_CONSTANTS,
               "a program has room for them");

/* ---- the program ---- */

/* Memory for the lanes' folds of each type; returns its bytes. */
static uint32_t add_scratch(struct cube_program *program,
                            const struct fuse_plan *plan,
                            const struct fuse_class *class,
                            const struct cube_limits *limits)
{
    static const char *const names[CUBE_INDEX] = {
        [CUBE_I32] = "scratch_int",   [CUBE_U32] = "scratch_uint",
        [CUBE_I64] = "scratch_i64",   [CUBE_U64] = "scratch_u64",
        [CUBE_F32] = "scratch_float", [CUBE_F64] = "scratch_double"};
    uint32_t used = 0, count = 0, bytes = 0;

    for (uint32_t i = 0; i < plan->program.step_count; i++) {
        const struct hob_fused_step *step = &plan->program.steps[i];
        struct fuse_fold fold;
        enum cube_type type;
        int is_small;

        if (!step->is_reduction ||
            plan->values[fuse_register(plan, i)].pass == FUSE_NEVER)
            continue;
        fuse_fold_find(step->op, &fold);
        type = cube_fold_accum(fold.kind, fold.is_mean, limits,
                               plan->values[step->args[0]].dtype);
        if (used >> type & 1)
            continue;
        used |= 1u << type;
        is_small = class->is_along && type != CUBE_I64 && type != CUBE_U64;
        program->shared[count].name = names[type];
        program->shared[count].type = cube_type_name(type);
        program->shared[count++].length =
            is_small ? "GROUP_SIZE / SUBGROUP_SIZE" : "GROUP_SIZE";
        bytes += cube_type_size(type) * class->group_size /
                 (is_small ? limits->subgroup_size : 1);
    }
    return bytes;
}

int fuse_describe(struct cube_program *program, struct cube_variant *variant,
                  const struct fuse_plan *plan, const struct fuse_class *class,
                  const struct cube_limits *limits)
{
    const uint32_t inputs = plan->program.input_count;
    const int has_pairs =
        fuse_is_paired(plan, class) || fuse_is_quick(plan, class, limits);
    struct cube_layout layout;
    uint32_t bytes;

    memset(program, 0, sizeof(*program));
    program->name = "fused";
    program->flags = plan->flags | CUBE_SPACES;
    memcpy(program->params, params, sizeof(params));
    memcpy(program->constants, constant_names, sizeof(constant_names));
    cube_variant_init(variant, program);
    variant->group_size = class->group_size;
    variant->is_wide = class->is_wide;
    for (uint32_t k = 0; k < fuse_operand_count(plan); k++) {
        const uint32_t how = class->how[k];

        program->buffers[k].name =
            k < inputs ? input_names[k] : output_names[k - inputs];
        program->buffers[k].flags =
            (k < inputs ? 0 : CUBE_WRITTEN) | (has_pairs ? CUBE_PAIRS : 0);
        if (how == FUSE_UNUSED)
            continue;
        variant->dtypes[k] = plan->values[fuse_operand_register(plan, k)].dtype;
        if (fuse_is_vector(class, k))
            variant->widths[k] = class->wide;
    }
    variant->constants[RANK] = class->rank;
    variant->constants[SLOTS] = class->slots;
    variant->constants[STRIDES] = class->slots * class->rank;
    for (uint32_t type = 0; type < CUBE_INDEX; type++)
        variant->constants[TYPES + type] = (int32_t)plan->numbers_of[type];
    bytes = add_scratch(program, plan, class, limits);
    cube_layout_init(&layout, variant);
    return bytes <= limits->shared_bytes &&
           layout.bytes <= CUBE_MAX_PARAM_BYTES;
}

/* ---- a job ---- */

static void fill_operand(struct cube_job *job, const struct fuse_plan *plan,
                         const struct fuse_layout *layout, uint32_t k)
{
    const struct cube_space *space = &layout->space;
    const struct fuse_value *value =
        &plan->values[fuse_operand_register(plan, k)];
    int64_t low, high;

    if (layout->class.how[k] == FUSE_UNUSED) {
        cube_job_absent(job);
        return;
    }
    cube_space_reach(space, k, &low, &high);
    /* There are rows that have no elements. */
    cube_job_memory(job,
                    (const char *)space->data[k] +
                        low * (int64_t)hob_dtype_size(value->dtype),
                    value->dtype,
                    space->count || value->is_row ? high - low + 1 : 0);
}

static void fill_places(struct cube_job *job, const struct fuse_plan *plan,
                        const struct fuse_layout *layout)
{
    const struct fuse_class *class = &layout->class;
    uint8_t owners[FUSE_OPERANDS];
    int64_t low, high;

    for (uint32_t k = fuse_operand_count(plan); k-- > 0;)
        if (class->how[k] >= FUSE_ALONG)
            owners[class->slot[k]] = (uint8_t)k;
    for (uint32_t s = 0; s < class->slots; s++) {
        cube_space_reach(&layout->space, owners[s], &low, &high);
        cube_job_i64(job, -low);
    }
    for (uint32_t s = 0; s < class->slots; s++)
        cube_job_i64s(job, layout->space.strides[owners[s]], class->rank);
}

static void fill_number(struct cube_job *job, const struct fuse_plan *plan,
                        const struct fuse_number *number,
                        const struct hob_fused_run *run)
{
    const struct hob_fused_step *step = &plan->program.steps[number->step];
    const struct cube_map_op *op = cube_map_op_find(step->op);
    const uint32_t dtype =
        plan->values[step->args[fuse_main_arg((enum cube_form)op->form)]].dtype;
    hob_value scalar = *fuse_scalar(number, run);

    if (scalar.tag == HOB_TAG_ABSENT)
        scalar = cube_open_bound(dtype, number->part == FUSE_HIGH);
    if (number->part == FUSE_POWER)
        cube_job_i64(job, cube_power_of(&scalar, dtype));
    else if (number->part == FUSE_AS_IS)
        cube_job_f64(job, scalar.tag == HOB_TAG_F64 ? scalar.u.f64
                                                    : (double)scalar.u.i64);
    else
        cube_job_scalar(job, &scalar, dtype);
}

void fuse_fill(struct cube_job *job, const struct fuse_plan *plan,
               const struct fuse_layout *layout,
               const struct hob_fused_run *run)
{
    struct cube_space dims;

    for (uint32_t k = 0; k < fuse_operand_count(plan); k++)
        fill_operand(job, plan, layout, k);
    cube_job_i64(job, layout->count);
    cube_job_i64(job, layout->length);
    dims.rank = layout->class.rank;
    dims.count = layout->space.count;
    memcpy(dims.sizes, layout->space.sizes, sizeof(dims.sizes));
    cube_job_space(job, &dims);
    fill_places(job, plan, layout);
    for (uint32_t type = 0; type < CUBE_INDEX; type++)
        for (uint32_t i = 0; i < plan->number_count; i++)
            if (plan->numbers[i].type == type)
                fill_number(job, plan, &plan->numbers[i], run);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "folds.h"

static const char *fold_name(uint32_t kind)
{
    static const char *const names[] = {
        [CUBE_FOLD_SUM] = "lanes_sum", [CUBE_FOLD_PRODUCT] = "lanes_product",
        [CUBE_FOLD_MAX] = "lanes_max", [CUBE_FOLD_MIN] = "lanes_min",
        [CUBE_FOLD_ANY] = "lanes_any", [CUBE_FOLD_ALL] = "lanes_all"};

    return names[kind];
}

static const char *fold_both(uint32_t kind)
{
    static const char *const both[] = {
        [CUBE_FOLD_SUM] = "x + y",       [CUBE_FOLD_PRODUCT] = "x * y",
        [CUBE_FOLD_MAX] = "m_max(x, y)", [CUBE_FOLD_MIN] = "m_min(x, y)",
        [CUBE_FOLD_ANY] = "x | y",       [CUBE_FOLD_ALL] = "x & y"};

    return both[kind];
}

/* What is no extreme of TYPE, but for that of nothing. */
static const char *extreme_of(enum cube_type type, int is_max)
{
    static const char *const extremes[CUBE_INDEX][2] = {
        [CUBE_I32] = {"2147483647", "int(0x80000000u)"},
        [CUBE_U32] = {"0xffffffffu", "0u"},
        [CUBE_I64] = {"i64(u64_of_words(0xffffffffu, 0x7fffffffu))",
                      "i64(u64_of_words(0u, 0x80000000u))"},
        [CUBE_U64] = {"u64_of_words(0xffffffffu, 0xffffffffu)", "u64(0)"},
        [CUBE_F32] = {"INF_F32", "-INF_F32"},
        [CUBE_F64] = {"INF_F64", "-INF_F64"}};

    return extremes[type][is_max];
}

int fuse_reduction_get(const struct fuse_emitter *emitter, uint32_t index,
                       struct fuse_reduction *out)
{
    const struct fuse_plan *plan = emitter->plan;
    const struct hob_fused_step *step = &plan->program.steps[index];

    out->reg = fuse_register(plan, index);
    if (!step->is_reduction || plan->values[out->reg].pass == FUSE_NEVER)
        return 0;
    out->arg = step->args[0];
    out->dtype = plan->values[out->arg].dtype;
    fuse_fold_find(step->op, &out->fold);
    out->type = cube_fold_accum(out->fold.kind, out->fold.is_mean,
                                emitter->limits, out->dtype);
    out->name = cube_type_name(out->type);
    out->is_float_sum = out->fold.kind == CUBE_FOLD_SUM &&
                        (out->type == CUBE_F32 || out->type == CUBE_F64);
    return 1;
}

void fuse_emit_fold_functions(struct fuse_emitter *emitter)
{
    uint32_t done[CUBE_INDEX] = {0};
    struct fuse_reduction one;

    for (uint32_t i = 0; i < emitter->plan->program.step_count; i++) {
        if (!fuse_reduction_get(emitter, i, &one) ||
            (done[one.type] >> one.fold.kind & 1))
            continue;
        done[one.type] |= 1u << one.fold.kind;
        cube_text_addf(&emitter->text, "%s(%s, %s, scratch_%s, %s)\n",
                       one.type == CUBE_I64 || one.type == CUBE_U64
                           ? "FOLD_LANES_SHARED"
                           : "FOLD_LANES",
                       fold_name(one.fold.kind), one.name, one.name,
                       fold_both(one.fold.kind));
    }
}

void fuse_emit_fold_begin(struct fuse_emitter *emitter,
                          const struct fuse_reduction *one)
{
    struct cube_text *text = &emitter->text;

    cube_text_addf(text, "        %s f%u = ", one->name, one->reg);
    if (one->fold.kind == CUBE_FOLD_MAX || one->fold.kind == CUBE_FOLD_MIN)
        cube_text_add(text,
                      extreme_of(one->type, one->fold.kind == CUBE_FOLD_MAX));
    else
        cube_text_addf(text, "%s(%d)", one->name,
                       one->fold.kind == CUBE_FOLD_PRODUCT ||
                           one->fold.kind == CUBE_FOLD_ALL);
    cube_text_add(text, ";\n");
    if (one->is_float_sum)
        cube_text_addf(text, "        %s g%u = %s(0);\n", one->name, one->reg,
                       one->name);
}

/* Whether a vector's elements are summed up before they come to the rest. */
static int goes_by_vectors(const struct fuse_emitter *emitter,
                           const struct fuse_reduction *one)
{
    return one->is_float_sum && emitter->class->wide > 1;
}

void fuse_emit_vector_begin(struct fuse_emitter *emitter,
                            const struct fuse_reduction *one)
{
    if (goes_by_vectors(emitter, one))
        cube_text_addf(&emitter->text, "            %s s%u[WIDE];\n",
                       one->name, one->reg);
}

/* The sum of elements FIRST .. FIRST + COUNT - 1 of s<REG>, by halves. */
static void add_halves(struct cube_text *text, uint32_t reg, uint32_t first,
                       uint32_t count)
{
    if (count == 1) {
        cube_text_addf(text, "s%u[%u]", reg, first);
        return;
    }
    cube_text_add(text, "(");
    add_halves(text, reg, first, count / 2);
    cube_text_add(text, " + ");
    add_halves(text, reg, first + count / 2, count / 2);
    cube_text_add(text, ")");
}

void fuse_emit_vector_end(struct fuse_emitter *emitter,
                          const struct fuse_reduction *one)
{
    struct cube_text *text = &emitter->text;

    if (!goes_by_vectors(emitter, one))
        return;
    cube_text_addf(text, "            add_up(f%u, g%u, ", one->reg, one->reg);
    add_halves(text, one->reg, 0, emitter->class->wide);
    cube_text_add(text, ");\n");
}

void fuse_emit_fold(struct fuse_emitter *emitter,
                    const struct fuse_reduction *one)
{
    struct cube_text *text = &emitter->text;
    const uint32_t reg = one->reg, arg = one->arg;

    cube_text_add(text, "                ");
    switch (one->fold.kind) {
    case CUBE_FOLD_SUM:
        if (goes_by_vectors(emitter, one))
            cube_text_addf(text, "s%u[j] = %s(r%u);\n", reg, one->name, arg);
        else if (one->is_float_sum)
            cube_text_addf(text, "add_up(f%u, g%u, %s(r%u));\n", reg, reg,
                           one->name, arg);
        else
            cube_text_addf(text, "f%u += %s(r%u);\n", reg, one->name, arg);
        break;
    case CUBE_FOLD_PRODUCT:
        cube_text_addf(text, "f%u *= %s(r%u);\n", reg, one->name, arg);
        break;
    case CUBE_FOLD_ANY:
    case CUBE_FOLD_ALL:
        cube_text_addf(text, "f%u %s= r%u == %s(0) ? 0u : 1u;\n", reg,
                       one->fold.kind == CUBE_FOLD_ANY ? "|" : "&", arg,
                       fuse_type(emitter, arg));
        break;
    default:
        cube_text_addf(text, "f%u = %s(f%u, %s(r%u));\n", reg,
                       one->fold.kind == CUBE_FOLD_MAX ? "m_max" : "m_min", reg,
                       one->name, arg);
        break;
    }
}

void fuse_emit_fold_end(struct fuse_emitter *emitter,
                        const struct fuse_reduction *one)
{
    struct cube_text *text = &emitter->text;
    const uint32_t reg = one->reg;
    const uint32_t dtype = emitter->plan->values[reg].dtype;
    const int is_half = dtype == HOB_DTYPE_F16 || dtype == HOB_DTYPE_BF16;

    if (one->is_float_sum)
        cube_text_addf(text, "        f%u = added_up(f%u, g%u);\n", reg, reg,
                       reg);
    cube_text_addf(text, "        f%u = %s(f%u);\n", reg,
                   fold_name(one->fold.kind), reg);
    if (one->fold.is_mean)
        cube_text_addf(text,
                       HOB_DTYPE_BIT(one->dtype) & HOB_MASK_FLOAT
                           ? "        f%u = m_div(f%u, %s(length));\n"
                           : "        f%u = f%u / %s(length);\n",
                       reg, reg, one->name);
    cube_text_addf(text, "        %s r%u = %s%s(f%u));\n",
                   fuse_type(emitter, reg), reg, fuse_rounding(dtype),
                   is_half ? "odd_of" : fuse_type(emitter, reg), reg);
}

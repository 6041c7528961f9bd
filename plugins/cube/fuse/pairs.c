/* SPDX-License-Identifier: Apache-2.0 */
#include "pairs.h"

#include "../texts.h"
#include "steps.h"

#include <hob/ops.h>

#include <string.h>

/* The function of pairs that is MAP's, or NULL. */
static const char *pair_function(const struct cube_map *map)
{
    static const char *const functions[][2] = {
        {"map_add", "pair_add"},       {"map_sub", "pair_sub"},
        {"map_mul", "pair_mul"},       {"map_rsub", "pair_rsub"},
        {"map_square", "pair_square"}, {"map_neg", "pair_neg"},
        {"map_abs", "pair_abs"},       {"map_relu", "pair_relu"}};

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcmp(map->function, functions[i][0]) == 0)
            return functions[i][1];
    return NULL;
}

static const char *step_function(const struct hob_fused_step *step)
{
    const struct cube_map_op *op = cube_map_op_find(step->op);

    return pair_function(fuse_function(op, step));
}

int fuse_is_paired(const struct fuse_plan *plan, const struct fuse_class *class)
{
    const uint32_t dtype = plan->values[plan->program.outputs[0]].dtype;
    uint32_t count = 0;

    if (plan->program.row_rank || class->wide < 2 ||
        (dtype != HOB_DTYPE_F16 && dtype != HOB_DTYPE_BF16))
        return 0;
    for (uint32_t i = 0; i < plan->value_count; i++) {
        if (plan->values[i].pass == FUSE_NEVER)
            continue;
        if (plan->values[i].dtype != dtype)
            return 0;
        if (i >= plan->program.input_count)
            count += step_function(
                         &plan->program.steps[i - plan->program.input_count]) !=
                     NULL;
    }
    return count > 0;
}

/* A step as its function of pairs. */
static void add_pair_step(struct fuse_emitter *emitter, uint32_t index,
                          const char *function)
{
    const struct hob_fused_step *step = &emitter->plan->program.steps[index];
    const struct cube_map_op *op = cube_map_op_find(step->op);
    struct cube_text *text = &emitter->text;
    char number[24];

    cube_text_addf(text, "    uint r%u = %s(r%u",
                   fuse_register(emitter->plan, index), function,
                   step->args[0]);
    if (op->form == CUBE_FORM_BINARY)
        cube_text_addf(text, ", r%u", step->args[1]);
    if (op->form == CUBE_FORM_SCALAR) {
        fuse_number_name(emitter->plan, index, 0, number);
        cube_text_addf(text, ", pair_of(%s, %s)", number, number);
    }
    cube_text_add(text, ");\n");
}

/* A step for each half. Inside, its operands are what they are elsewhere. */
static void add_halves(struct fuse_emitter *emitter, uint32_t index)
{
    static const char *const halves[] = {"low", "high"};
    const struct hob_fused_step *step = &emitter->plan->program.steps[index];
    const uint32_t reg = fuse_register(emitter->plan, index);
    struct cube_text *text = &emitter->text;

    cube_text_addf(text, "    uint r%u;\n    {\n", reg);
    for (uint32_t k = 0; k < fuse_arity(step); k++)
        cube_text_addf(text, "        uint p%u = r%u;\n", k, step->args[k]);
    cube_text_add(text, "        float low, high;\n\n");
    for (int half = 0; half < 2; half++) {
        cube_text_add(text, "        {\n");
        for (uint32_t k = 0; k < fuse_arity(step); k++) {
            uint32_t first = 0;

            while (step->args[first] != step->args[k])
                first++;
            if (first == k)
                cube_text_addf(text, "            float r%u = pair_%s(p%u);\n",
                               step->args[k], halves[half], k);
        }
        cube_text_addf(text, "            %s = ", halves[half]);
        fuse_emit_expression(emitter, index);
        cube_text_add(text, ";\n        }\n");
    }
    cube_text_addf(text, "        r%u = pair_of(low, high);\n    }\n", reg);
}

void fuse_emit_pair_chain(struct fuse_emitter *emitter)
{
    const struct fuse_plan *plan = emitter->plan;
    struct cube_text *text = &emitter->text;
    const char *comma = "";

    cube_text_addf(text, "#define PAIRS_ARE_BF16 %d\n",
                   plan->values[plan->program.outputs[0]].dtype ==
                       HOB_DTYPE_BF16);
    cube_text_add(text, cube_text_pairs);
    cube_text_add(text, "FN void pair_chain(");
    for (uint32_t i = 0; i < plan->program.input_count; i++)
        if (plan->values[i].pass != FUSE_NEVER) {
            cube_text_addf(text, "%suint r%u", comma, i);
            comma = ", ";
        }
    for (uint32_t i = 0; i < plan->program.output_count; i++) {
        cube_text_addf(text, "%sOUT(uint, y%u)", comma, i);
        comma = ", ";
    }
    cube_text_add(text, ")\n{\n");
    for (uint32_t i = 0; i < plan->program.step_count; i++) {
        const char *function;

        if (plan->values[fuse_register(plan, i)].pass == FUSE_NEVER)
            continue;
        function = step_function(&plan->program.steps[i]);
        if (function)
            add_pair_step(emitter, i, function);
        else
            add_halves(emitter, i);
    }
    for (uint32_t i = 0; i < plan->program.output_count; i++)
        cube_text_addf(text, "    y%u = r%u;\n", i, plan->program.outputs[i]);
    cube_text_add(text, "}\n");
}

void fuse_emit_pair_load(struct fuse_emitter *emitter, uint32_t i)
{
    const struct fuse_class *class = emitter->class;
    struct cube_text *text = &emitter->text;
    const uint32_t slot = class->slot[i];

    switch (class->how[i]) {
    case FUSE_DENSE:
        cube_text_addf(text, "    load_pairs_in%u(i, x%u);\n", i, i);
        break;
    case FUSE_ALONG:
        cube_text_addf(text, "    load_pairs_in%u(at[%u], x%u);\n", i, slot, i);
        break;
    case FUSE_NARROW:
        cube_text_addf(text,
                       "    UNROLL for (int k = 0; k < WIDE; k += 2)\n"
                       "        x%u[k / 2] = pair_of(LOAD(in%u, i + INDEX(k)), "
                       "LOAD(in%u, i + INDEX(k + 1)));\n",
                       i, i, i);
        break;
    case FUSE_FIXED:
        cube_text_addf(text,
                       "    UNROLL for (int k = 0; k < WIDE; k += 2)\n"
                       "        x%u[k / 2] = pair_of(LOAD(in%u, at[%u]), "
                       "LOAD(in%u, at[%u]));\n",
                       i, i, slot, i, slot);
        break;
    case FUSE_PLACED:
        cube_text_addf(
            text,
            "    UNROLL for (int k = 0; k < WIDE; k += 2)\n"
            "        x%u[k / 2] = pair_of(LOAD(in%u, ats[k * SLOTS + "
            "%u]), LOAD(in%u, ats[(k + 1) * SLOTS + %u]));\n",
            i, i, slot, i, slot);
        break;
    default:
        break;
    }
}

void fuse_emit_pair_store(struct fuse_emitter *emitter, uint32_t i)
{
    const struct fuse_class *class = emitter->class;
    const uint32_t operand = emitter->plan->program.input_count + i;
    struct cube_text *text = &emitter->text;
    const uint32_t slot = class->slot[operand];

    switch (class->how[operand]) {
    case FUSE_DENSE:
        cube_text_addf(text, "    store_pairs_out%u(i, y%u);\n", i, i);
        break;
    case FUSE_ALONG:
        cube_text_addf(text, "    store_pairs_out%u(at[%u], y%u);\n", i, slot,
                       i);
        break;
    case FUSE_NARROW:
        cube_text_addf(text,
                       "    UNROLL for (int k = 0; k < WIDE; k += 2) {\n"
                       "        STORE(out%u, i + INDEX(k), pair_low(y%u[k / "
                       "2]));\n"
                       "        STORE(out%u, i + INDEX(k + 1), pair_high(y%u[k "
                       "/ 2]));\n    }\n",
                       i, i, i, i);
        break;
    default:
        cube_text_addf(text,
                       "    UNROLL for (int k = 0; k < WIDE; k += 2) {\n"
                       "        STORE(out%u, ats[k * SLOTS + %u], "
                       "pair_low(y%u[k / 2]));\n"
                       "        STORE(out%u, ats[(k + 1) * SLOTS + %u], "
                       "pair_high(y%u[k / 2]));\n    }\n",
                       i, slot, i, i, slot, i);
        break;
    }
}

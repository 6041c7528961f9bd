/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - the kernel of a program without reductions: a function of one
 * element, and around it loads and stores of vectors of WIDE elements. There
 * are as many groups as it takes: on an H200 one vector an invocation is 4 %
 * faster than four. The end of the tensors goes element by element.
 */
#include "emit.h"

#include "../texts.h"
#include "pairs.h"
#include "quick.h"

#include <stdio.h>

static int is_strided(const struct fuse_emitter *emitter, uint32_t operand)
{
    return emitter->class->how[operand] >= FUSE_ALONG;
}

/* FUNCTION, chain() or quick_chain(): one element of all inputs to one of all
 * outputs. */
static void add_chain(struct fuse_emitter *emitter, const char *function)
{
    const struct fuse_plan *plan = emitter->plan;
    struct cube_text *text = &emitter->text;
    const char *comma = "";

    cube_text_addf(text, "FN void %s(", function);
    for (uint32_t i = 0; i < plan->program.input_count; i++)
        if (plan->values[i].pass != FUSE_NEVER) {
            cube_text_addf(text, "%s%s r%u", comma, fuse_type(emitter, i), i);
            comma = ", ";
        }
    for (uint32_t i = 0; i < plan->program.output_count; i++) {
        cube_text_addf(text, "%sOUT(%s, y%u)", comma,
                       fuse_type(emitter, plan->program.outputs[i]), i);
        comma = ", ";
    }
    cube_text_add(text, ")\n{\n");
    if (emitter->is_quick)
        fuse_emit_quick_inputs(emitter);
    for (uint32_t i = 0; i < plan->program.step_count; i++)
        if (plan->values[fuse_register(plan, i)].pass != FUSE_NEVER)
            fuse_emit_step(emitter, i, "    ");
    for (uint32_t i = 0; i < plan->program.output_count; i++)
        cube_text_addf(text, "    y%u = r%u;\n", i, plan->program.outputs[i]);
    cube_text_add(text, "}\n");
}

/* A call of FUNCTION, as of chain(): what comes behind each x and y. */
static void add_chain_call(struct fuse_emitter *emitter, const char *indent,
                           const char *function, const char *behind)
{
    const struct fuse_plan *plan = emitter->plan;
    struct cube_text *text = &emitter->text;
    const char *comma = "";

    cube_text_addf(text, "%s%s(", indent, function);
    for (uint32_t i = 0; i < plan->program.input_count; i++) {
        const uint32_t how = emitter->class->how[i];

        if (how == FUSE_UNUSED)
            continue;
        if (how == FUSE_SINGLE)
            cube_text_addf(text, "%sx%u", comma, i);
        else
            cube_text_addf(text, "%sx%u%s", comma, i, behind);
        comma = ", ";
    }
    for (uint32_t i = 0; i < plan->program.output_count; i++) {
        cube_text_addf(text, "%sy%u%s", comma, i, behind);
        comma = ", ";
    }
    cube_text_add(text, ");\n");
}

/* Offsets of the element with number i, one a slot. */
static void add_offsets(struct fuse_emitter *emitter)
{
    if (!emitter->class->slots)
        return;
    cube_text_add(&emitter->text,
                  "FN void place(INDEX i, OUT_ARRAY(INDEX, at, SLOTS))\n{\n"
                  "    UNROLL for (int s = 0; s < SLOTS; s++)\n"
                  "        at[s] = bases[s];\n"
                  "    UNROLL for (int d = RANK - 1; d > 0; d--) {\n"
                  "        INDEX rest = space_quotient(i, d);\n"
                  "        INDEX step = i - rest * sizes[d];\n\n"
                  "        UNROLL for (int s = 0; s < SLOTS; s++)\n"
                  "            at[s] += step * strides[s * RANK + d];\n"
                  "        i = rest;\n    }\n"
                  "    UNROLL for (int s = 0; s < SLOTS; s++)\n"
                  "        at[s] += i * strides[s * RANK];\n}\n");
}

/* one(): element i, wherever its operands lie: what is after the last vector.
 * Compilers take as long for it as for a vector, so it is there where it runs.
 */
static void add_one(struct fuse_emitter *emitter)
{
    const struct fuse_plan *plan = emitter->plan;
    const struct fuse_class *class = emitter->class;
    struct cube_text *text = &emitter->text;

    cube_text_add(text, "FN void one(INDEX i)\n{\n");
    if (class->slots)
        cube_text_add(text, "    INDEX at[SLOTS];\n\n    place(i, at);\n");
    for (uint32_t i = 0; i < plan->program.input_count; i++) {
        if (class->how[i] == FUSE_UNUSED)
            continue;
        cube_text_addf(text, "    %s x%u = LOAD(in%u, ", fuse_type(emitter, i),
                       i, i);
        if (is_strided(emitter, i))
            cube_text_addf(text, "at[%u]);\n", class->slot[i]);
        else
            cube_text_add(text, class->how[i] == FUSE_SINGLE ? "INDEX(0));\n"
                                                             : "i);\n");
    }
    for (uint32_t i = 0; i < plan->program.output_count; i++)
        cube_text_addf(text, "    %s y%u;\n",
                       fuse_type(emitter, plan->program.outputs[i]), i);
    add_chain_call(emitter, "    ", "chain", "");
    for (uint32_t i = 0; i < plan->program.output_count; i++) {
        const uint32_t operand = plan->program.input_count + i;

        if (is_strided(emitter, operand))
            cube_text_addf(text, "    STORE(out%u, at[%u], y%u);\n", i,
                           class->slot[operand], i);
        else
            cube_text_addf(text, "    STORE(out%u, i, y%u);\n", i, i);
    }
    cube_text_add(text, "}\n");
}

/* Whether some operand is read or written element by element at its place. */
static int has_placed(const struct fuse_emitter *emitter)
{
    for (uint32_t k = 0; k < fuse_operand_count(emitter->plan); k++)
        if (emitter->class->how[k] == FUSE_PLACED)
            return 1;
    return 0;
}

/* The vector of input I at element i, as x<I>. */
static void add_load(struct fuse_emitter *emitter, uint32_t i)
{
    const struct fuse_class *class = emitter->class;
    struct cube_text *text = &emitter->text;
    const uint32_t slot = class->slot[i];

    if (emitter->is_paired) {
        fuse_emit_pair_load(emitter, i);
        return;
    }
    switch (class->how[i]) {
    case FUSE_DENSE:
        cube_text_addf(text, "    LOAD_VECTOR(in%u, i, x%u);\n", i, i);
        break;
    case FUSE_NARROW:
        cube_text_addf(text,
                       "    UNROLL for (int k = 0; k < WIDE; k++)\n"
                       "        x%u[k] = LOAD(in%u, i + INDEX(k));\n",
                       i, i);
        break;
    case FUSE_ALONG:
        cube_text_addf(text, "    LOAD_VECTOR(in%u, at[%u], x%u);\n", i, slot,
                       i);
        break;
    case FUSE_FIXED:
        cube_text_addf(text,
                       "    x%u[0] = LOAD(in%u, at[%u]);\n"
                       "    UNROLL for (int k = 1; k < WIDE; k++)\n"
                       "        x%u[k] = x%u[0];\n",
                       i, i, slot, i, i);
        break;
    case FUSE_PLACED:
        cube_text_addf(text,
                       "    UNROLL for (int k = 0; k < WIDE; k++)\n"
                       "        x%u[k] = LOAD(in%u, ats[k * SLOTS + %u]);\n",
                       i, i, slot);
        break;
    default:
        break;
    }
}

static void add_store(struct fuse_emitter *emitter, uint32_t i)
{
    const struct fuse_class *class = emitter->class;
    const struct fuse_plan *plan = emitter->plan;
    const uint32_t operand = plan->program.input_count + i;
    struct cube_text *text = &emitter->text;
    const uint32_t slot = class->slot[operand];

    if (emitter->is_paired) {
        fuse_emit_pair_store(emitter, i);
        return;
    }
    if (emitter->is_quick && fuse_is_vector(class, operand) &&
        plan->values[plan->program.outputs[i]].dtype == HOB_DTYPE_BF16) {
        fuse_emit_quick_store(emitter, i);
        return;
    }
    switch (class->how[operand]) {
    case FUSE_DENSE:
        cube_text_addf(text, "    STORE_VECTOR(out%u, i, y%u);\n", i, i);
        break;
    case FUSE_NARROW:
        cube_text_addf(text,
                       "    UNROLL for (int k = 0; k < WIDE; k++)\n"
                       "        STORE(out%u, i + INDEX(k), y%u[k]);\n",
                       i, i);
        break;
    case FUSE_ALONG:
        cube_text_addf(text, "    STORE_VECTOR(out%u, at[%u], y%u);\n", i, slot,
                       i);
        break;
    default:
        cube_text_addf(text,
                       "    UNROLL for (int k = 0; k < WIDE; k++)\n"
                       "        STORE(out%u, ats[k * SLOTS + %u], y%u[k]);\n",
                       i, slot, i);
        break;
    }
}

/* The places of a vector: of its first element, and of each. */
static void add_places(struct fuse_emitter *emitter)
{
    struct cube_text *text = &emitter->text;

    if (!emitter->class->slots)
        return;
    cube_text_add(text, "    INDEX at[SLOTS];\n");
    if (has_placed(emitter))
        cube_text_add(text, "    INDEX ats[WIDE * SLOTS];\n\n"
                            "    UNROLL for (int k = WIDE - 1; k >= 0; k--) {\n"
                            "        place(i + INDEX(k), at);\n"
                            "        UNROLL for (int s = 0; s < SLOTS; s++)\n"
                            "            ats[k * SLOTS + s] = at[s];\n"
                            "    }\n");
    else
        cube_text_add(text, "\n    place(i, at);\n");
}

/* What vectors are made of: numbers, or words of two. */
static void add_vector(struct fuse_emitter *emitter, const char *name,
                       uint32_t index, uint32_t reg)
{
    cube_text_addf(&emitter->text, "    %s %s%u[WORDS];\n",
                   emitter->is_paired ? "uint" : fuse_type(emitter, reg), name,
                   index);
}

static void add_single(struct fuse_emitter *emitter, uint32_t i)
{
    if (emitter->is_paired)
        cube_text_addf(&emitter->text,
                       "    uint x%u = pair_of(LOAD(in%u, INDEX(0)), "
                       "LOAD(in%u, INDEX(0)));\n",
                       i, i, i);
    else
        cube_text_addf(&emitter->text, "    %s x%u = LOAD(in%u, INDEX(0));\n",
                       fuse_type(emitter, i), i, i);
}

/* several(): the vectors at element i. */
static void add_several(struct fuse_emitter *emitter)
{
    const struct fuse_plan *plan = emitter->plan;
    const struct fuse_class *class = emitter->class;
    struct cube_text *text = &emitter->text;

    cube_text_add(text, "FN void several(INDEX i)\n{\n");
    for (uint32_t i = 0; i < plan->program.input_count; i++)
        if (class->how[i] == FUSE_SINGLE)
            add_single(emitter, i);
        else if (class->how[i] != FUSE_UNUSED)
            add_vector(emitter, "x", i, i);
    for (uint32_t i = 0; i < plan->program.output_count; i++)
        add_vector(emitter, "y", i, plan->program.outputs[i]);
    add_places(emitter);
    for (uint32_t i = 0; i < plan->program.input_count; i++)
        add_load(emitter, i);
    if (emitter->is_quick)
        cube_text_add(text, "    quick_fits = true;\n");
    cube_text_add(text, "    UNROLL for (int k = 0; k < WORDS; k++)\n");
    add_chain_call(emitter, "        ",
                   emitter->is_paired  ? "pair_chain"
                   : emitter->is_quick ? "quick_chain"
                                       : "chain",
                   "[k]");
    if (emitter->is_quick) {
        cube_text_add(text, "    if (!quick_fits)\n"
                            "        LOOP for (int k = 0; k < WIDE; k++)\n");
        add_chain_call(emitter, "            ", "chain", "[k]");
    }
    for (uint32_t i = 0; i < plan->program.output_count; i++)
        add_store(emitter, i);
    cube_text_add(text, "}\n");
}

void fuse_emit_walk(struct fuse_emitter *emitter)
{
    const struct fuse_class *class = emitter->class;
    const int is_quick = emitter->is_quick;
    struct cube_text *text = &emitter->text;

    cube_text_addf(text, "#define WIDE %u\n#define WORDS %u\n", class->wide,
                   emitter->is_paired ? class->wide / 2 : class->wide);
    emitter->is_quick = 0;
    add_chain(emitter, "chain");
    if (emitter->is_paired)
        fuse_emit_pair_chain(emitter);
    emitter->is_quick = is_quick;
    if (is_quick) {
        cube_text_add(text, cube_text_quick);
        add_chain(emitter, "quick_chain");
    }
    add_offsets(emitter);
    if (class->has_rest)
        add_one(emitter);
    add_several(emitter);
    /* What is left is compared, not where the next step ends: that may be no
     * INDEX any more. */
    cube_text_add(
        text, "KERNEL()\n{\n"
              "    INDEX step = INDEX(GROUP_COUNT) * (GROUP_SIZE * WIDE);\n"
              "    INDEX i = (INDEX(GROUP_X) * GROUP_SIZE + LOCAL_X) * WIDE;\n"
              "    INDEX left = count - i;\n\n"
              "    while (left > INDEX(0)) {\n");
    cube_text_add(
        text, class->has_rest
                  ? "        if (left >= INDEX(WIDE))\n"
                    "            several(i);\n"
                    "        else\n"
                    "            LOOP for (int k = 0; INDEX(k) < left; k++)\n"
                    "                one(i + INDEX(k));\n"
                  : "        several(i);\n");
    cube_text_add(text, "        left -= step;\n"
                        "        if (left > INDEX(0))\n"
                        "            i += step;\n"
                        "    }\n}\n");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - the kernel of a program without reductions: a function of one
 * element, and around it loads and stores of DEEP vectors of WIDE elements
 * each. All loads come before the first store, so that they are on their way
 * together; the end of the tensors goes element by element.
 */
#include "emit.h"
#include "pairs.h"

#include <stdio.h>

static int is_strided(const struct fuse_emitter *emitter, uint32_t operand)
{
    return emitter->class->how[operand] >= FUSE_ALONG;
}

/* chain(): one element of all inputs to one of all outputs. */
static void add_chain(struct fuse_emitter *emitter)
{
    const struct fuse_plan *plan = emitter->plan;
    struct cube_text *text = &emitter->text;
    const char *comma = "";

    cube_text_add(text, "FN void chain(");
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

/* one(): element i, wherever its operands lie. */
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

/* Vector number U of input I, as x<I>_<U>. */
static void add_load(struct fuse_emitter *emitter, uint32_t i, uint32_t u)
{
    const struct fuse_class *class = emitter->class;
    struct cube_text *text = &emitter->text;
    const uint32_t slot = class->slot[i];

    if (emitter->is_paired) {
        fuse_emit_pair_load(emitter, i, u);
        return;
    }
    switch (class->how[i]) {
    case FUSE_DENSE:
        cube_text_addf(text,
                       "        LOAD_VECTOR(in%u, i + %u * NEXT, x%u_%u);\n", i,
                       u, i, u);
        break;
    case FUSE_NARROW:
        cube_text_addf(text,
                       "        UNROLL for (int k = 0; k < WIDE; k++)\n"
                       "            x%u_%u[k] = LOAD(in%u, i + (%u * NEXT + "
                       "k));\n",
                       i, u, i, u);
        break;
    case FUSE_ALONG:
        cube_text_addf(text, "        LOAD_VECTOR(in%u, at_%u[%u], x%u_%u);\n",
                       i, u, slot, i, u);
        break;
    case FUSE_FIXED:
        cube_text_addf(text,
                       "        x%u_%u[0] = LOAD(in%u, at_%u[%u]);\n"
                       "        UNROLL for (int k = 1; k < WIDE; k++)\n"
                       "            x%u_%u[k] = x%u_%u[0];\n",
                       i, u, i, u, slot, i, u, i, u);
        break;
    case FUSE_PLACED:
        cube_text_addf(text,
                       "        UNROLL for (int k = 0; k < WIDE; k++)\n"
                       "            x%u_%u[k] = LOAD(in%u, ats_%u[k * SLOTS + "
                       "%u]);\n",
                       i, u, i, u, slot);
        break;
    default:
        break;
    }
}

static void add_store(struct fuse_emitter *emitter, uint32_t i, uint32_t u)
{
    const struct fuse_class *class = emitter->class;
    const uint32_t operand = emitter->plan->program.input_count + i;
    struct cube_text *text = &emitter->text;
    const uint32_t slot = class->slot[operand];

    if (emitter->is_paired) {
        fuse_emit_pair_store(emitter, i, u);
        return;
    }
    switch (class->how[operand]) {
    case FUSE_DENSE:
        cube_text_addf(text,
                       "        STORE_VECTOR(out%u, i + %u * NEXT, y%u_%u);\n",
                       i, u, i, u);
        break;
    case FUSE_NARROW:
        cube_text_addf(text,
                       "        UNROLL for (int k = 0; k < WIDE; k++)\n"
                       "            STORE(out%u, i + (%u * NEXT + k), "
                       "y%u_%u[k]);\n",
                       i, u, i, u);
        break;
    case FUSE_ALONG:
        cube_text_addf(text,
                       "        STORE_VECTOR(out%u, at_%u[%u], y%u_%u);\n", i,
                       u, slot, i, u);
        break;
    default:
        cube_text_addf(text,
                       "        UNROLL for (int k = 0; k < WIDE; k++)\n"
                       "            STORE(out%u, ats_%u[k * SLOTS + %u], "
                       "y%u_%u[k]);\n",
                       i, u, slot, i, u);
        break;
    }
}

/* The places of vector number U: of its first element, and of each. */
static void add_places(struct fuse_emitter *emitter, uint32_t u)
{
    struct cube_text *text = &emitter->text;

    if (!emitter->class->slots)
        return;
    if (has_placed(emitter))
        cube_text_addf(text,
                       "        INDEX at_%u[SLOTS];\n"
                       "        INDEX ats_%u[WIDE * SLOTS];\n\n"
                       "        UNROLL for (int k = WIDE - 1; k >= 0; k--) {\n"
                       "            place(i + (%u * NEXT + k), at_%u);\n"
                       "            UNROLL for (int s = 0; s < SLOTS; s++)\n"
                       "                ats_%u[k * SLOTS + s] = at_%u[s];\n"
                       "        }\n",
                       u, u, u, u, u, u);
    else
        cube_text_addf(text,
                       "        INDEX at_%u[SLOTS];\n\n"
                       "        place(i + %u * NEXT, at_%u);\n",
                       u, u, u);
}

/* What vectors of registers are made of: numbers, or words of two. */
static void add_vector(struct fuse_emitter *emitter, const char *name,
                       uint32_t index, uint32_t u, uint32_t reg)
{
    cube_text_addf(&emitter->text, "        %s %s%u_%u[WORDS];\n",
                   emitter->is_paired ? "uint" : fuse_type(emitter, reg), name,
                   index, u);
}

static void add_single(struct fuse_emitter *emitter, uint32_t i)
{
    if (emitter->is_paired)
        cube_text_addf(&emitter->text,
                       "        uint x%u = pair_of(LOAD(in%u, INDEX(0)), "
                       "LOAD(in%u, INDEX(0)));\n",
                       i, i, i);
    else
        cube_text_addf(&emitter->text,
                       "        %s x%u = LOAD(in%u, INDEX(0));\n",
                       fuse_type(emitter, i), i, i);
}

/* blocks(): DEEP vectors from element i on. */
static void add_blocks(struct fuse_emitter *emitter)
{
    const struct fuse_plan *plan = emitter->plan;
    const struct fuse_class *class = emitter->class;
    struct cube_text *text = &emitter->text;
    char behind[16];

    cube_text_add(text, "FN void blocks(INDEX i)\n{\n");
    for (uint32_t i = 0; i < plan->program.input_count; i++)
        if (class->how[i] == FUSE_SINGLE)
            add_single(emitter, i);
    for (uint32_t u = 0; u < class->deep; u++) {
        for (uint32_t i = 0; i < plan->program.input_count; i++)
            if (class->how[i] != FUSE_UNUSED && class->how[i] != FUSE_SINGLE)
                add_vector(emitter, "x", i, u, i);
        for (uint32_t i = 0; i < plan->program.output_count; i++)
            add_vector(emitter, "y", i, u, plan->program.outputs[i]);
        add_places(emitter, u);
    }
    for (uint32_t u = 0; u < class->deep; u++)
        for (uint32_t i = 0; i < plan->program.input_count; i++)
            add_load(emitter, i, u);
    for (uint32_t u = 0; u < class->deep; u++) {
        snprintf(behind, sizeof(behind), "_%u[k]", u);
        cube_text_add(text, "        UNROLL for (int k = 0; k < WORDS; k++)\n");
        add_chain_call(emitter, "            ",
                       emitter->is_paired ? "pair_chain" : "chain", behind);
        for (uint32_t i = 0; i < plan->program.output_count; i++)
            add_store(emitter, i, u);
    }
    cube_text_add(text, "}\n");
}

void fuse_emit_walk(struct fuse_emitter *emitter)
{
    const struct fuse_class *class = emitter->class;
    struct cube_text *text = &emitter->text;

    cube_text_addf(text,
                   "#define WIDE %u\n#define DEEP %u\n"
                   "#define NEXT (GROUP_SIZE * WIDE)\n#define WORDS %u\n",
                   class->wide, class->deep,
                   emitter->is_paired ? class->wide / 2 : class->wide);
    add_chain(emitter);
    if (emitter->is_paired)
        fuse_emit_pair_chain(emitter);
    add_offsets(emitter);
    add_one(emitter);
    add_blocks(emitter);
    /* What is left is compared, not where the next step ends: that may be no
     * INDEX any more. */
    cube_text_add(
        text, "KERNEL()\n{\n"
              "    INDEX step = INDEX(GROUP_COUNT) * (NEXT * DEEP);\n"
              "    INDEX i = INDEX(GROUP_X) * (NEXT * DEEP) + LOCAL_X * WIDE;\n"
              "    INDEX left = count - i;\n\n"
              "    while (left > INDEX(0)) {\n"
              "        if (left >= INDEX(NEXT * (DEEP - 1) + WIDE))\n"
              "            blocks(i);\n"
              "        else\n"
              "            LOOP for (int u = 0; u < DEEP * WIDE; u++) {\n"
              "                int k = u / WIDE * NEXT + u % WIDE;\n\n"
              "                if (left > INDEX(k))\n"
              "                    one(i + k);\n"
              "            }\n"
              "        left -= step;\n"
              "        if (left > INDEX(0))\n"
              "            i += step;\n"
              "    }\n}\n");
}

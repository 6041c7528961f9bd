/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.c - the kernel of a program with rows: for each row one loop over its
 * elements a pass (plan.h), and the lanes' folds between passes.
 *
 * With KEEP vectors a lane each FULL value that a later pass needs is an array
 * k<register> of the elements of the lane, and no element is read twice.
 * Without, each pass computes anew what it needs.
 */
#include "emit.h"

#include "../texts.h"
#include "folds.h"

#include <string.h>

/* What a loop computes: registers that it needs. */
struct loop {
    uint8_t needed[FUSE_REGISTERS];
    uint32_t pass;
    int is_last;
};

static int is_kept(const struct fuse_emitter *emitter, uint32_t reg)
{
    const struct fuse_value *value = &emitter->plan->values[reg];

    return emitter->class->keep && !value->is_row &&
           value->pass != FUSE_NEVER && value->last > value->pass;
}

static int is_input(const struct fuse_emitter *emitter, uint32_t reg)
{
    return reg < emitter->plan->program.input_count;
}

/* An input that is read once a row. */
static int is_of_row(const struct fuse_emitter *emitter, uint32_t reg)
{
    return emitter->plan->values[reg].is_row ||
           (is_input(emitter, reg) && emitter->class->how[reg] == FUSE_FIXED);
}

/* Whether input I is loaded ahead of the first pass's loop, all its vectors of
 * a lane at a time. */
static int is_ahead(const struct fuse_emitter *emitter, uint32_t reg,
                    uint32_t pass)
{
    const struct fuse_value *value = &emitter->plan->values[reg];

    return emitter->class->keep && is_input(emitter, reg) &&
           !is_of_row(emitter, reg) && value->pass == pass &&
           (pass == 0 || value->last > pass);
}

/* ---- what a loop needs ---- */

static int is_root(const struct fuse_emitter *emitter, uint32_t reg,
                   const struct loop *loop)
{
    const struct fuse_plan *plan = emitter->plan;
    const struct fuse_value *value = &plan->values[reg];

    if (value->pass == FUSE_NEVER || is_input(emitter, reg))
        return 0;
    if (plan->program.steps[reg - plan->program.input_count].is_reduction)
        return value->pass == loop->pass;
    if (value->is_row)
        return 0;
    /* Kept values are computed in their pass, outputs written there; without
     * keeping, outputs are written when nothing is read again. */
    if (emitter->class->keep)
        return value->pass == loop->pass;
    return value->output != FUSE_NEVER && loop->is_last;
}

static void find_needed(const struct fuse_emitter *emitter, struct loop *loop)
{
    const struct fuse_plan *plan = emitter->plan;

    memset(loop->needed, 0, sizeof(loop->needed));
    for (uint32_t i = plan->program.step_count; i-- > 0;) {
        const struct hob_fused_step *step = &plan->program.steps[i];
        const uint32_t reg = fuse_register(plan, i);

        if (is_root(emitter, reg, loop))
            loop->needed[reg] = 1;
        if (!loop->needed[reg] ||
            (is_kept(emitter, reg) && plan->values[reg].pass < loop->pass))
            continue;
        for (uint32_t k = 0; k < fuse_arity(step); k++)
            if (!plan->values[step->args[k]].is_row)
                loop->needed[step->args[k]] = 1;
    }
}

/* ---- elements ---- */

/* Where vector or element I of operand K begins: its number in its buffer. */
static void add_offset(struct fuse_emitter *emitter, uint32_t k,
                       const char *element)
{
    const struct fuse_class *class = emitter->class;
    struct cube_text *text = &emitter->text;
    const uint32_t slot = class->slot[k];

    if (class->rank - class->outer > 1)
        cube_text_addf(text, "at[%u] + inner_%u(%s)", slot, slot, element);
    else if (class->how[k] == FUSE_ALONG)
        cube_text_addf(text, "at[%u] + %s", slot, element);
    else
        cube_text_addf(text, "at[%u] + (%s) * strides[%u * RANK + OUTER]", slot,
                       element, slot);
}

/* Read the vector at element i of input K to x<K>. */
static void add_load(struct fuse_emitter *emitter, uint32_t k)
{
    struct cube_text *text = &emitter->text;

    cube_text_addf(text, "            %s x%u[WIDE];\n", fuse_type(emitter, k),
                   k);
    if (emitter->class->how[k] == FUSE_ALONG) {
        cube_text_addf(text, "            LOAD_VECTOR(in%u, ", k);
        add_offset(emitter, k, "i");
        cube_text_addf(text, ", x%u);\n", k);
        return;
    }
    cube_text_addf(text,
                   "            UNROLL for (int j = 0; j < WIDE; j++)\n"
                   "                x%u[j] = LOAD(in%u, ",
                   k, k);
    add_offset(emitter, k, "i + INDEX(j)");
    cube_text_add(text, ");\n");
}

static void add_store(struct fuse_emitter *emitter, uint32_t reg)
{
    const uint32_t output = emitter->plan->values[reg].output;
    const uint32_t k = emitter->plan->program.input_count + output;
    struct cube_text *text = &emitter->text;

    if (emitter->class->how[k] == FUSE_ALONG) {
        cube_text_addf(text, "                STORE_VECTOR(out%u, ", output);
        add_offset(emitter, k, "i");
        cube_text_addf(text, ", y%u);\n", output);
        return;
    }
    cube_text_addf(text,
                   "                UNROLL for (int j = 0; j < WIDE; j++)\n"
                   "                    STORE(out%u, ",
                   output);
    add_offset(emitter, k, "i + INDEX(j)");
    cube_text_addf(text, ", y%u[j]);\n", output);
}

/* Whether the loop writes REG. */
static int is_written(const struct fuse_emitter *emitter, uint32_t reg,
                      const struct loop *loop)
{
    const struct fuse_value *value = &emitter->plan->values[reg];

    return !value->is_row && value->output != FUSE_NEVER &&
           (emitter->class->keep ? value->pass == loop->pass : loop->is_last);
}

/* The head of a loop over the vectors of a lane; i is the first element. */
static void add_loop_head(struct fuse_emitter *emitter)
{
    if (emitter->class->keep)
        cube_text_add(
            &emitter->text,
            "        UNROLL for (int k = 0; k < KEEP; k++)\n"
            "        if (INDEX(MY_LANE * WIDE + k * STEP) < length) {\n"
            "            INDEX i = INDEX(MY_LANE * WIDE + k * STEP);\n"
            "\n");
    else
        cube_text_add(&emitter->text,
                      "        for (INDEX i = INDEX(MY_LANE * WIDE); i < "
                      "length; i += STEP) {\n");
}

/* EMIT for each reduction of the loop's pass. */
static void each_fold(struct fuse_emitter *emitter, const struct loop *loop,
                      void (*emit)(struct fuse_emitter *emitter,
                                   const struct fuse_reduction *one))
{
    struct fuse_reduction one;

    for (uint32_t i = 0; i < emitter->plan->program.step_count; i++)
        if (fuse_reduction_get(emitter, i, &one) &&
            emitter->plan->values[one.reg].pass == loop->pass)
            emit(emitter, &one);
}

/* What the body of a loop does for element j of a vector. */
static void add_element(struct fuse_emitter *emitter, const struct loop *loop)
{
    const struct fuse_plan *plan = emitter->plan;
    struct cube_text *text = &emitter->text;

    for (uint32_t reg = 0; reg < plan->value_count; reg++) {
        const struct fuse_value *value = &plan->values[reg];
        const int is_step = !is_input(emitter, reg);
        const int was_kept = is_kept(emitter, reg) && value->pass < loop->pass;

        if (!loop->needed[reg] || is_of_row(emitter, reg))
            continue;
        if (was_kept || is_ahead(emitter, reg, loop->pass))
            cube_text_addf(text,
                           "                %s r%u = k%u[k * WIDE + j];\n",
                           fuse_type(emitter, reg), reg, reg);
        else if (is_step)
            fuse_emit_step(emitter, reg - plan->program.input_count,
                           "                ");
        else
            cube_text_addf(text, "                %s r%u = x%u[j];\n",
                           fuse_type(emitter, reg), reg, reg);
        if (is_step && !was_kept && is_kept(emitter, reg))
            cube_text_addf(text, "                k%u[k * WIDE + j] = r%u;\n",
                           reg, reg);
        if (is_step && is_written(emitter, reg, loop))
            cube_text_addf(text, "                y%u[j] = r%u;\n",
                           value->output, reg);
    }
    each_fold(emitter, loop, fuse_emit_fold);
}

/* Inputs that the loop reads where it needs them. */
static int is_read_here(const struct fuse_emitter *emitter, uint32_t reg,
                        const struct loop *loop)
{
    return is_input(emitter, reg) && loop->needed[reg] &&
           !is_of_row(emitter, reg) && !is_ahead(emitter, reg, loop->pass) &&
           !(is_kept(emitter, reg) &&
             emitter->plan->values[reg].pass < loop->pass);
}

static void add_loads_ahead(struct fuse_emitter *emitter,
                            const struct loop *loop)
{
    struct cube_text *text = &emitter->text;
    int is_open = 0;

    for (uint32_t reg = 0; reg < emitter->plan->program.input_count; reg++) {
        if (!loop->needed[reg] || !is_ahead(emitter, reg, loop->pass))
            continue;
        if (!is_open)
            add_loop_head(emitter);
        is_open = 1;
        add_load(emitter, reg);
        cube_text_addf(text,
                       "            UNROLL for (int j = 0; j < WIDE; j++)\n"
                       "                k%u[k * WIDE + j] = x%u[j];\n",
                       reg, reg);
    }
    if (is_open)
        cube_text_add(text, "        }\n");
}

static void add_loop(struct fuse_emitter *emitter, struct loop *loop)
{
    const struct fuse_plan *plan = emitter->plan;
    struct cube_text *text = &emitter->text;

    find_needed(emitter, loop);
    each_fold(emitter, loop, fuse_emit_fold_begin);
    add_loads_ahead(emitter, loop);
    add_loop_head(emitter);
    for (uint32_t reg = 0; reg < plan->value_count; reg++) {
        if (is_read_here(emitter, reg, loop))
            add_load(emitter, reg);
        if (is_written(emitter, reg, loop))
            cube_text_addf(text, "            %s y%u[WIDE];\n",
                           fuse_type(emitter, reg), plan->values[reg].output);
    }
    each_fold(emitter, loop, fuse_emit_vector_begin);
    cube_text_add(text,
                  "            UNROLL for (int j = 0; j < WIDE; j++) {\n");
    add_element(emitter, loop);
    cube_text_add(text, "            }\n");
    each_fold(emitter, loop, fuse_emit_vector_end);
    cube_text_add(text, "            if (is_there) {\n");
    for (uint32_t reg = 0; reg < plan->value_count; reg++)
        if (is_written(emitter, reg, loop))
            add_store(emitter, reg);
    cube_text_add(text, "            }\n        }\n");
    each_fold(emitter, loop, fuse_emit_fold_end);
}

/* ---- rows ---- */

/* Row steps that wait for LEVEL reductions. */
static void add_row_steps(struct fuse_emitter *emitter, uint32_t level)
{
    const struct fuse_plan *plan = emitter->plan;

    for (uint32_t i = 0; i < plan->program.step_count; i++) {
        const struct fuse_value *value = &plan->values[fuse_register(plan, i)];

        if (value->is_row && value->pass != FUSE_NEVER &&
            value->level == level && !plan->program.steps[i].is_reduction)
            fuse_emit_step(emitter, i, "        ");
    }
}

/* Offsets: of rows, and of elements in rows of several dimensions. */
static void add_offsets(struct fuse_emitter *emitter)
{
    const struct fuse_class *class = emitter->class;
    struct cube_text *text = &emitter->text;

    cube_text_add(text, "FN void place(INDEX r, OUT_ARRAY(INDEX, at, SLOTS))\n"
                        "{\n    UNROLL for (int s = 0; s < SLOTS; s++)\n"
                        "        at[s] = bases[s];\n");
    if (class->outer)
        cube_text_add(text,
                      "    UNROLL for (int d = OUTER - 1; d > 0; d--) {\n"
                      "        INDEX rest = space_quotient(r, d);\n"
                      "        INDEX step = r - rest * sizes[d];\n\n"
                      "        UNROLL for (int s = 0; s < SLOTS; s++)\n"
                      "            at[s] += step * strides[s * RANK + d];\n"
                      "        r = rest;\n    }\n"
                      "    UNROLL for (int s = 0; s < SLOTS; s++)\n"
                      "        at[s] += r * strides[s * RANK];\n");
    cube_text_add(text, "}\n");
    for (uint32_t s = 0; s<class->slots &&class->rank - class->outer> 1; s++)
        cube_text_addf(
            text,
            "FN INDEX inner_%u(INDEX i)\n{\n    INDEX sum = INDEX(0);\n\n"
            "    UNROLL for (int d = RANK - 1; d > OUTER; d--) {\n"
            "        INDEX rest = space_quotient(i, d);\n\n"
            "        sum += (i - rest * sizes[d]) * strides[%u * RANK + d];\n"
            "        i = rest;\n    }\n"
            "    return sum + i * strides[%u * RANK + OUTER];\n}\n",
            s, s, s);
}

/* What is read once a row, and where what is kept goes. */
static void add_row_values(struct fuse_emitter *emitter)
{
    const struct fuse_plan *plan = emitter->plan;
    struct cube_text *text = &emitter->text;

    for (uint32_t reg = 0; reg < plan->value_count; reg++) {
        if (plan->values[reg].pass == FUSE_NEVER)
            continue;
        if (is_input(emitter, reg) && is_of_row(emitter, reg))
            cube_text_addf(text, "        %s r%u = LOAD(in%u, at[%u]);\n",
                           fuse_type(emitter, reg), reg, reg,
                           emitter->class->slot[reg]);
        else if (is_kept(emitter, reg) || is_ahead(emitter, reg, 0))
            cube_text_addf(text, "        %s k%u[KEEP * WIDE];\n",
                           fuse_type(emitter, reg), reg);
    }
}

static void add_row_outputs(struct fuse_emitter *emitter)
{
    const struct fuse_plan *plan = emitter->plan;

    for (uint32_t i = 0; i < plan->program.output_count; i++) {
        const uint32_t reg = plan->program.outputs[i];
        const uint32_t k = plan->program.input_count + i;

        if (plan->values[reg].is_row)
            cube_text_addf(&emitter->text,
                           "        if (is_there && MY_LANE == 0)\n"
                           "            STORE(out%u, at[%u], r%u);\n",
                           i, emitter->class->slot[k], reg);
    }
}

void fuse_emit_rows(struct fuse_emitter *emitter)
{
    const struct fuse_class *class = emitter->class;
    const uint32_t passes = emitter->plan->pass_count;
    struct cube_text *text = &emitter->text;
    struct loop loop;

    cube_text_addf(text,
                   "#define WIDE %u\n#define LANES %u\n#define IS_ALONG %u\n"
                   "#define KEEP %u\n#define OUTER %u\n",
                   class->wide, class->lanes, class->is_along, class->keep,
                   class->outer);
    cube_text_add(text, cube_text_fuse_rows);
    fuse_emit_fold_functions(emitter);
    add_offsets(emitter);
    /* Lanes of a row that is not there work at the last one, unwritten. */
    cube_text_add(text,
                  "KERNEL()\n{\n"
                  "    INDEX first = INDEX(GROUP_X) * ROWS;\n"
                  "    INDEX left = count - first;\n\n"
                  "    while (left > INDEX(0)) {\n"
                  "        bool is_there = INDEX(MY_ROW) < left;\n"
                  "        INDEX at[SLOTS];\n\n"
                  "        place(is_there ? first + INDEX(MY_ROW) : count - "
                  "INDEX(1), at);\n");
    add_row_values(emitter);
    for (uint32_t pass = 0; pass < passes; pass++) {
        loop.pass = pass;
        loop.is_last = pass + 1 == passes;
        add_row_steps(emitter, pass);
        add_loop(emitter, &loop);
    }
    for (uint32_t level = passes; level <= HOB_FUSED_MAX_STEPS; level++)
        add_row_steps(emitter, level);
    add_row_outputs(emitter);
    cube_text_add(text, "        left -= INDEX(GROUP_COUNT) * ROWS;\n"
                        "        if (left > INDEX(0))\n"
                        "            first += INDEX(GROUP_COUNT) * ROWS;\n"
                        "    }\n}\n");
}

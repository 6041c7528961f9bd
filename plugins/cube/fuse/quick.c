/* SPDX-License-Identifier: Apache-2.0 */
#include "quick.h"

#include "steps.h"

#include <hob/ops.h>

int fuse_rounds_quickly(const struct fuse_plan *plan, uint32_t index)
{
    const struct hob_fused_step *step = &plan->program.steps[index];

    /* A cast goes by bits, subnormal numbers and all. */
    return step->dtype == HOB_DTYPE_BF16 && step->op != HOB_OP_CAST &&
           !fuse_is_exact(fuse_function(cube_map_op_find(step->op), step));
}

int fuse_is_quick(const struct fuse_plan *plan, const struct fuse_class *class,
                  const struct cube_limits *limits)
{
    if (!limits->sums_to_bf16 || plan->program.row_rank || class->wide < 2 ||
        (plan->flags & CUBE_USES_F64))
        return 0;
    for (uint32_t i = 0; i < plan->program.step_count; i++)
        if (plan->values[fuse_register(plan, i)].pass != FUSE_NEVER &&
            fuse_rounds_quickly(plan, i))
            return 1;
    return 0;
}

void fuse_emit_quick_inputs(struct fuse_emitter *emitter)
{
    const struct fuse_plan *plan = emitter->plan;

    for (uint32_t i = 0; i < plan->program.input_count; i++)
        if (plan->values[i].pass != FUSE_NEVER &&
            (plan->values[i].dtype == HOB_DTYPE_BF16 ||
             plan->values[i].dtype == HOB_DTYPE_F32))
            cube_text_addf(&emitter->text, "    quick_takes(r%u);\n", i);
}

void fuse_emit_quick_store(struct fuse_emitter *emitter, uint32_t i)
{
    const struct fuse_class *class = emitter->class;
    const uint32_t operand = emitter->plan->program.input_count + i;
    struct cube_text *text = &emitter->text;

    cube_text_addf(text,
                   "    uint z%u[WIDE / 2];\n\n"
                   "    UNROLL for (int k = 0; k < WIDE; k += 2)\n"
                   "        z%u[k / 2] = quick_pair(y%u[k], y%u[k + 1]);\n",
                   i, i, i, i);
    if (class->how[operand] == FUSE_DENSE)
        cube_text_addf(text, "    store_pairs_out%u(i, z%u);\n", i, i);
    else
        cube_text_addf(text, "    store_pairs_out%u(at[%u], z%u);\n", i,
                       class->slot[operand], i);
}

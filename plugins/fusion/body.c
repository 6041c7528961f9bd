/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - ops that are several steps: softmax in a group with what comes
 * before and after.
 *
 * The backend has a kernel of its own for such an op, which is what a lone one
 * runs as, and says how much dearer the steps are to it; in a group that saves
 * more bytes than that they are taken.
 */
#include "program.h"

#include <hob/ops.h>

#include <stddef.h>
#include <string.h>

enum { MOST = 6, NONE = HOB_FUSED_NONE };

/* Register 0 is the op's tensor, register K + 1 what step K gives. */
struct body_step {
    uint16_t op;
    uint8_t kind; /* enum hob_fused_kind */
    uint8_t is_reduction;
    uint8_t args[3];
};

static const struct body {
    uint32_t op;
    uint32_t count;
    struct body_step steps[MOST];
} bodies[] = {
    {HOB_OP_SOFTMAX,
     5,
     {{HOB_OP_MAX_DIM, HOB_FUSED_ROW, 1, {0, NONE, NONE}},
      {HOB_OP_SUB, HOB_FUSED_FULL, 0, {0, 1, NONE}},
      {HOB_OP_EXP, HOB_FUSED_FULL, 0, {2, NONE, NONE}},
      {HOB_OP_SUM_DIM, HOB_FUSED_ROW, 1, {3, NONE, NONE}},
      {HOB_OP_DIV, HOB_FUSED_FULL, 0, {3, 4, NONE}}}},
    {HOB_OP_LOG_SOFTMAX,
     6,
     {{HOB_OP_MAX_DIM, HOB_FUSED_ROW, 1, {0, NONE, NONE}},
      {HOB_OP_SUB, HOB_FUSED_FULL, 0, {0, 1, NONE}},
      {HOB_OP_EXP, HOB_FUSED_FULL, 0, {2, NONE, NONE}},
      {HOB_OP_SUM_DIM, HOB_FUSED_ROW, 1, {3, NONE, NONE}},
      {HOB_OP_LOG, HOB_FUSED_ROW, 0, {4, NONE, NONE}},
      {HOB_OP_SUB, HOB_FUSED_FULL, 0, {2, 5, NONE}}}},
};

static const struct body *find_body(uint32_t op)
{
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (bodies[i].op == op)
            return &bodies[i];
    return NULL;
}

int fu_has_body(uint32_t op)
{
    return find_body(op) != NULL;
}

static struct hob_fused_step make_step(const struct body_step *from,
                                       uint32_t dtype)
{
    struct hob_fused_step step = {.op = from->op,
                                  .dtype = (uint8_t)dtype,
                                  .kind = from->kind,
                                  .is_reduction = from->is_reduction};

    memcpy(step.args, from->args, sizeof(step.args));
    return step;
}

/* What the backend charges for the steps of NODE, in bytes; 0: nothing,
 * UINT64_MAX: they are never worth it. */
static uint64_t cost_of(const struct fu_layer *layer,
                        const struct fu_node *node, int64_t row)
{
    const struct hob_fused_compute *fused = layer->fused;
    const uint64_t bytes = 2 * fu_bytes(fu_see_value(&node->values[0]));
    uint32_t percent = HOB_FUSED_NEVER;

    if (fused->struct_size >= offsetof(struct hob_fused_compute, body_cost) +
                                  sizeof(fused->body_cost) &&
        fused->body_cost)
        percent = fused->body_cost(layer->fused_instance, node->op,
                                   node->values[0].dtype, row);
    return percent == HOB_FUSED_NEVER
               ? UINT64_MAX
               : bytes / 100 * percent + bytes % 100 * percent / 100;
}

int fu_classify_body(const struct fu_layer *layer, struct fu_item *item)
{
    const struct fu_node *node = item->node;
    const struct fu_value *value = &node->values[0];
    const struct body *body = find_body(node->op);
    const int64_t last = (int64_t)value->rank - 1;

    /* In halves the kernel's own sums and what lies between are wider. */
    if (!body || !value->rank || value->shape[last] < 2 ||
        (node->args[1].u.i64 != last && node->args[1].u.i64 != -1) ||
        (value->dtype != HOB_DTYPE_F32 && value->dtype != HOB_DTYPE_F64))
        return 0;
    item->cost = cost_of(layer, node, value->shape[last]);
    if (item->cost == UINT64_MAX)
        return 0;
    for (uint32_t i = 0; i < body->count; i++) {
        const struct hob_fused_step step =
            make_step(&body->steps[i], value->dtype);
        const uint8_t dtypes[] = {value->dtype, value->dtype};

        if (!layer->fused->supports(layer->fused_instance, &step, dtypes))
            return 0;
    }
    memset(&item->step, 0, sizeof(item->step));
    item->rows = 1;
    item->class = FU_BODY;
    return 1;
}

uint32_t fu_step_count(const struct fu_item *item)
{
    return item->class == FU_BODY ? find_body(item->node->op)->count : 1;
}

int fu_add_body(struct fu_program *p, const struct fu_item *item, uint8_t x,
                uint8_t mark)
{
    const struct body *body = find_body(item->node->op);
    uint8_t regs[MOST + 1] = {x};

    if (p->program.step_count + body->count > HOB_FUSED_MAX_STEPS)
        return 1;
    for (uint32_t i = 0; i < body->count; i++) {
        struct hob_fused_step *step = &p->steps[p->program.step_count];

        *step = make_step(&body->steps[i], item->node->values[0].dtype);
        for (uint32_t k = 0; k < 3; k++)
            if (step->args[k] != HOB_FUSED_NONE)
                step->args[k] = regs[step->args[k]];
        regs[i + 1] = (uint8_t)(mark | p->program.step_count++);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.c - matrix products with what is done to each of their elements: a
 * bias, an activation, a residual. A group finishes the product that it alone
 * reads where the base can, while parts of it are in the cache or in registers;
 * the product itself never gets memory, and each of its bytes is neither
 * written nor read.
 */
#include "groups.h"

#include <hob/ops.h>

#include <string.h>

/* Whether ITEM is a product that nobody holds or asks for. */
static int is_product(const struct fu_item *item)
{
    const struct fu_node *node = item->node;
    const struct fu_value *value = &node->values[0];

    return (node->op == HOB_OP_MATMUL || node->op == HOB_OP_LINEAR) &&
           item->class == FU_OTHER && !item->match && !node->is_asked &&
           node->ret_count == 1 && node->values[0].users && !value->handles &&
           !value->tensor && value->rank > 1 &&
           (value->dtype == HOB_DTYPE_F32 || value->dtype == HOB_DTYPE_F64);
}

static int is_shape_of(const struct fu_value *value, const int64_t *shape,
                       uint32_t rank)
{
    return value->rank == rank &&
           !memcmp(shape, value->shape, rank * sizeof(int64_t));
}

/* Whether ITEM may read a product that its group finishes. One that stays
 * pending would want the product again. */
static int may_finish(const struct fu_item *item)
{
    return item->class == FU_STEP && !item->stays && !item->frame.rank;
}

uint64_t fu_product_bytes(const struct fu_window *window,
                          const struct fu_item *item)
{
    const struct fu_value *own = &item->node->values[0];

    if (item->class != FU_STEP || !FU_HAS(window->layer->fused, run_product))
        return 0;
    for (uint32_t i = 0; i < item->node->input_count; i++) {
        const struct fu_input *input = &item->node->inputs[i];
        const struct fu_item *maker = fu_maker_of(window, input);

        if (maker && is_product(maker) &&
            input->value->users == fu_reads(item, input->value) &&
            is_shape_of(input->value, own->shape, own->rank))
            return fu_bytes(fu_see(input));
    }
    return 0;
}

void fu_attach_products_locked(struct fu_window *window)
{
    const struct hob_fused_compute *fused = window->layer->fused;

    if (!fused || !FU_HAS(fused, run_product))
        return;
    for (uint32_t i = 0; i < window->count; i++) {
        const struct fu_item *item = &window->items[i];
        const struct fu_value *value = &item->node->values[0];
        struct fu_group *group;
        uint32_t index;

        if (!is_product(item) || fu_attach_to_update(window, i))
            continue;
        index = fu_only_reader(window, value, may_finish);
        if (index == FU_WINDOW)
            continue;
        group = &window->groups[index];
        if (group->product || group->rows ||
            !is_shape_of(value, group->shape, group->rank))
            continue;
        group->product = (uint16_t)(i + 1);
        fu_take_members(window, index, item->group);
    }
}

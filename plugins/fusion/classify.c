/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classify.c - what a node can be in a group.
 */
#include "plan.h"

#include <hob/ops.h>

#include <string.h>

struct fu_seen fu_see_value(const struct fu_value *value)
{
    const struct fu_seen seen = {value->shape, value->rank, value->dtype};

    return seen;
}

struct fu_seen fu_see(const struct fu_input *input)
{
    struct fu_seen seen;

    if (input->value) {
        seen = fu_see_value(input->value);
    } else {
        const struct hob_view *view = hob_tensor_view(input->tensor);

        seen.shape = view->shape;
        seen.rank = view->rank;
        seen.dtype = view->dtype;
    }
    return seen;
}

uint64_t fu_bytes(struct fu_seen seen)
{
    uint64_t bytes = hob_dtype_size(seen.dtype);

    for (uint32_t i = 0; i < seen.rank; i++)
        bytes *= (uint64_t)seen.shape[i];
    return bytes;
}

/* Put what NODE's attributes say into STEP: nonzero if a program has no place
 * for one of them. */
static int read_attributes(const struct fu_node *node, int is_fold,
                           struct hob_fused_step *step)
{
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const hob_value *arg = &node->args[i];

        switch (arg->tag) {
        case HOB_TAG_TENSOR:
        case HOB_TAG_DTYPE:
            break;
        case HOB_TAG_ENUM:
            step->variant = (uint16_t)arg->u.i64;
            break;
        case HOB_TAG_I64S:
            if (!is_fold)
                return 1;
            break;
        case HOB_TAG_I64:
            step->scalar_count += !is_fold; /* a fold's is its dimension */
            break;
        case HOB_TAG_U64:
        case HOB_TAG_F64:
        case HOB_TAG_BOOL:
            step->scalar_count++;
            break;
        case HOB_TAG_ABSENT:
            if (arg->count) /* a tensor */
                return 1;
            step->scalar_count++;
            break;
        default:
            return 1;
        }
    }
    return 0;
}

static int is_empty(const int64_t *shape, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++)
        if (!shape[i])
            return 1;
    return 0;
}

/* The dimensions of X that NODE, a fold, goes along; 0: that is not known, as
 * where the number is none of a dimension but the correction of a variance,
 * which no backend takes into a program. A size of 1 is as if it were not
 * there. */
static uint32_t fold_dims(const struct fu_node *node, const struct fu_seen *x)
{
    const hob_value *dims = node->arg_count > 1 ? &node->args[1] : NULL;
    const uint32_t count = dims && dims->tag == HOB_TAG_I64S ? dims->count : 1;
    uint32_t set = 0;

    if (!dims) /* all elements */
        set = (1u << x->rank) - 1;
    else if (dims->tag != HOB_TAG_I64 && dims->tag != HOB_TAG_I64S)
        return 0;
    for (uint32_t i = 0; i < count && dims; i++) {
        const int64_t rank = x->rank;
        const int64_t dim =
            dims->tag == HOB_TAG_I64 ? dims->u.i64 : dims->u.i64s[i];

        if (dim < -rank || dim >= rank)
            return 0;
        set |= 1u << (dim < 0 ? -1 - dim : rank - 1 - dim);
    }
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->shape[x->rank - 1 - i] == 1)
            set &= ~(1u << i);
    return set;
}

/* X row-major as [batches, outer, rows, inner], where a reduction along DIMS
 * goes over the second and the last; 0: it has not that form. */
static int find_parts(const struct fu_seen *x, uint32_t dims, int64_t out[4])
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < 4; i++)
        out[i] = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        const uint32_t is_row = (uint32_t)fu_has_dim(dims, x->rank - 1 - i);

        if (x->shape[i] == 1)
            continue;
        at += at % 2 != is_row;
        if (at == 4)
            return 0;
        out[at] *= x->shape[i];
    }
    return 1;
}

/* Whether the backend takes ITEM, a fold over elements of X, into a program:
 * if these are no rows, it says what that costs. */
static int is_taken(const struct fu_layer *layer, struct fu_item *item,
                    const struct fu_seen *x)
{
    const struct hob_fused_compute *fused = layer->fused;
    const uint64_t bytes = fu_bytes(*x);
    int64_t parts[4];
    uint32_t percent;

    if (!find_parts(x, item->rows, parts))
        return 0;
    if (parts[2] == 1)
        return 1;
    if (!FU_HAS(fused, apart_cost))
        return 0;
    percent = fused->apart_cost(layer->fused_instance, item->node->op, x->dtype,
                                parts);
    item->is_apart = 1;
    item->cost = bytes / 100 * percent + bytes % 100 * percent / 100;
    return percent != HOB_FUSED_NEVER;
}

static int is_constant(const struct fu_node *node)
{
    return (node->op == HOB_OP_FULL || node->op == HOB_OP_ZEROS ||
            node->op == HOB_OP_ONES) &&
           hob_dtype_size(node->values[0].dtype);
}

/* Whether operands of NODE broadcast as those of add do. */
static int is_elementwise(const struct fu_node *node)
{
    return node->fuse == HOB_FUSE_ELEMENTWISE ||
           (node->fuse == HOB_FUSE_INLINE &&
            (node->input_count == 1 || node->op == HOB_OP_ACTIVATION_BACKWARD));
}

static int is_fold(const struct fu_node *node)
{
    return node->input_count == 1 &&
           (node->fuse == HOB_FUSE_REDUCE || node->op == HOB_OP_SUM_DIMS ||
            node->op == HOB_OP_MEAN_DIMS || node->op == HOB_OP_MAX_DIMS ||
            node->op == HOB_OP_MIN_DIMS);
}

int fu_may_group(const struct fu_node *node)
{
    return is_elementwise(node) || is_fold(node) || fu_has_body(node->op) ||
           fu_is_update(node->op);
}

void fu_classify(const struct fu_layer *layer, struct fu_item *item)
{
    const struct fu_node *node = item->node;
    const int folds = is_fold(node);
    uint8_t dtypes[3];

    item->class = FU_OTHER;
    if (!layer->fused || node->ret_count != 1 ||
        is_empty(node->values[0].shape, node->values[0].rank))
        return;
    if (is_constant(node)) {
        item->class = FU_CONSTANT;
        return;
    }
    if (fu_classify_body(layer, item))
        return;
    if (!(folds || is_elementwise(node)) || !node->input_count ||
        node->input_count > 3)
        return;
    memset(&item->step, 0, sizeof(item->step));
    item->step.op = (uint16_t)node->op;
    item->step.dtype = node->values[0].dtype;
    item->step.is_reduction = (uint8_t)folds;
    for (uint32_t i = 0; i < 3; i++) {
        struct fu_seen seen;

        item->step.args[i] = HOB_FUSED_NONE;
        if (i >= node->input_count)
            continue;
        seen = fu_see(&node->inputs[i]);
        if (is_empty(seen.shape, seen.rank) || !hob_dtype_size(seen.dtype))
            return;
        item->step.args[i] = (uint8_t)i;
        dtypes[i] = (uint8_t)seen.dtype;
    }
    if (read_attributes(node, folds, &item->step))
        return;
    if (folds) {
        struct fu_seen x = fu_see(&node->inputs[0]);

        item->rows = (uint8_t)fold_dims(node, &x);
        if (!item->rows || !is_taken(layer, item, &x))
            return;
        item->step.kind = HOB_FUSED_ROW;
    }
    if (layer->fused->supports(layer->fused_instance, &item->step, dtypes))
        item->class = folds ? FU_FOLD : FU_STEP;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_order.c - in which order a run goes through its elements, and which way
 * its blocks are cut. All of it follows from sizes and strides.
 */
#include "fused.h"

enum {
    COLUMNS_FEW = 8, /* rows one by one are as good */
    LONG = 1 << 18   /* elements of a long row: threads share a few of them */
};

static void append(struct fused_order *order, const int64_t *shape,
                   uint32_t dim)
{
    if (shape[dim] == 1)
        return;
    order->shape[order->rank] = shape[dim];
    order->from[order->rank] = (uint8_t)dim;
    order->flip[order->rank] = 0;
    order->rank++;
}

/* As DIMS lie in memory by STRIDES, the furthest apart first. */
static uint32_t sort_dims(uint8_t *dims, const int64_t *shape,
                          const int64_t *strides, uint32_t first, uint32_t end)
{
    uint32_t count = 0;

    for (uint32_t i = first; i < end; i++) {
        const int64_t stride = flex_magnitude(strides[i]);
        uint32_t at = count;

        if (shape[i] == 1)
            continue;
        for (; at > 0 && flex_magnitude(strides[dims[at - 1]]) < stride; at--)
            dims[at] = dims[at - 1];
        dims[at] = (uint8_t)i;
        count++;
    }
    return count;
}

/* Elements are independent of each other: go through them as STRIDES, an
 * output's, lie in memory. */
static void order_elements(struct fused_order *order, const int64_t *shape,
                           const int64_t *strides, uint32_t rank)
{
    uint8_t dims[HOB_MAX_RANK];
    const uint32_t count = sort_dims(dims, shape, strides, 0, rank);

    for (uint32_t i = 0; i < count; i++) {
        append(order, shape, dims[i]);
        order->flip[i] = strides[dims[i]] < 0;
    }
}

/* How an input's rows lie: what comes before them in memory and in them. */
struct parts {
    uint8_t dims[HOB_MAX_RANK]; /* of the row, the furthest apart first */
    uint32_t count;
    uint32_t outer;   /* of these, those that lie further apart than rows do */
    uint32_t batches; /* dimensions of rows that lie further apart than those */
};

static void find_parts(struct parts *parts,
                       const struct hob_fused_operand *input,
                       const int64_t *shape, uint32_t rows, uint32_t rank)
{
    const int64_t *strides = input->strides;
    int64_t nearest = 0, furthest;

    parts->count = sort_dims(parts->dims, shape, strides, rows, rank);
    parts->outer = parts->batches = 0;
    for (uint32_t i = 0; i < rows; i++) {
        const int64_t stride = flex_magnitude(strides[i]);

        if (shape[i] != 1 && stride && (!nearest || stride < nearest))
            nearest = stride;
    }
    while (nearest && parts->outer < parts->count &&
           flex_magnitude(strides[parts->dims[parts->outer]]) > nearest)
        parts->outer++;
    if (!parts->outer)
        return;
    furthest = flex_magnitude(strides[parts->dims[0]]);
    while (shape[parts->batches] == 1 ||
           flex_magnitude(strides[parts->batches]) > furthest)
        parts->batches++; /* not all: one is nearer */
}

/* Whether values of so many rows stay near from one pass to the next. */
static int is_near(const struct fused_kernel *kernel, int64_t rows, int64_t n)
{
    return (uint64_t)n * sizeof(float) <=
           kernel->device->l2_bytes / 2 / (uint64_t)rows;
}

/* The way of rows of which parts lie apart, by their sizes. */
static uint8_t way_of(const struct fused_kernel *kernel,
                      const struct fused_order *order)
{
    int64_t near = 1;

    if (kernel->plans[0]->pass_count == 1)
        return FUSED_BY_ALL;
    if (order->inner > 1 || order->rows < COLUMNS_FEW)
        return is_near(kernel, 1, order->n) ? FUSED_BY_ROWS : FUSED_BY_ALL;
    near = flex_least(order->rows, FUSED_COLUMNS);
    return is_near(kernel, near, order->n) ? FUSED_BY_COLUMNS : FUSED_BY_ALL;
}

/* Rows one after the other. */
static void order_rows(struct fused_order *order,
                       const struct hob_fused_program *program,
                       const struct hob_fused_run *run)
{
    order->outer = 1;
    order->inner = order->n;
    for (uint32_t i = 0; i < program->rank; i++)
        append(order, run->shape, i);
}

/* Where an input's rows do not lie in one piece, the parts of each that lie
 * apart come before the rows, and the rest of it after them. */
static void order_parts(struct fused_order *order,
                        const struct fused_kernel *kernel,
                        const struct hob_fused_run *run)
{
    const struct hob_fused_program *program = &kernel->program;
    const uint32_t rows = (uint32_t)program->rank - program->row_rank;
    struct parts parts = {.outer = 0};

    for (uint32_t i = 0; i < program->input_count && !parts.outer; i++)
        if (program->inputs[i].kind == HOB_FUSED_FULL)
            find_parts(&parts, &run->inputs[i], run->shape, rows,
                       program->rank);
    for (uint32_t i = 0; i < parts.outer; i++)
        order->outer *= run->shape[parts.dims[i]];
    order->inner = order->n / order->outer;
    if (parts.outer)
        order->way = way_of(kernel, order);
    else if (order->rows <= FUSED_BLOCK_LEAST && order->n >= LONG)
        order->way = FUSED_BY_ALL;
    if (order->way == FUSED_BY_ROWS || !parts.outer) {
        order_rows(order, program, run);
        return;
    }
    if (order->way == FUSED_BY_COLUMNS)
        parts.batches = 0;
    for (uint32_t i = 0; i < parts.batches; i++) {
        order->batches *= run->shape[i];
        append(order, run->shape, i);
    }
    for (uint32_t i = 0; i < parts.outer; i++)
        append(order, run->shape, parts.dims[i]);
    for (uint32_t i = parts.batches; i < rows; i++)
        append(order, run->shape, i);
    for (uint32_t i = parts.outer; i < parts.count; i++)
        append(order, run->shape, parts.dims[i]);
}

void fused_order_init(struct fused_order *order,
                      const struct fused_kernel *kernel,
                      const struct hob_fused_run *run)
{
    const struct hob_fused_program *program = &kernel->program;
    const uint32_t rows = (uint32_t)program->rank - program->row_rank;

    order->way = program->row_rank ? FUSED_BY_ROWS : FUSED_BY_ELEMENTS;
    order->rank = 0;
    order->rows = order->n = order->outer = order->batches = 1;
    for (uint32_t i = 0; i < program->rank; i++)
        *(i < rows ? &order->rows : &order->n) *= run->shape[i];
    order->inner = order->n;
    if (order->way == FUSED_BY_ELEMENTS && program->output_count) {
        order_elements(order, run->shape, run->outputs[0].strides,
                       program->rank);
    } else if (order->way == FUSED_BY_ROWS && order->n && order->rows &&
               !kernel->plans[0]->is_along) {
        order_parts(order, kernel, run);
    } else {
        order_rows(order, program, run);
    }
}

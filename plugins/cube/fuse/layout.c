/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include "../cube.h"
#include "../splits.h"

#include <string.h>

enum {
    INDEX_MOST = INT32_MAX - (1 << 24), /* as cube_job_reach() */
    COST_MOST = 256, /* of a vector: text that is laid out straight */
    /* Of a lane, of all values that are kept: the first where a row has no more
     * for FUSE_GROUP lanes. Groups of few registers hide each other's waiting.
     */
    KEEP_FEW = 16,
    KEEP_MANY = 32,
    KEEP_SINGLES = 8, /* where each is a load of its own */
    LANES_MOST = 1024,
    COLUMNS_MANY = 1 << 15, /* one invocation walks down each */
    COLUMN_LANES = 8,
    /* A row that one group had better not walk alone. */
    ROW_LONG = 1 << 15
};

/* ---- operands ---- */

static const struct hob_fused_operand *
operand_of(const struct fuse_plan *plan, const struct hob_fused_run *run,
           uint32_t operand)
{
    return operand < plan->program.input_count
               ? &run->inputs[operand]
               : &run->outputs[operand - plan->program.input_count];
}

static int is_needed(const struct fuse_plan *plan, uint32_t operand)
{
    return plan->values[fuse_operand_register(plan, operand)].pass !=
           FUSE_NEVER;
}

static int is_row(const struct fuse_plan *plan, uint32_t operand)
{
    return plan->values[fuse_operand_register(plan, operand)].is_row;
}

/* Dimensions FIRST .. LAST - 1 of all operands as a collapsed space. ORDER says
 * which dimension of the run comes where. */
static void take_dims(struct cube_space *space, const struct fuse_plan *plan,
                      const struct hob_fused_run *run, const uint8_t *order,
                      uint32_t first, uint32_t last)
{
    struct hob_view view;

    view.rank = (uint8_t)(last - first);
    for (uint32_t d = first; d < last; d++)
        view.shape[d - first] = run->shape[order[d]];
    cube_space_init(space, view.rank, view.shape);
    for (uint32_t k = 0; k < fuse_operand_count(plan); k++) {
        const struct hob_fused_operand *operand = operand_of(plan, run, k);

        view.data = operand->data;
        view.dtype = plan->values[fuse_operand_register(plan, k)].dtype;
        for (uint32_t d = first; d < last; d++)
            view.strides[d - first] = operand->strides[order[d]];
        cube_space_add(space, &view);
    }
    cube_space_collapse(space);
}

/* The dimensions so that the first output is row-major, as far as it can be. */
static void order_dims(const struct fuse_plan *plan,
                       const struct hob_fused_run *run,
                       uint8_t order[HOB_MAX_RANK])
{
    const int64_t *strides = run->outputs[0].strides;

    for (uint32_t d = 0; d < plan->program.rank; d++) {
        uint32_t at = d;

        for (; at > 0 && cube_magnitude(strides[order[at - 1]]) <
                             cube_magnitude(strides[d]);
             at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)d;
    }
}

/* Offsets of operands that lie alike are the same. */
static void set_slots(struct fuse_layout *layout, uint32_t operands)
{
    const struct cube_space *space = &layout->space;
    struct fuse_class *class = &layout->class;
    uint8_t owners[FUSE_OPERANDS];

    for (uint32_t k = 0; k < operands; k++) {
        uint32_t slot = 0;

        if (class->how[k] < FUSE_ALONG)
            continue;
        while (slot < class->slots &&
               memcmp(space->strides[owners[slot]], space->strides[k],
                      space->rank * sizeof(space->strides[k][0])) != 0)
            slot++;
        if (slot == class->slots)
            owners[class->slots++] = (uint8_t)k;
        class->slot[k] = (uint8_t)slot;
    }
}

static void set_wide(struct fuse_layout *layout, uint32_t operands)
{
    const struct cube_space *space = &layout->space;

    layout->class.is_wide = layout->count > INDEX_MOST ||
                            layout->length > INDEX_MOST ||
                            space->count > INDEX_MOST;
    for (uint32_t k = 0; k < operands; k++) {
        int64_t reach = 1;

        for (uint32_t d = 0; d < space->rank; d++)
            reach +=
                (space->sizes[d] - 1) * cube_magnitude(space->strides[k][d]);
        if (reach > INDEX_MOST)
            layout->class.is_wide = 1;
    }
}

/* ---- elements ---- */

/* Whether operand K's vectors of WIDE elements lie on addresses of multiples
 * of theirs, if those of one do. */
static int is_aligned(const struct cube_space *space, uint32_t k, uint32_t wide)
{
    const uint64_t bytes = wide * hob_dtype_size(space->dtypes[k]);

    return (uintptr_t)space->data[k] % (bytes < 16 ? bytes : 16) == 0;
}

/* Whether WIDE elements from a multiple of WIDE on lie along the last
 * dimension of operand K. */
static int is_along(const struct cube_space *space, uint32_t k, uint32_t wide)
{
    const uint32_t last = space->rank - 1;

    if (space->strides[k][last] != 1 || space->sizes[last] % wide ||
        !is_aligned(space, k, wide))
        return 0;
    for (uint32_t d = 0; d < last; d++)
        if (space->strides[k][d] % (int64_t)wide)
            return 0;
    return 1;
}

static enum fuse_how how_of(const struct cube_space *space, uint32_t k,
                            uint32_t wide)
{
    const uint32_t last = space->rank - 1;

    if (cube_space_is_dense(space, k))
        return is_aligned(space, k, wide) ? FUSE_DENSE : FUSE_NARROW;
    if (cube_space_is_single(space, k))
        return FUSE_SINGLE;
    if (wide > 1 && is_along(space, k, wide))
        return FUSE_ALONG;
    if (wide > 1 && space->strides[k][last] == 0 &&
        space->sizes[last] % wide == 0)
        return FUSE_FIXED;
    return FUSE_PLACED;
}

static void set_hows(struct fuse_layout *layout, const struct fuse_plan *plan,
                     uint32_t wide)
{
    layout->class.wide = (uint8_t)wide;
    for (uint32_t k = 0; k < fuse_operand_count(plan); k++)
        layout->class.how[k] =
            (uint8_t)(is_needed(plan, k) ? how_of(&layout->space, k, wide)
                                         : FUSE_UNUSED);
}

/* Whether some operand goes in vectors. */
static int has_vectors(const struct fuse_class *class, uint32_t operands)
{
    for (uint32_t k = 0; k < operands; k++)
        if (class->how[k] == FUSE_DENSE || class->how[k] == FUSE_ALONG)
            return 1;
    return 0;
}

/* Bytes of the largest element. */
static uint32_t largest_of(const struct fuse_plan *plan)
{
    uint32_t largest = 1;

    for (uint32_t k = 0; k < fuse_operand_count(plan); k++) {
        const uint32_t size =
            hob_dtype_size(plan->values[fuse_operand_register(plan, k)].dtype);

        if (is_needed(plan, k) && size > largest)
            largest = size;
    }
    return largest;
}

static void set_elements(struct fuse_layout *layout,
                         const struct fuse_plan *plan,
                         const struct hob_fused_run *run)
{
    struct fuse_class *class = &layout->class;
    const uint32_t operands = fuse_operand_count(plan);
    uint8_t order[HOB_MAX_RANK];
    uint32_t wide = 16 / largest_of(plan);

    order_dims(plan, run, order);
    take_dims(&layout->space, plan, run, order, 0, plan->program.rank);
    layout->count = layout->space.count;
    /* What computes much waits for no memory, but long for its compiler. */
    while (wide > 1 && wide * plan->cost > COST_MOST)
        wide /= 2;
    set_hows(layout, plan, wide);
    if (!has_vectors(class, operands))
        set_hows(layout, plan, 1);
    class->has_rest = layout->count % class->wide != 0;
    class->group_size = FUSE_GROUP;
    set_slots(layout, operands);
    class->rank = class->slots ? (uint8_t)layout->space.rank : 0;
}

/* ---- rows ---- */

static void take_rows(struct fuse_layout *layout, const struct fuse_plan *plan,
                      const struct hob_fused_run *run)
{
    static const uint8_t order[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const uint32_t places = plan->program.rank - plan->program.row_rank;
    struct cube_space *space = &layout->space;
    struct cube_space inner;

    take_dims(space, plan, run, order, 0, places);
    take_dims(&inner, plan, run, order, places, plan->program.rank);
    layout->count = space->count;
    layout->length = inner.count;
    /* A row of one element has a dimension all the same. */
    if (!inner.rank) {
        inner.rank = 1;
        inner.sizes[0] = inner.count;
        for (uint32_t k = 0; k < inner.operand_count; k++)
            inner.strides[k][0] = 0;
    }
    layout->class.outer = (uint8_t)space->rank;
    for (uint32_t d = 0; d < inner.rank; d++) {
        space->sizes[space->rank] = inner.sizes[d];
        for (uint32_t k = 0; k < inner.operand_count; k++)
            space->strides[k][space->rank] = inner.strides[k][d];
        space->rank++;
    }
    space->count *= inner.count;
    layout->class.rank = (uint8_t)space->rank;
}

/* Whether operand K is the same for a whole row. */
static int is_fixed(const struct fuse_layout *layout, uint32_t k)
{
    for (uint32_t d = layout->class.outer; d < layout->space.rank; d++)
        if (layout->space.strides[k][d])
            return 0;
    return 1;
}

/* Rows whose elements lie closer together than the rows do, by the operand
 * with the most bytes. */
static int rows_lie_along(const struct fuse_layout *layout,
                          const struct fuse_plan *plan)
{
    const struct cube_space *space = &layout->space;
    const uint32_t last = space->rank - 1, outer = layout->class.outer;
    uint32_t most = 0;
    int along = 1;

    for (uint32_t k = 0; k < fuse_operand_count(plan) && outer; k++) {
        const uint32_t size = hob_dtype_size(space->dtypes[k]);
        const int64_t far = space->strides[k][outer - 1];

        if (!is_needed(plan, k) || is_row(plan, k) || is_fixed(layout, k) ||
            !far || size <= most)
            continue;
        most = size;
        along = cube_magnitude(space->strides[k][last]) <= cube_magnitude(far);
    }
    return along;
}

static void set_row_hows(struct fuse_layout *layout,
                         const struct fuse_plan *plan, uint32_t wide)
{
    struct fuse_class *class = &layout->class;

    class->wide = (uint8_t)wide;
    for (uint32_t k = 0; k < fuse_operand_count(plan); k++)
        class->how[k] =
            (uint8_t)(!is_needed(plan, k) ? FUSE_UNUSED
                      : is_row(plan, k)   ? FUSE_FIXED
                      : k < plan->program.input_count && is_fixed(layout, k)
                          ? FUSE_FIXED
                      : wide > 1 && is_along(&layout->space, k, wide)
                          ? FUSE_ALONG
                          : FUSE_PLACED);
}

/* The greatest power of two up to VALUE, at least 1. */
static int64_t power_up_to(int64_t value)
{
    int64_t power = 1;

    while (2 * power <= value)
        power *= 2;
    return power;
}

/* By sizes alone, as rows.c does it. */
static void split_rows(struct fuse_layout *layout, const struct fuse_plan *plan,
                       const struct cube_device *device)
{
    struct fuse_class *class = &layout->class;
    const uint32_t largest = largest_of(plan);
    uint32_t most = device->limits.group_size, wide = 16 / largest;
    int64_t vectors, keep;

    class->is_along = (uint8_t)rows_lie_along(layout, plan);
    set_row_hows(layout, plan, class->is_along ? wide : 1);
    if (!has_vectors(class, fuse_operand_count(plan)))
        set_row_hows(layout, plan, 1);
    wide = class->wide;
    if (most > LANES_MOST)
        most = LANES_MOST;
    keep = layout->length <= KEEP_FEW * FUSE_GROUP ? KEEP_FEW : KEEP_MANY;
    keep = keep / (plan->kept ? plan->kept : 1) / wide;
    if (wide == 1 && keep > KEEP_SINGLES)
        keep = KEEP_SINGLES;
    if (largest == 8)
        keep /= 2;
    keep = power_up_to(keep);
    vectors = (layout->length + wide - 1) / wide;
    if (class->is_along)
        class->lanes =
            (uint16_t)cube_power_from((vectors + keep - 1) / keep, most);
    else
        class->lanes = (uint16_t)(layout->count >= COLUMNS_MANY
                                      ? 1
                                      : cube_power_from(layout->length / keep,
                                                        COLUMN_LANES));
    vectors = (vectors + class->lanes - 1) / class->lanes;
    class->keep = (uint8_t)(vectors > keep || vectors == 0
                                ? 0
                                : cube_power_from(vectors, (uint32_t)keep));
    class->group_size = class->lanes > FUSE_GROUP ? class->lanes : FUSE_GROUP;
}

static hob_status set_rows(struct fuse_layout *layout,
                           const struct fuse_plan *plan,
                           const struct cube_device *device,
                           const struct hob_fused_run *run)
{
    struct fuse_class *class = &layout->class;
    int64_t rows;

    take_rows(layout, plan, run);
    split_rows(layout, plan, device);
    set_slots(layout, fuse_operand_count(plan));
    rows = class->group_size / class->lanes;
    layout->groups = cube_divide_up(layout->count, rows);
    /* Few rows that are long leave most of the device idle: the reductions
     * alone are split into parts. */
    if (layout->length > ROW_LONG &&
        layout->groups * 4 < cube_processors(device))
        return HOB_ERR_UNSUPPORTED;
    return HOB_OK;
}

hob_status fuse_layout_init(struct fuse_layout *layout,
                            const struct fuse_plan *plan,
                            const struct cube_device *device,
                            const struct hob_fused_run *run)
{
    int64_t step;
    hob_status status = HOB_OK;

    memset(&layout->class, 0, sizeof(layout->class));
    layout->length = 1;
    if (plan->program.row_rank) {
        status = set_rows(layout, plan, device, run);
    } else {
        set_elements(layout, plan, run);
        step = (int64_t)FUSE_GROUP * layout->class.wide;
        layout->groups = cube_divide_up(layout->count, step);
    }
    set_wide(layout, fuse_operand_count(plan));
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scatter.c - scatter_add, select_add and slice_assign.
 *
 * Additions are not atomic, as their order would not be determined: updates
 * are sorted by index, stably, and each element that is updated takes all of
 * its own in a row. That costs a sort of the indices, of one line where all
 * lines share them, and as long as the most frequent index has updates.
 */
#include "../cube.h"
#include "../indices.h"
#include "../lowest.h"
#include "../move.h"
#include "../sort.h"
#include "../texts.h"
#include "copy.h"

#include <inttypes.h>
#include <string.h>

static const struct cube_program program = {
    .name = "scatter_add",
    .text = cube_text_scatter_add,
    .buffers = {{"out", CUBE_WRITTEN}, {"value", 0}, {"sorted", 0}, {"places", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               {"n", CUBE_INDEX, 0},
               {"dim_size", CUBE_INDEX, 0},
               {"out_step", CUBE_INDEX, 0},
               {"value_step", CUBE_INDEX, 0},
               {"sorted_step", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("out"),
               CUBE_OPERAND_PARAMS("value"),
               CUBE_OPERAND_PARAMS("sorted"),
               CUBE_OPERAND_PARAMS("turn")},
    .constants = {"RANK"},
    .flags = CUBE_SPACES,
};

/* ---- the beginning ---- */

/* An argument that is still needed when the result has been begun. */
struct apart {
    struct hob_view view;
    void *copy; /* NULL: it lies elsewhere */
    uint64_t bytes;
};

/* Argument INDEX of CALL, or a copy of it where the result was placed over
 * it: X is going to be copied there. */
static hob_status apart_begin(struct apart *apart, struct cube_device *device,
                              struct hob_call *call, uint32_t index)
{
    const struct hob_view *view = hob_arg_view(call, index);
    const int64_t count = hob_view_count(view);
    int64_t stride = 1;
    hob_status st;

    apart->view = *view;
    apart->copy = NULL;
    apart->bytes = (uint64_t)count * hob_dtype_size(view->dtype);
    if (view->data != hob_ret_view(call, 0)->data || count == 0)
        return HOB_OK;
    st = device->runtime->alloc(device, apart->bytes, &apart->copy);
    if (st)
        return call->host->fail(call, st,
                                "%s: no memory for a copy of argument %" PRIu32,
                                call->op_name, index + 1);
    apart->view.data = apart->copy;
    for (uint32_t i = view->rank; i-- > 0;) {
        apart->view.strides[i] = stride;
        stride *= view->shape[i];
    }
    return cube_copy(device, call, &apart->view, view);
}

static void apart_end(struct apart *apart, struct cube_device *device)
{
    if (apart->copy)
        device->runtime->free(device, apart->copy, apart->bytes);
}

/* X's elements to the result, unless they are there. */
static hob_status begin_with(struct cube_device *device, struct hob_call *call,
                             const struct hob_view *x)
{
    const struct hob_view *out = hob_ret_view(call, 0);

    return x->data == out->data ? HOB_OK : cube_copy(device, call, out, x);
}

/* ---- additions ---- */

struct scatter {
    const struct hob_view *out, *value;
    struct hob_view indices; /* of value's shape, but 1 where lines share them */
    struct hob_view sorted, places; /* of the same shape, row-major */
    uint32_t dim;
};

/* Indices that lines share are sorted once. */
static void share(struct scatter *scatter)
{
    struct hob_view *indices = &scatter->indices;
    int64_t stride = 1;

    for (uint32_t i = 0; i < indices->rank; i++)
        if (i != scatter->dim && indices->strides[i] == 0)
            indices->shape[i] = 1;
    scatter->sorted = *indices;
    for (uint32_t i = indices->rank; i-- > 0;) {
        scatter->sorted.strides[i] = stride;
        stride *= indices->shape[i];
    }
    scatter->places = scatter->sorted;
    scatter->places.dtype = HOB_DTYPE_I32;
}

/* VIEW as an operand of value's space: none along dim. */
static void add_operand(struct cube_space *space, const struct scatter *scatter,
                        const struct hob_view *view)
{
    struct hob_view line = *scatter->value;

    line.data = view->data;
    line.dtype = view->dtype;
    for (uint32_t i = 0; i < line.rank; i++)
        line.strides[i] = i == scatter->dim || view->shape[i] == 1
                              ? 0
                              : view->strides[i];
    cube_space_add(space, &line);
}

static void add_strides(struct cube_job *job, const struct cube_space *space,
                        uint32_t operand, const struct hob_view *view)
{
    cube_job_i64(job, view ? cube_lowest(view, NULL) : 0);
    cube_job_i64s(job, space->strides[operand], space->rank);
}

static hob_status launch(struct cube_device *device, struct hob_call *call,
                         const struct scatter *scatter)
{
    const uint32_t dim = scatter->dim;
    struct hob_view turn = *scatter->value;
    struct cube_space space;
    struct cube_job job;

    memset(turn.strides, 0, sizeof(turn.strides));
    turn.strides[dim] = 1;
    cube_space_init(&space, turn.rank, turn.shape);
    add_operand(&space, scatter, scatter->out);
    add_operand(&space, scatter, scatter->value);
    add_operand(&space, scatter, &scatter->sorted);
    cube_space_add(&space, &turn);
    cube_space_collapse(&space);
    cube_job_init(&job, device, call, &program);
    cube_job_lowest(&job, scatter->out);
    cube_job_lowest(&job, scatter->value);
    cube_job_lowest(&job, &scatter->sorted);
    cube_job_lowest(&job, &scatter->places);
    cube_job_i64(&job, space.count);
    cube_job_i64(&job, scatter->value->shape[dim]);
    cube_job_i64(&job, scatter->out->shape[dim]);
    cube_job_i64(&job, scatter->out->strides[dim]);
    cube_job_i64(&job, scatter->value->strides[dim]);
    cube_job_i64(&job, scatter->sorted.strides[dim]);
    cube_job_reach(&job, scatter->out->shape[dim]);
    cube_job_space(&job, &space);
    add_strides(&job, &space, 0, scatter->out);
    add_strides(&job, &space, 1, scatter->value);
    add_strides(&job, &space, 2, &scatter->sorted);
    add_strides(&job, &space, 3, NULL);
    cube_job_constant(&job, (int32_t)space.rank);
    return cube_job_run(&job,
                        cube_groups(device, space.count, CUBE_GROUP_SIZE));
}

static hob_status sort_and_add(struct cube_device *device,
                               struct hob_call *call, struct scatter *scatter)
{
    const struct cube_runtime *runtime = device->runtime;
    const uint64_t count = (uint64_t)hob_view_count(&scatter->indices);
    const uint64_t sorted_bytes =
        (count * hob_dtype_size(scatter->sorted.dtype) + 255) / 256 * 256;
    const uint64_t bytes = sorted_bytes + count * 4;
    char *memory = NULL;
    hob_status st = runtime->alloc(device, bytes, (void **)(void *)&memory);

    if (st)
        return call->host->fail(call, st,
                                "%s: no memory to sort %" PRIu64 " indices",
                                call->op_name, count);
    scatter->sorted.data = memory;
    scatter->places.data = memory + sorted_bytes;
    st = cube_sort_run(device, call, &scatter->sorted, &scatter->places,
                       &scatter->indices, scatter->dim, 0);
    if (!st)
        st = launch(device, call, scatter);
    runtime->free(device, memory, bytes);
    return st;
}

/* x plus value at INDICES, of value's shape; REPORTED are the indices as the
 * caller gave them. */
static hob_status run(struct cube_device *device, struct hob_call *call,
                      const struct hob_view *indices,
                      const struct hob_view *reported, uint32_t dim)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t size = x->shape[dim];
    struct apart value;
    struct scatter scatter = {.out = hob_ret_view(call, 0),
                              .value = &value.view,
                              .indices = *indices,
                              .dim = dim};
    struct cube_flag flag;
    hob_status st = apart_begin(&value, device, call, 2);

    if (!st)
        st = cube_indices_begin(&flag, device, call, 1, reported, size);
    if (!st) {
        st = begin_with(device, call, x);
        share(&scatter);
        if (!st && hob_view_count(&value.view) > 0)
            st = sort_and_add(device, call, &scatter);
        st = cube_indices_end(&flag, device, call, st, reported, size);
    }
    apart_end(&value, device);
    return st;
}

static hob_status scatter_add(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    struct apart indices;
    hob_status st = apart_begin(&indices, device, call, 1);

    if (!st)
        st = run(device, call, &indices.view, &indices.view,
                 cube_dim(cube_arg_i64(call, 3), hob_arg_view(call, 0)->rank));
    apart_end(&indices, device);
    return st;
}

static hob_status select_add(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const uint32_t dim =
        cube_dim(cube_arg_i64(call, 3), hob_arg_view(call, 0)->rank);
    struct hob_view spread = *hob_arg_view(call, 2);
    struct apart indices;
    hob_status st = apart_begin(&indices, device, call, 1);

    spread.data = indices.view.data;
    spread.dtype = indices.view.dtype;
    memset(spread.strides, 0, sizeof(spread.strides));
    spread.strides[dim] = indices.view.strides[0];
    if (!st)
        st = run(device, call, &spread, &indices.view, dim);
    apart_end(&indices, device);
    return st;
}

/* ---- slice_assign ---- */

static int64_t clamp_position(int64_t position, int64_t size)
{
    if (position < 0)
        position += size;
    if (position < 0)
        return 0;
    return position > size ? size : position;
}

/* Narrow REGION, a view of the result, to the ranges of the call. A negative
 * step takes the range, then walks it from its end. */
static void narrow(const struct hob_call *call, struct hob_view *region)
{
    const hob_value *starts = &call->args[2];
    const hob_value *ends = &call->args[3];
    const hob_value *steps = &call->args[4];
    const int64_t size = hob_dtype_size(region->dtype);

    for (uint32_t i = 0; i < starts->count; i++) {
        const int64_t low = clamp_position(starts->u.i64s[i], region->shape[i]);
        const int64_t high = clamp_position(ends->u.i64s[i], region->shape[i]);
        const int64_t step = i < steps->count ? steps->u.i64s[i] : 1;
        const int64_t first = step < 0 ? high - 1 : low;

        region->shape[i] =
            hob_arg_view(call, 1)->shape[i]; /* as infer has checked */
        if (region->shape[i] > 0)
            region->data =
                (char *)region->data + first * region->strides[i] * size;
        /* A step that is never taken may be too large to multiply. */
        region->strides[i] =
            region->shape[i] > 1 ? region->strides[i] * step : 0;
    }
}

static hob_status slice_assign(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    struct hob_view region = *hob_ret_view(call, 0);
    struct apart value;
    hob_status st = apart_begin(&value, device, call, 1);

    if (!st)
        st = begin_with(device, call, hob_arg_view(call, 0));
    narrow(call, &region);
    if (!st)
        st = cube_move(device, call, &region, &value.view);
    apart_end(&value, device);
    return st;
}

/* ---- the table ---- */

static const uint32_t add_masks[] = {HOB_MASK_NUM, HOB_MASK_INT, HOB_MASK_NUM};
static const uint32_t assign_masks[] = {HOB_MASK_ANY, HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "scatter_add",
        .signature = "(x: Num, indices: Int, value: Num, dim: i64) -> x",
        .dtypes = add_masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = scatter_add,
    },
    {
        .op = "select_add",
        .signature = "(x: Num, indices: Int, value: Num, dim: i64) -> x",
        .dtypes = add_masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = select_add,
    },
    {
        .op = "slice_assign",
        .signature = "(x: Any, value: Any, starts: [i64], ends: [i64], "
                     "steps: [i64]) -> x",
        .dtypes = assign_masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = slice_assign,
    },
};

const struct cube_entries cube_scatter_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

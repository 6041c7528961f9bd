/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick.c - elements picked at positions: gather, select and embedding are one
 * kernel over the places of the result. The indices are checked where they are
 * used; the call waits for the answer.
 */
#include "../indices.h"
#include "../lowest.h"
#include "../move.h"
#include "../texts.h"
#include "../cube.h"

#include <string.h>

static const struct cube_program program = {
    .name = "pick",
    .text = cube_text_pick,
    .buffers = {{"out", CUBE_WRITTEN},
                {"x", 0},
                {"indices", 0},
                {"bad", CUBE_WRITTEN | CUBE_ATOMIC}},
    .params = {{"count", CUBE_INDEX, 0},
               {"dim_size", CUBE_INDEX, 0},
               {"dim_stride", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("x"),
               CUBE_OPERAND_PARAMS("indices"),
               CUBE_OPERAND_PARAMS("number")},
    .constants = {"RANK"},
    .flags = CUBE_SPACES,
};

/* Operands of the space of the result. */
enum { X, INDICES, NUMBER };

struct pick {
    struct cube_space space;
    const struct hob_view *x, *indices;
    int64_t dim_size, dim_stride;
};

/* A view of the space, to be filled in, of DATA. */
static struct hob_view view_of(const struct hob_view *out, void *data,
                               uint32_t dtype)
{
    struct hob_view view = *out;

    view.data = data;
    view.dtype = (uint8_t)dtype;
    memset(view.strides, 0, sizeof(view.strides));
    return view;
}

/* The indices lie along RANK dimensions of the result from FIRST on. */
static void add_indices(struct pick *pick, const struct hob_view *out,
                        uint32_t first)
{
    const struct hob_view *indices = pick->indices;
    struct hob_view at = view_of(out, indices->data, indices->dtype);
    struct hob_view number = view_of(out, NULL, HOB_DTYPE_U8);
    int64_t stride = 1;

    for (uint32_t i = indices->rank; i-- > 0;) {
        at.strides[first + i] = indices->strides[i];
        number.strides[first + i] = stride;
        stride *= indices->shape[i];
    }
    cube_space_add(&pick->space, &at);
    cube_space_add(&pick->space, &number);
}

/* Describe the walk over OUT; X has the strides XS there, 0 along DIM of X. */
static void pick_init(struct pick *pick, const struct hob_view *out,
                      const int64_t *xs, uint32_t dim, uint32_t first)
{
    const struct hob_view *x = pick->x;
    struct hob_view at = view_of(out, x->data, x->dtype);

    pick->dim_size = x->shape[dim];
    pick->dim_stride = x->strides[dim];
    memcpy(at.strides, xs, out->rank * sizeof(*xs));
    cube_space_init(&pick->space, out->rank, out->shape);
    cube_space_add(&pick->space, &at);
    add_indices(pick, out, first);
    cube_space_collapse(&pick->space);
}

/* Elements that share an index and lie side by side. */
static uint32_t width_of(const struct pick *pick)
{
    const struct cube_space *space = &pick->space;
    uint32_t width = 16 / hob_dtype_size(pick->x->dtype);

    if (space->rank == 0 || space->strides[INDICES][space->rank - 1] != 0)
        return 1;
    while (width > 1 && !(cube_space_takes(space, X, width) &&
                          pick->dim_stride % width == 0 &&
                          cube_lowest(pick->x, NULL) % width == 0))
        width /= 2;
    return width;
}

static hob_status launch(struct cube_device *device, struct hob_call *call,
                         struct pick *pick, const struct cube_flag *flag)
{
    const uint32_t dtype = cube_bits_dtype(hob_dtype_size(pick->x->dtype));
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t width = width_of(pick);
    struct hob_view x = *pick->x;
    struct cube_space *space = &pick->space;
    struct cube_job job;

    x.dtype = (uint8_t)dtype;
    cube_job_init(&job, device, call, &program);
    cube_job_memory(&job, out->data, dtype, space->count);
    cube_job_lowest(&job, &x);
    cube_job_operand(&job, space, INDICES);
    cube_job_memory(&job, flag->data, HOB_DTYPE_U32, 1);
    job.variant.widths[0] = job.variant.widths[1] = (uint8_t)width;
    cube_space_widen(space, width);
    cube_job_i64(&job, space->count);
    cube_job_i64(&job, pick->dim_size);
    cube_job_reach(&job, pick->dim_size);
    cube_job_i64(&job, pick->dim_stride);
    cube_job_space(&job, space);
    cube_job_i64(&job, cube_lowest(&x, NULL));
    cube_job_i64s(&job, space->strides[X], space->rank);
    cube_job_strides(&job, space, INDICES);
    cube_job_strides(&job, space, NUMBER);
    cube_job_constant(&job, (int32_t)space->rank);
    return cube_job_run(&job,
                        cube_groups(device, space->count, CUBE_GROUP_SIZE));
}

static hob_status run(struct cube_device *device, struct hob_call *call,
                      struct pick *pick)
{
    const struct hob_view *indices = pick->indices;
    struct cube_flag flag;
    hob_status st;

    if (pick->space.count == 0) { /* though indices may be bad, as on flex */
        st = cube_indices_begin(&flag, device, call, 1, indices,
                                pick->dim_size);
        return st ? st
                  : cube_indices_end(&flag, device, call, st, indices,
                                     pick->dim_size);
    }
    st = cube_indices_flag(&flag, device, call, 1, pick->dim_size);
    if (st)
        return st;
    st = launch(device, call, pick, &flag);
    return cube_indices_end(&flag, device, call, st, indices, pick->dim_size);
}

static hob_status gather(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const uint32_t dim = cube_dim(cube_arg_i64(call, 2), x->rank);
    struct pick pick = {.x = x, .indices = hob_arg_view(call, 1)};
    int64_t strides[HOB_MAX_RANK];

    memcpy(strides, x->strides, sizeof(strides));
    strides[dim] = 0;
    pick_init(&pick, hob_ret_view(call, 0), strides, dim, 0);
    return run(device, call, &pick);
}

static hob_status select_op(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const uint32_t dim = cube_dim(cube_arg_i64(call, 2), x->rank);
    struct pick pick = {.x = x, .indices = hob_arg_view(call, 1)};
    int64_t strides[HOB_MAX_RANK];

    memcpy(strides, x->strides, sizeof(strides));
    strides[dim] = 0;
    pick_init(&pick, hob_ret_view(call, 0), strides, dim, dim);
    return run(device, call, &pick);
}

static hob_status embedding(void *device, struct hob_call *call)
{
    const struct hob_view *weight = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct pick pick = {.x = weight, .indices = hob_arg_view(call, 1)};
    int64_t strides[HOB_MAX_RANK] = {0};

    strides[out->rank - 1] = weight->strides[1];
    pick_init(&pick, out, strides, 0, 0);
    return run(device, call, &pick);
}

static const uint32_t any_masks[] = {HOB_MASK_ANY, HOB_MASK_INT};
static const uint32_t embedding_masks[] = {HOB_MASK_FLOAT, HOB_MASK_INT};

static const struct hob_entry entries[] = {
    {
        .op = "gather",
        .signature = "(x: Any, indices: Int, dim: i64) -> x",
        .dtypes = any_masks,
        .dtype_count = 2,
        .execute = gather,
    },
    {
        .op = "select",
        .signature = "(x: Any, indices: Int, dim: i64) -> x",
        .dtypes = any_masks,
        .dtype_count = 2,
        .execute = select_op,
    },
    {
        .op = "embedding",
        .signature = "(weight: Float, indices: Int) -> weight",
        .dtypes = embedding_masks,
        .dtype_count = 2,
        .execute = embedding,
    },
};

const struct cube_entries cube_pick_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

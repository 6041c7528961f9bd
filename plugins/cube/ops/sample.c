/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - grid_sample and its gradients.
 *
 * The gradient of x goes by no atomics, as their order would not be determined:
 * what each tap of the grid reads is sorted by element, stably, once for all
 * channels, and each element takes all of its own in a row.
 */
#include "../cube.h"
#include "../sort.h"
#include "../texts.h"

#include <inttypes.h>

/* As in sample.cube. */
enum step { READ, GRID, KEYS, PLANES };

enum { CHANNELS = 8, CORNERS = 4 };

static const struct cube_program program = {
    .name = "sample",
    .text = cube_text_sample,
    .buffers = {{"out", CUBE_WRITTEN},
                {"x", 0},
                {"grid", 0},
                {"grad", 0},
                {"keys", CUBE_WRITTEN},
                {"order", 0},
                {"taps", CUBE_WRITTEN}},
    .params = {{"count", CUBE_INDEX, 0},
               {"channels", CUBE_INDEX, 0},
               {"height", CUBE_INDEX, 0},
               {"width", CUBE_INDEX, 0},
               {"places", CUBE_INDEX, 0}},
    .constants = {"STEP", "NEAREST", "PADDING", "ALIGN_CORNERS", "CHANNELS"},
    .symbols = {"ACCUM"},
    .flags = CUBE_MATHS,
};

struct run {
    struct cube_device *device;
    struct hob_call *call;
    const struct hob_view *x, *grid;
    const struct hob_view *grad;          /* NULL when reading */
    struct hob_view keys, order, weights; /* [n, taps of all places] */
    int64_t places;                       /* of a grid */
    int32_t is_nearest, padding, align_corners;
};

static void run_init(struct run *run, struct cube_device *device,
                     struct hob_call *call, uint32_t first)
{
    run->device = device;
    run->call = call;
    run->x = hob_arg_view(call, 0);
    run->grid = hob_arg_view(call, 1);
    run->grad = first > 2 ? hob_arg_view(call, 2) : NULL;
    run->places = run->grid->shape[1] * run->grid->shape[2];
    run->is_nearest = cube_arg_i64(call, first) != 0;
    run->padding = (int32_t)cube_arg_i64(call, first + 1);
    run->align_corners = cube_arg_i64(call, first + 2) != 0;
}

/* The buffers that STEP has; OUT is the result. */
static void add_buffers(struct cube_job *job, const struct run *run,
                        enum step step, const struct hob_view *out)
{
    const struct hob_view *buffers[] = {
        step == KEYS ? NULL : out,
        step == READ || step == GRID ? run->x : NULL,
        step == PLANES ? NULL : run->grid,
        step == GRID || step == PLANES ? run->grad : NULL,
        step == KEYS || step == PLANES ? &run->keys : NULL,
        step == PLANES ? &run->order : NULL,
        step == KEYS || step == PLANES ? &run->weights : NULL};

    for (uint32_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
        if (buffers[i])
            cube_job_view(job, buffers[i]);
        else
            cube_job_absent(job);
}

static hob_status launch(const struct run *run, enum step step,
                         const struct hob_view *out)
{
    const int64_t *shape = run->x->shape;
    const int64_t blocks = cube_divide_up(shape[1], CHANNELS);
    const int64_t count = step == READ ? shape[0] * blocks * run->places
                          : step == PLANES
                              ? shape[0] * blocks * shape[2] * shape[3]
                              : shape[0] * run->places;
    struct cube_job job;

    cube_job_init(&job, run->device, run->call, &program);
    add_buffers(&job, run, step, out);
    cube_job_i64(&job, count);
    cube_job_i64s(&job, shape + 1, 3);
    cube_job_i64(&job, run->places);
    /* A block of channels may go over their end. */
    cube_job_reach(&job, (shape[1] + CHANNELS) * run->places);
    cube_job_reach(&job, shape[2] * shape[3]);
    cube_job_constant(&job, step);
    cube_job_constant(&job, run->is_nearest);
    cube_job_constant(&job, run->padding);
    cube_job_constant(&job, run->align_corners);
    cube_job_constant(&job, CHANNELS);
    cube_job_symbol(&job, run->x->dtype == HOB_DTYPE_F64 ? "double" : "float");
    return cube_job_run(&job, cube_groups(run->device, count, CUBE_GROUP_SIZE));
}

static hob_status grid_sample(void *device, struct hob_call *call)
{
    struct run run;

    run_init(&run, device, call, 2);
    return launch(&run, READ, hob_ret_view(call, 0));
}

/* ---- gradients ---- */

/* [ROWS, COLUMNS] of DTYPE at *MEMORY, which moves on behind them. */
static void take(struct hob_view *view, uint32_t dtype, int64_t rows,
                 int64_t columns, char **memory)
{
    const uint64_t bytes =
        (uint64_t)(rows * columns) * hob_dtype_size((hob_dtype)dtype);

    *view = (struct hob_view){.data = *memory,
                              .dtype = (uint8_t)dtype,
                              .rank = 2,
                              .flags = HOB_VIEW_CONTIGUOUS,
                              .shape = {rows, columns},
                              .strides = {columns, 1}};
    *memory += (bytes + 255) / 256 * 256;
}

/* The taps of all places, by the element that they read. */
static hob_status sort_taps(struct run *run, char *memory)
{
    const int64_t n = run->x->shape[0];
    const int64_t taps = (run->is_nearest ? 1 : CORNERS) * run->places;
    struct hob_view sorted;
    hob_status st;

    take(&run->keys, HOB_DTYPE_I32, n, taps, &memory);
    take(&sorted, HOB_DTYPE_I32, n, taps, &memory);
    take(&run->order, HOB_DTYPE_I32, n, taps, &memory);
    take(&run->weights,
         run->x->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32, n,
         taps, &memory);
    st = launch(run, KEYS, NULL);
    if (!st)
        st = cube_sort_run(run->device, run->call, &sorted, &run->order,
                           &run->keys, 1, 0);
    run->keys = sorted;
    return st;
}

static hob_status grid_sample_backward(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct cube_runtime *runtime = device->runtime;
    struct run run;
    uint64_t bytes;
    void *memory = NULL;
    hob_status st;

    run_init(&run, device, call, 3);
    /* Four tables of at most 8 bytes an element, each on a line of its own. */
    bytes = (uint64_t)(run.x->shape[0] * run.places * CORNERS) * (3 * 4 + 8) +
            4 * 256;
    st = runtime->alloc(device, bytes, &memory);
    if (st)
        return call->host->fail(call, st,
                                "%s: no memory to sort %" PRId64 " places",
                                call->op_name, run.x->shape[0] * run.places);
    st = launch(&run, GRID, hob_ret_view(call, 1));
    if (!st)
        st = sort_taps(&run, memory);
    if (!st)
        st = launch(&run, PLANES, hob_ret_view(call, 0));
    runtime->free(device, memory, bytes);
    return st;
}

/* ---- entries ---- */

/* Elements along a side are exact in the type that places are computed in, and
 * taps have 32 bits; a plane that is larger, or empty, is the body's. */
static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *grid = hob_arg_view(call, 1);
    const int64_t side = x->dtype == HOB_DTYPE_F64 ? INT32_MAX : 1 << 24;
    const int64_t height = x->shape[2], width = x->shape[3];
    const int64_t rows = grid->shape[1], columns = grid->shape[2];

    (void)device;
    (void)out;
    if (height == 0 || width == 0 || height > side || width > side ||
        width >= INT32_MAX / height || hob_view_count(grid) == 0 ||
        columns >= INT32_MAX / CORNERS / rows)
        return HOB_ERR_UNSUPPORTED;
    return HOB_OK;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "grid_sample",
        .signature = "(x: Float, grid: Float, "
                     "mode: enum(bilinear, nearest) = bilinear, "
                     "padding: enum(zeros, border, reflection) = zeros, "
                     "align_corners: bool = false) -> x",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_CONTIGUOUS,
        .prepare = prepare,
        .execute = grid_sample,
    },
    {
        .op = "grid_sample_backward",
        .signature = "(x: Float, grid: Float, grad: Float, "
                     "mode: enum(bilinear, nearest) = bilinear, "
                     "padding: enum(zeros, border, reflection) = zeros, "
                     "align_corners: bool = false) -> (d_x: x, d_grid: grid)",
        .dtypes = masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_CONTIGUOUS,
        .prepare = prepare,
        .execute = grid_sample_backward,
    },
};

const struct cube_entries cube_sample_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

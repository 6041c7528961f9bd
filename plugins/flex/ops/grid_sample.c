/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid_sample.c - planes read at any place, the gradients of that, and the
 * grids that affine maps make.
 *
 * Places are found for a block at a time, once for all channels: tables of
 * elements and weights, by which the planes are then read.
 */
#include "../sample.h"
#include "../wide.h"

#include <inttypes.h>
#include <string.h>

enum {
    BLOCK = 256,    /* places at a time */
    TAPS = 4,       /* of a place */
    CHANNELS = 8,   /* planes that x's gradient is summed in at a time */
    ROOM = 4 * 1024 /* places that are worth a thread */
};

struct grid_job {
    struct flex_device *device;
    const struct flex_sample_kernels *kernels;
    struct flex_sample_plane plane;
    const char *x, *grid, *grad;
    char *out, *d_x, *d_grid;
    int64_t n, c, m; /* m places */
    int64_t area;    /* of a plane */
    int64_t blocks;  /* of the places of a sample */
    uint32_t size;   /* bytes of an element */
    int32_t failed;
};

/* Tables for a block, and what is computed from them. */
struct tables {
    _Alignas(64) int32_t at[TAPS * BLOCK];
    _Alignas(64) double weights[TAPS * BLOCK]; /* of the computing type */
    _Alignas(64) double slopes[2][TAPS * BLOCK];
    _Alignas(64) double read[BLOCK];
    _Alignas(64) double sums[2][BLOCK];
    struct flex_sample_places places;
};

static void tables_init(struct tables *t, int with_slopes)
{
    t->places.at = t->at;
    t->places.weights = t->weights;
    t->places.slopes[0] = with_slopes ? t->slopes[0] : NULL;
    t->places.slopes[1] = with_slopes ? t->slopes[1] : NULL;
    t->places.stride = BLOCK;
}

static int64_t block_size(const struct grid_job *job, int64_t first)
{
    return job->m - first < BLOCK ? job->m - first : BLOCK;
}

static int64_t taps_of(const struct grid_job *job)
{
    return job->plane.is_nearest ? 1 : TAPS;
}

static void find(const struct grid_job *job, struct tables *t, int64_t sample,
                 int64_t first, int64_t n)
{
    job->kernels->places(&t->places, &job->plane,
                         job->grid + (sample * job->m + first) * 2 * job->size,
                         n);
}

/* Plane C of SAMPLE, and places FIRST on of such a one. */
static int64_t plane_at(const struct grid_job *job, int64_t sample, int64_t c)
{
    return (sample * job->c + c) * job->area * job->size;
}

static int64_t places_at(const struct grid_job *job, int64_t sample, int64_t c,
                         int64_t first)
{
    return ((sample * job->c + c) * job->m + first) * job->size;
}

static void read_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct grid_job *job = context;
    struct tables t;

    (void)worker;
    tables_init(&t, 0);
    for (int64_t i = first; i < last; i++) {
        const int64_t sample = i / job->blocks, at = i % job->blocks * BLOCK;
        const int64_t n = block_size(job, at);

        find(job, &t, sample, at, n);
        for (int64_t c = 0; c < job->c; c++)
            job->kernels->pick(job->out + places_at(job, sample, c, at),
                               job->x + plane_at(job, sample, c), t.at,
                               t.weights, BLOCK, taps_of(job), n);
    }
}

/* The grid's gradient: over all channels, grad times how the element read
 * changes with the place. */
static void grid_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct grid_job *job = context;
    struct tables t;

    (void)worker;
    tables_init(&t, 1);
    for (int64_t i = first; i < last; i++) {
        const int64_t sample = i / job->blocks, at = i % job->blocks * BLOCK;
        const int64_t n = block_size(job, at);
        char *out = job->d_grid + (sample * job->m + at) * 2 * job->size;

        find(job, &t, sample, at, n);
        memset(t.sums, 0, sizeof(t.sums));
        for (int64_t c = 0; c < job->c; c++)
            for (int axis = 0; axis < 2; axis++) {
                job->kernels->pick(t.read, job->x + plane_at(job, sample, c),
                                   t.at, t.slopes[axis], BLOCK, TAPS, n);
                job->kernels->add_products(
                    t.sums[axis], t.read,
                    job->grad + places_at(job, sample, c, at), n);
            }
        job->kernels->round(out, 2, t.sums[1], n);
        job->kernels->round(out + job->size, 2, t.sums[0], n);
    }
}

/* x's gradient: each of grad's elements added to what it was read from. */
static void planes_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct grid_job *job = context;
    const int64_t groups = (job->c + CHANNELS - 1) / CHANNELS;
    const uint64_t bytes = (uint64_t)job->area * CHANNELS * sizeof(double);
    double *sums = flex_scratch_take(job->device, bytes);
    struct tables t;

    (void)worker;
    if (!sums) {
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    tables_init(&t, 1);
    for (int64_t i = first; i < last; i++) {
        const int64_t sample = i / groups, from = i % groups * CHANNELS;
        const int64_t count =
            job->c - from < CHANNELS ? job->c - from : CHANNELS;

        memset(sums, 0, (size_t)(count * job->area) * sizeof(double));
        for (int64_t at = 0; at < job->m; at += BLOCK) {
            const int64_t n = block_size(job, at);

            find(job, &t, sample, at, n);
            for (int64_t c = 0; c < count; c++)
                job->kernels->put(sums + c * job->area,
                                  job->grad +
                                      places_at(job, sample, from + c, at),
                                  t.at, t.weights, BLOCK, taps_of(job), n);
        }
        job->kernels->round(job->d_x + plane_at(job, sample, from), 1, sums,
                            count * job->area);
    }
    flex_scratch_give(job->device, sums, bytes);
}

/* From X and GRID, and the attributes of CALL from argument FIRST on. */
static void job_init(struct grid_job *job, struct flex_device *device,
                     const struct hob_call *call, uint32_t first)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *grid = hob_arg_view(call, 1);

    *job = (struct grid_job){
        .device = device,
        .kernels = flex_sample_kernels(device, x->dtype),
        .plane = {.size = {x->shape[2], x->shape[3]},
                  .is_nearest = flex_arg_i64(call, first) != 0,
                  .padding = (uint32_t)flex_arg_i64(call, first + 1),
                  .align_corners = flex_arg_i64(call, first + 2) != 0},
        .n = x->shape[0],
        .c = x->shape[1],
        .m = grid->shape[1] * grid->shape[2],
        .area = x->shape[2] * x->shape[3],
        .size = x->dtype == HOB_DTYPE_F64 ? 8 : 4};
    job->blocks = (job->m + BLOCK - 1) / BLOCK;
}

static hob_status no_memory(struct hob_call *call)
{
    return call->host->fail(call, HOB_ERR_MEMORY,
                            "%s: no memory for a copy of %" PRId64 " elements",
                            call->op_name,
                            hob_view_count(hob_arg_view(call, 0)));
}

/* How many units of PLACES each are worth a thread. */
static int64_t grain(int64_t places)
{
    return ROOM / (places + 1) + 1;
}

static hob_status grid_sample(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct flex_wide x = {0}, grid = {0}, result = {0};
    struct grid_job job;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    job_init(&job, device, call, 2);
    st = flex_wide_read(device, hob_arg_view(call, 0), &x);
    if (!st)
        st = flex_wide_read(device, hob_arg_view(call, 1), &grid);
    if (!st)
        st = flex_wide_begin(device, out, &result);
    if (!st) {
        job.x = x.data;
        job.grid = grid.data;
        job.out = result.data;
        flex_parallel(device, job.n * job.blocks, grain(BLOCK * (job.c + 4)),
                      read_range, &job);
        flex_wide_finish(device, out, &result);
    }
    flex_wide_release(device, &x);
    flex_wide_release(device, &grid);
    flex_wide_release(device, &result);
    return st ? no_memory(call) : HOB_OK;
}

static void run_backward(struct grid_job *job)
{
    struct flex_device *device = job->device;
    const size_t bytes = (size_t)(job->n * job->m * 2 * job->size);

    if (job->plane.is_nearest && bytes) /* steps have no slope */
        memset(job->d_grid, 0, bytes);
    else if (!job->plane.is_nearest)
        flex_parallel(device, job->n * job->blocks, grain(BLOCK * 2 * job->c),
                      grid_range, job);
    flex_parallel(device, job->n * ((job->c + CHANNELS - 1) / CHANNELS),
                  grain(job->m * CHANNELS), planes_range, job);
}

static hob_status grid_sample_backward(void *device, struct hob_call *call)
{
    const struct hob_view *rets[2] = {hob_ret_view(call, 0),
                                      hob_ret_view(call, 1)};
    struct flex_wide args[3] = {{0}, {0}, {0}}, results[2] = {{0}, {0}};
    struct grid_job job;
    hob_status st = HOB_OK;

    job_init(&job, device, call, 3);
    for (uint32_t i = 0; i < 3 && !st; i++)
        st = flex_wide_read(device, hob_arg_view(call, i), &args[i]);
    for (uint32_t i = 0; i < 2 && !st; i++)
        st = flex_wide_begin(device, rets[i], &results[i]);
    if (!st) {
        job.x = args[0].data;
        job.grid = args[1].data;
        job.grad = args[2].data;
        job.d_x = results[0].data;
        job.d_grid = results[1].data;
        run_backward(&job);
        for (uint32_t i = 0; i < 2; i++)
            flex_wide_finish(device, rets[i], &results[i]);
    }
    for (uint32_t i = 0; i < 3; i++)
        flex_wide_release(device, &args[i]);
    for (uint32_t i = 0; i < 2; i++)
        flex_wide_release(device, &results[i]);
    return st || job.failed ? no_memory(call) : HOB_OK;
}

/* ---- affine_grid ---- */

struct affine {
    const struct flex_sample_kernels *kernels;
    const char *theta; /* [n, 2, 3] */
    const char *x, *y; /* -1 .. 1 over the places of a row, of a column */
    char *out;
    int64_t h, w;
    uint32_t size;
};

static double load(const char *numbers, int64_t i, uint32_t size)
{
    return size == 8 ? ((const double *)(const void *)numbers)[i]
                     : (double)((const float *)(const void *)numbers)[i];
}

static void store(char *numbers, int64_t i, uint32_t size, double value)
{
    if (size == 8)
        ((double *)(void *)numbers)[i] = value;
    else
        ((float *)(void *)numbers)[i] = (float)value;
}

/* -1 .. 1 over COUNT places, or over their edges: their middles then. */
static void spread(char *out, int64_t count, uint32_t size, int align_corners)
{
    const double steps = (double)(align_corners ? count - 1 : count);

    for (int64_t i = 0; i < count; i++)
        store(out, i, size,
              count < 2 ? 0 : (double)(2 * i + !align_corners) / steps - 1);
}

/* Rows of grids: all that y adds is the same in one. */
static void affine_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct affine *a = context;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const char *theta = a->theta + i / a->h * 6 * a->size;
        const double y = load(a->y, i % a->h, a->size);
        double factors[4];

        for (int k = 0; k < 2; k++) {
            store((char *)factors, k, a->size, load(theta, 3 * k, a->size));
            store((char *)factors, 2 + k, a->size,
                  load(theta, 3 * k + 1, a->size) * y +
                      load(theta, 3 * k + 2, a->size));
        }
        a->kernels->lines(a->out + i * a->w * 2 * a->size, a->x, factors, a->w);
    }
}

static hob_status affine_grid(void *opened, struct hob_call *call)
{
    struct flex_device *device = opened;
    const struct hob_view *theta = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    const int align_corners = flex_arg_i64(call, 2) != 0;
    struct affine a = {.kernels = flex_sample_kernels(device, theta->dtype),
                       .h = out->shape[1],
                       .w = out->shape[2],
                       .size = theta->dtype == HOB_DTYPE_F64 ? 8 : 4};
    const uint64_t bytes = (uint64_t)((a.h + a.w) * a.size);
    struct flex_wide source = {0}, result = {0};
    char *places;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    places = flex_scratch_take(device, bytes);
    st = places ? flex_wide_read(device, theta, &source) : HOB_ERR_MEMORY;
    if (!st)
        st = flex_wide_begin(device, out, &result);
    if (!st) {
        spread(places, a.w, a.size, align_corners);
        spread(places + a.w * a.size, a.h, a.size, align_corners);
        a.x = places;
        a.y = places + a.w * a.size;
        a.theta = source.data;
        a.out = result.data;
        flex_parallel(device, out->shape[0] * a.h,
                      FLEX_GRAIN_CHEAP / (2 * a.w) + 1, affine_range, &a);
        flex_wide_finish(device, out, &result);
    }
    flex_wide_release(device, &source);
    flex_wide_release(device, &result);
    flex_scratch_give(device, places, bytes);
    return st ? no_memory(call) : HOB_OK;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "affine_grid",
        .signature = "(theta: Float, size: shape, align_corners: bool = true) "
                     "-> theta",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = affine_grid,
    },
    {
        .op = "grid_sample",
        .signature = "(x: Float, grid: Float, "
                     "mode: enum(bilinear, nearest) = bilinear, "
                     "padding: enum(zeros, border, reflection) = zeros, "
                     "align_corners: bool = false) -> x",
        .dtypes = masks,
        .dtype_count = 2,
        .prepare = flex_sample_prepare,
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
        .prepare = flex_sample_prepare,
        .execute = grid_sample_backward,
    },
};

const struct flex_entries flex_grid_sample_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

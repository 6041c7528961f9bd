/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - cumsum, cumprod, cummax and cummin. Lines that are long and few are
 * cut into chunks: what each chunk comes to, then running results of those,
 * then the chunks once more from there.
 */
#include "../scan.h"

#include "../cube.h"
#include "../texts.h"

#include <inttypes.h>
#include <string.h>

enum {
    ITEMS = 16,
    ROW_CHUNK = 2 * CUBE_GROUP_SIZE * ITEMS,
    ROW_LINES = 256, /* as many lines are enough work without chunks */
    COLUMN_CHUNK = 512,
    COLUMN_LINES = 1 << 16,
    /* Along a dimension with so many elements behind it, or as short as this,
     * invocations walk by themselves. */
    COLUMN_INNER = 8,
    COLUMN_LENGTH = 32
};

#define PROGRAM(name_, shared_, flags_)                                        \
    {                                                                          \
        .name = name_, .text = cube_text_scan,                                 \
        .buffers = {{"out", CUBE_WRITTEN},                                     \
                    {"x", 0},                                                  \
                    {"totals", CUBE_WRITTEN}},                                 \
        .params = {{"n", CUBE_INDEX, 0},        {"lines", CUBE_INDEX, 0},      \
                   {"chunks", CUBE_INDEX, 0},   {"chunk_size", CUBE_INDEX, 0}, \
                   {"out_step", CUBE_INDEX, 0}, {"x_step", CUBE_INDEX, 0},     \
                   CUBE_SPACE_PARAMS,           CUBE_OPERAND_PARAMS("out"),    \
                   CUBE_OPERAND_PARAMS("x")},                                  \
        .shared = {shared_},                                                   \
        .constants = {"RANK",      "COLUMNS", "TOTALS",                        \
                      "HAS_CARRY", "ITEMS",   "TOGETHER"},                     \
        .symbols = {"SCAN", "IDENTITY"}, .flags = CUBE_SPACES | (flags_),      \
    }
#define SCRATCH                                                                \
    {                                                                          \
        "scratch", "VALUE_x", "2 * (GROUP_SIZE / SUBGROUP_SIZE)"               \
    }

static const struct cube_program rows_program =
    PROGRAM("scan", SCRATCH, CUBE_SUBGROUPS);
static const struct cube_program columns_program =
    PROGRAM("scan_columns", {NULL}, 0);
#undef PROGRAM
#undef SCRATCH

static const struct {
    const char *function, *identity;
} scans[] = {
    [CUBE_SCAN_SUM] = {"scan_sum", "T(0)"},
    [CUBE_SCAN_PROD] = {"scan_product", "T(1)"},
    [CUBE_SCAN_MAX] = {"scan_max", "LEAST"},
    [CUBE_SCAN_MIN] = {"scan_min", "GREATEST"},
};

struct run {
    const struct hob_view *out, *x;
    struct cube_space lines; /* operands out, x */
    int64_t n, out_step, x_step;
    int64_t chunk, chunks;
    int is_columns;
    enum cube_scan scan;
    uint32_t accum; /* the dtype of totals */
    void *totals;
};

/* VIEW without dimension DIM. */
static struct hob_view without(const struct hob_view *view, uint32_t dim)
{
    struct hob_view line = *view;
    const uint32_t after = view->rank - dim - 1u;

    line.rank--;
    memmove(&line.shape[dim], &line.shape[dim + 1],
            after * sizeof(line.shape[0]));
    memmove(&line.strides[dim], &line.strides[dim + 1],
            after * sizeof(line.strides[0]));
    return line;
}

static void run_init(struct run *run, uint32_t dim)
{
    struct hob_view out = without(run->out, dim), x = without(run->x, dim);
    int64_t inner = 1;

    for (uint32_t i = dim + 1; i < run->x->rank; i++)
        inner *= run->x->shape[i];
    cube_space_init(&run->lines, out.rank, out.shape);
    cube_space_add(&run->lines, &out);
    cube_space_add(&run->lines, &x);
    cube_space_collapse(&run->lines);
    run->n = run->x->shape[dim];
    run->out_step = run->out->strides[dim];
    run->x_step = run->x->strides[dim];
    run->is_columns = inner >= COLUMN_INNER || run->n <= COLUMN_LENGTH;
    run->chunk = run->is_columns ? COLUMN_CHUNK : ROW_CHUNK;
    if (run->n <= 2 * run->chunk ||
        run->lines.count >= (run->is_columns ? COLUMN_LINES : ROW_LINES))
        run->chunk = run->n;
    run->chunks = (run->n + run->chunk - 1) / run->chunk;
}

/* Elements that a group loads at a time of a line. */
static uint32_t width_of(const struct run *run)
{
    uint32_t width = 16 / hob_dtype_size(run->x->dtype);
    int64_t strides = run->n;

    if (run->is_columns || run->out_step != 1 || run->x_step != 1)
        return 1;
    for (uint32_t i = 0; i < run->lines.rank; i++)
        strides |= run->lines.strides[0][i] | run->lines.strides[1][i];
    for (uint32_t i = 0; i < 2; i++)
        strides |= (int64_t)((uint64_t)(uintptr_t)run->lines.data[i] /
                             hob_dtype_size(run->x->dtype));
    while (strides % width)
        width /= 2;
    return width;
}

static void add_view(struct cube_job *job, const struct run *run,
                     uint32_t operand)
{
    const struct hob_view *view = operand ? run->x : run->out;
    struct cube_space whole;

    cube_space_init(&whole, view->rank, view->shape);
    cube_space_add(&whole, view);
    cube_job_operand(job, &whole, 0);
}

/* The first element of a line from the lowest element of the view. */
static void add_strides(struct cube_job *job, const struct run *run,
                        uint32_t operand)
{
    const struct hob_view *view = operand ? run->x : run->out;
    int64_t base = 0;

    for (uint32_t i = 0; i < view->rank; i++)
        if (view->strides[i] < 0)
            base -= (view->shape[i] - 1) * view->strides[i];
    cube_job_i64(job, base);
    cube_job_i64s(job, run->lines.strides[operand], run->lines.rank);
}

enum pass { WHOLE, TOTALS, REST };

static hob_status launch(struct cube_device *device, struct hob_call *call,
                         const struct run *run, enum pass pass)
{
    const int64_t items = run->lines.count * run->chunks;
    const uint32_t width = width_of(run);
    struct cube_job job;

    cube_job_init(&job, device, call,
                  run->is_columns ? &columns_program : &rows_program);
    if (pass == TOTALS)
        cube_job_absent(&job);
    else
        add_view(&job, run, 0);
    add_view(&job, run, 1);
    if (pass == WHOLE)
        cube_job_absent(&job);
    else
        cube_job_memory(&job, run->totals, run->accum, items);
    job.variant.widths[0] = job.variant.widths[1] = (uint8_t)width;
    cube_job_i64(&job, run->n);
    cube_job_i64(&job, run->lines.count);
    cube_job_i64(&job, run->chunks);
    cube_job_i64(&job, run->chunk);
    cube_job_i64(&job, run->out_step);
    cube_job_i64(&job, run->x_step);
    cube_job_reach(&job, items);
    cube_job_reach(&job, run->n + run->chunk);
    cube_job_space(&job, &run->lines);
    add_strides(&job, run, 0);
    add_strides(&job, run, 1);
    cube_job_constant(&job, (int32_t)run->lines.rank);
    cube_job_constant(&job, run->is_columns);
    cube_job_constant(&job, pass == TOTALS);
    cube_job_constant(&job, pass == REST);
    cube_job_constant(&job, ITEMS);
    cube_job_constant(&job, (int32_t)(16 / hob_dtype_size(run->x->dtype)));
    cube_job_symbol(&job, scans[run->scan].function);
    cube_job_symbol(&job, scans[run->scan].identity);
    return cube_job_run(&job, run->is_columns
                                  ? cube_groups(device, items, CUBE_GROUP_SIZE)
                                  : cube_groups(device, items, 1));
}

/* Running results of what the chunks of each line come to, in place. */
static hob_status scan_totals(struct cube_device *device, struct hob_call *call,
                              const struct run *run)
{
    const struct hob_view totals = {
        .data = run->totals,
        .dtype = (uint8_t)run->accum,
        .rank = 2,
        .shape = {run->lines.count, run->chunks},
        .strides = {run->chunks, 1},
    };
    struct run inner = {
        .out = &totals, .x = &totals, .scan = run->scan, .accum = run->accum};

    run_init(&inner, 1);
    inner.chunk = inner.n;
    inner.chunks = 1;
    return launch(device, call, &inner, WHOLE);
}

static hob_status run_chunks(struct cube_device *device, struct hob_call *call,
                             struct run *run)
{
    const struct cube_runtime *runtime = device->runtime;
    const uint64_t bytes = (uint64_t)(run->lines.count * run->chunks) *
                           hob_dtype_size(run->accum);
    hob_status st = runtime->alloc(device, bytes, &run->totals);

    if (st)
        return call->host->fail(call, st,
                                "%s: no memory for the totals of %" PRId64
                                " parts",
                                call->op_name, run->chunks);
    st = launch(device, call, run, TOTALS);
    if (!st)
        st = scan_totals(device, call, run);
    if (!st)
        st = launch(device, call, run, REST);
    runtime->free(device, run->totals, bytes);
    return st;
}

/* In what numbers of DTYPE are computed. */
static uint32_t accum_of(uint32_t dtype)
{
    const uint32_t bit = HOB_DTYPE_BIT(dtype);

    if (hob_dtype_size(dtype) >= 4)
        return dtype;
    return bit & HOB_MASK_FLOAT    ? HOB_DTYPE_F32
           : bit & HOB_MASK_SIGNED ? HOB_DTYPE_I32
                                   : HOB_DTYPE_U32;
}

hob_status cube_scan_run(struct cube_device *device, struct hob_call *call,
                         enum cube_scan scan, const struct hob_view *out,
                         const struct hob_view *x, uint32_t dim)
{
    struct run run = {.out = out, .x = x, .scan = scan};

    if (hob_view_count(x) == 0)
        return HOB_OK;
    run.accum = accum_of(x->dtype);
    run_init(&run, dim);
    return run.chunks > 1 ? run_chunks(device, call, &run)
                          : launch(device, call, &run, WHOLE);
}

static hob_status run_op(struct cube_device *device, struct hob_call *call,
                         enum cube_scan scan)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    return cube_scan_run(device, call, scan, hob_ret_view(call, 0), x,
                         cube_dim(cube_arg_i64(call, 1), x->rank));
}

static hob_status cumsum(void *device, struct hob_call *call)
{
    return run_op(device, call, CUBE_SCAN_SUM);
}

static hob_status cumprod(void *device, struct hob_call *call)
{
    return run_op(device, call, CUBE_SCAN_PROD);
}

static hob_status cummax(void *device, struct hob_call *call)
{
    return run_op(device, call, CUBE_SCAN_MAX);
}

static hob_status cummin(void *device, struct hob_call *call)
{
    return run_op(device, call, CUBE_SCAN_MIN);
}

static const uint32_t num_mask[] = {HOB_MASK_NUM};

#define ENTRY(name_)                                                           \
    {                                                                          \
        .op = #name_, .signature = "(x: Num, dim: i64) -> x",                  \
        .dtypes = num_mask, .dtype_count = 1, .execute = name_,                \
    }

static const struct hob_entry entries[] = {
    ENTRY(cumsum),
    ENTRY(cumprod),
    ENTRY(cummax),
    ENTRY(cummin),
};
#undef ENTRY

const struct cube_entries cube_scan_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.c - sort_with_indices. Lines of up to TILE elements are sorted in
 * shared memory, several at a time if they are short; of longer ones first the
 * tiles, then runs are merged two by two: log2(n / TILE) passes over keys and
 * places. Values are picked by place at the end, which keeps signs of zero and
 * payloads of NaN.
 */
#include "../sort.h"

#include "../cube.h"
#include "../lowest.h"
#include "../move.h"
#include "../texts.h"

#include <inttypes.h>
#include <string.h>

enum { TILE = 1024, ITEMS = 8 };

#define LINE_PARAMS                                                            \
    {"n", CUBE_INDEX, 0}, {"lines", CUBE_INDEX, 0},                            \
        {"x_step", CUBE_INDEX, 0}, {"out_step", CUBE_INDEX, 0},                \
        CUBE_SPACE_PARAMS, CUBE_OPERAND_PARAMS("x"),                           \
        CUBE_OPERAND_PARAMS("out")

static const struct cube_program tile_program = {
    .name = "sort_tile",
    .text = cube_text_sort_tile,
    .buffers = {{"values", CUBE_WRITTEN},
                {"indices", CUBE_WRITTEN},
                {"x", 0},
                {"raw", 0},
                {"sorted_keys", CUBE_WRITTEN},
                {"sorted_places", CUBE_WRITTEN}},
    .params = {LINE_PARAMS, {"pieces", CUBE_INDEX, 0}, {"items", CUBE_INDEX, 0}},
    .shared = {{"keys", "KEY", "TILE"}, {"places", "uint", "TILE"}},
    .constants = {"RANK", "TILE", "LINE", "DESCENDING", "FINAL"},
    .symbols = {"KEY"},
    .flags = CUBE_SPACES,
};

static const struct cube_program merge_program = {
    .name = "sort_merge",
    .text = cube_text_sort_merge,
    .buffers = {{"out_keys", CUBE_WRITTEN},
                {"out_places", CUBE_WRITTEN},
                {"keys", 0},
                {"places", 0}},
    .params = {{"n", CUBE_INDEX, 0},
               {"lines", CUBE_INDEX, 0},
               {"per_line", CUBE_INDEX, 0},
               {"run", CUBE_INDEX, 0}},
    .constants = {"ITEMS"},
};

static const struct cube_program finish_program = {
    .name = "sort_finish",
    .text = cube_text_sort_finish,
    .buffers = {{"values", CUBE_WRITTEN},
                {"indices", CUBE_WRITTEN},
                {"raw", 0},
                {"places", 0}},
    .params = {LINE_PARAMS},
    .constants = {"RANK"},
    .flags = CUBE_SPACES,
};

struct run {
    const struct hob_view *values, *indices, *x;
    struct hob_view raw_values, raw_x; /* as integers of the same size */
    struct cube_space lines;           /* operands x, values */
    int64_t n, x_step, out_step;
    int is_descending;
    uint32_t key_dtype;
    void *keys[2], *places[2]; /* of long lines, from and to */
};

/* VIEW with dimension DIM of one element. */
static struct hob_view at_first(const struct hob_view *view, uint32_t dim)
{
    struct hob_view line = *view;

    if (view->rank)
        line.shape[dim] = 1;
    return line;
}

static void run_init(struct run *run, uint32_t dim)
{
    const struct hob_view x = at_first(run->x, dim);
    const struct hob_view values = at_first(run->values, dim);
    const int is_scalar = run->x->rank == 0;

    run->raw_values = *run->values;
    run->raw_x = *run->x;
    run->raw_values.dtype = run->raw_x.dtype =
        (uint8_t)cube_bits_dtype(hob_dtype_size(run->x->dtype));
    cube_space_init(&run->lines, x.rank, x.shape);
    cube_space_add(&run->lines, &x);
    cube_space_add(&run->lines, &values);
    cube_space_collapse(&run->lines);
    run->n = is_scalar ? 1 : run->x->shape[dim];
    run->x_step = is_scalar ? 0 : run->x->strides[dim];
    run->out_step = is_scalar ? 0 : run->values->strides[dim];
    run->key_dtype =
        hob_dtype_size(run->x->dtype) == 8 ? HOB_DTYPE_U64 : HOB_DTYPE_U32;
}

static void add_line_params(struct cube_job *job, const struct run *run)
{
    cube_job_i64(job, run->n);
    cube_job_i64(job, run->lines.count);
    cube_job_i64(job, run->x_step);
    cube_job_i64(job, run->out_step);
    cube_job_reach(job, run->lines.count * run->n);
    cube_job_space(job, &run->lines);
    cube_job_i64(job, cube_lowest(run->x, NULL));
    cube_job_i64s(job, run->lines.strides[0], run->lines.rank);
    cube_job_i64(job, cube_lowest(run->values, NULL));
    cube_job_i64s(job, run->lines.strides[1], run->lines.rank);
}

static int is_long(const struct run *run)
{
    return run->n > TILE;
}

static hob_status run_tiles(struct cube_device *device, struct hob_call *call,
                            const struct run *run)
{
    const int64_t count = run->lines.count * run->n;
    const int64_t pieces = is_long(run) ? (run->n + TILE - 1) / TILE : 1;
    struct cube_job job;
    int32_t line = 2;
    int64_t items;

    while (line < run->n && line < TILE)
        line *= 2;
    items = (run->lines.count + TILE / line - 1) / (TILE / line) * pieces;
    cube_job_init(&job, device, call, &tile_program);
    if (is_long(run)) {
        cube_job_absent(&job);
        cube_job_absent(&job);
        cube_job_lowest(&job, run->x);
        cube_job_absent(&job);
        cube_job_memory(&job, run->keys[0], run->key_dtype, count);
        cube_job_memory(&job, run->places[0], HOB_DTYPE_U32, count);
    } else {
        cube_job_lowest(&job, &run->raw_values);
        cube_job_lowest(&job, run->indices);
        cube_job_lowest(&job, run->x);
        cube_job_lowest(&job, &run->raw_x);
        cube_job_absent(&job);
        cube_job_absent(&job);
    }
    add_line_params(&job, run);
    cube_job_i64(&job, pieces);
    cube_job_i64(&job, items);
    cube_job_reach(&job, items * TILE);
    cube_job_constant(&job, (int32_t)run->lines.rank);
    cube_job_constant(&job, TILE);
    cube_job_constant(&job, line);
    cube_job_constant(&job, run->is_descending);
    cube_job_constant(&job, !is_long(run));
    cube_job_symbol(&job, run->key_dtype == HOB_DTYPE_U64 ? "u64" : "uint");
    return cube_job_run(&job, items);
}

/* Merge runs of LENGTH; the merged ones are then first of keys and places. */
static hob_status merge(struct cube_device *device, struct hob_call *call,
                        struct run *run, int64_t length)
{
    const int64_t count = run->lines.count * run->n;
    const int64_t per_line = (run->n + ITEMS - 1) / ITEMS;
    void *keys = run->keys[0], *places = run->places[0];
    struct cube_job job;

    cube_job_init(&job, device, call, &merge_program);
    cube_job_memory(&job, run->keys[1], run->key_dtype, count);
    cube_job_memory(&job, run->places[1], HOB_DTYPE_U32, count);
    cube_job_memory(&job, keys, run->key_dtype, count);
    cube_job_memory(&job, places, HOB_DTYPE_U32, count);
    cube_job_i64(&job, run->n);
    cube_job_i64(&job, run->lines.count);
    cube_job_i64(&job, per_line);
    cube_job_i64(&job, length);
    cube_job_reach(&job, run->n + 2 * length);
    cube_job_constant(&job, ITEMS);
    run->keys[0] = run->keys[1];
    run->places[0] = run->places[1];
    run->keys[1] = keys;
    run->places[1] = places;
    return cube_job_run(&job, cube_groups(device, run->lines.count * per_line,
                                          CUBE_GROUP_SIZE));
}

static hob_status finish(struct cube_device *device, struct hob_call *call,
                         const struct run *run)
{
    const int64_t count = run->lines.count * run->n;
    struct cube_job job;

    cube_job_init(&job, device, call, &finish_program);
    cube_job_lowest(&job, &run->raw_values);
    cube_job_lowest(&job, run->indices);
    cube_job_lowest(&job, &run->raw_x);
    cube_job_memory(&job, run->places[0], HOB_DTYPE_U32, count);
    add_line_params(&job, run);
    cube_job_constant(&job, (int32_t)run->lines.rank);
    return cube_job_run(&job, cube_groups(device, count, CUBE_GROUP_SIZE));
}

static hob_status run_long(struct cube_device *device, struct hob_call *call,
                           struct run *run)
{
    const struct cube_runtime *runtime = device->runtime;
    const uint64_t count = (uint64_t)(run->lines.count * run->n);
    const uint64_t key_bytes =
        (count * hob_dtype_size(run->key_dtype) + 255) / 256 * 256;
    const uint64_t bytes = 2 * key_bytes + 2 * count * 4;
    char *memory = NULL;
    hob_status st = runtime->alloc(device, bytes, (void **)(void *)&memory);

    if (st)
        return call->host->fail(call, st,
                                "%s: no memory to sort rows of %" PRId64,
                                call->op_name, run->n);
    for (uint32_t i = 0; i < 2; i++) {
        run->keys[i] = memory + i * key_bytes;
        run->places[i] = memory + 2 * key_bytes + i * count * 4;
    }
    st = run_tiles(device, call, run);
    for (int64_t length = TILE; length < run->n && !st; length *= 2)
        st = merge(device, call, run, length);
    if (!st)
        st = finish(device, call, run);
    runtime->free(device, memory, bytes);
    return st;
}

hob_status cube_sort_run(struct cube_device *device, struct hob_call *call,
                         const struct hob_view *values,
                         const struct hob_view *indices,
                         const struct hob_view *x, uint32_t dim,
                         int is_descending)
{
    struct run run = {.values = values,
                      .indices = indices,
                      .x = x,
                      .is_descending = is_descending};

    if (hob_view_count(x) == 0)
        return HOB_OK;
    run_init(&run, dim);
    if (run.n >= INT32_MAX)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: rows of %" PRId64
                                " elements; a GPU sorts rows of fewer than "
                                "2^31 only",
                                call->op_name, run.n);
    return is_long(&run) ? run_long(device, call, &run)
                         : run_tiles(device, call, &run);
}

static hob_status sort_with_indices(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    return cube_sort_run(device, call, hob_ret_view(call, 0),
                         hob_ret_view(call, 1), x,
                         cube_dim(cube_arg_i64(call, 1), x->rank),
                         cube_arg_i64(call, 2) != 0);
}

static const uint32_t masks[] = {HOB_MASK_NUM};

static const struct hob_entry entries[] = {
    {
        .op = "sort_with_indices",
        .signature = "(x: Num, dim: i64, descending: bool = false, "
                     "index_dtype: dtype = i32) -> (x, index_dtype)",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = sort_with_indices,
    },
};

const struct cube_entries cube_sort_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/* attention_job.c - see attention.h. */
#include "attention.h"

#include "../lowest.h"
#include "../splits.h"
#include "../texts.h"

#include <math.h>
#include <string.h>

enum {
    WIDE = 4,  /* elements of a vector that is read */
    DEPTH = 8, /* of a chunk */
    CHUNKS = 2,
    WIDTH_MOST = 256, /* columns of a result */
    /* Numbers of buffers. */
    P_ALL = 10,
    W_ALL = 11
};

static const double log2_e = 1.4426950408889634;

static const struct cube_program attention_program = {
    .name = "attention",
    .text = cube_text_attention,
    .buffers = {{"out", CUBE_WRITTEN},
                {"lse", CUBE_WRITTEN},
                {"slopes", CUBE_WRITTEN},
                {"q", 0},
                {"k", 0},
                {"v", 0},
                {"grad", 0},
                {"mask", 0},
                {"bias", 0},
                {"delta", 0},
                {"p_all", CUBE_WRITTEN},
                {"w_all", CUBE_WRITTEN},
                {"wild", 0}},
    .params = {CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("q"),
               CUBE_OPERAND_PARAMS("k"),
               CUBE_OPERAND_PARAMS("v"),
               CUBE_OPERAND_PARAMS("grad"),
               CUBE_OPERAND_PARAMS("mask"),
               CUBE_OPERAND_PARAMS("bias"),
               {"row_steps", CUBE_INDEX, OPERANDS},
               {"column_steps", CUBE_INDEX, OPERANDS},
               {"queries", CUBE_INDEX, 0},
               {"keys", CUBE_INDEX, 0},
               {"d_size", CUBE_INDEX, 0},
               {"e_size", CUBE_INDEX, 0},
               {"row_size", CUBE_INDEX, 0},
               {"ahead", CUBE_INDEX, 0},
               {"tiles", CUBE_INDEX, 0},
               {"batches", CUBE_INDEX, 0},
               {"factor", CUBE_F32, 0},
               {"cap", CUBE_F32, 0},
               {"out_scale", CUBE_F32, 0}},
    .shared = {{"tile_a", "vec4", "GROUP_SIZE / ACROSS * EACH_M * 4"},
               {"tile_b", "vec4",
                "ACROSS * (EACH_N > EACH_C ? EACH_N : EACH_C) * 4"},
               {"weights", "vec4", "GROUP_SIZE * EACH_M * EACH_N / 4"}},
    .constants = {"RANK", "MODE", "ACROSS", "EACH_M", "EACH_N", "EACH_C",
                  "WIDE", "MASKED", "BIASED", "CAPPED", "CAUSAL",
                  "BIAS_SLOPES"},
    .flags = CUBE_SPACES | CUBE_SUBGROUPS | CUBE_MATHS | CUBE_TILES,
};

static const struct cube_program not_finite_program = {
    .name = "not_finite",
    .text = cube_text_not_finite,
    .buffers = {{"out", CUBE_WRITTEN}, {"x", 0}},
    .params = {CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("x"),
               {"rows", CUBE_INDEX, 0},
               {"columns", CUBE_INDEX, 0},
               {"row_step", CUBE_INDEX, 0},
               {"column_step", CUBE_INDEX, 0},
               {"tiles", CUBE_INDEX, 0},
               {"batches", CUBE_INDEX, 0}},
    .constants = {"RANK", "TILE"},
    .symbols = {"ACCUM"},
    .flags = CUBE_SPACES | CUBE_GROUPS,
};

/* How a group of GROUP_SIZE invocations cuts its tile: ACROSS of them side by
 * side, each with EACH_M rows, EACH_N columns of scores, EACH_C of the result.
 */
struct tiling {
    int32_t across, each_m, each_n, each_c;
    uint32_t group_size;
};

/* ---- operands ---- */

/* VIEW without its last two dimensions. */
static struct hob_view outer_of(const struct hob_view *view)
{
    struct hob_view outer = *view;

    outer.rank = view->rank > 2 ? (uint8_t)(view->rank - 2) : 0;
    return outer;
}

/* The step of VIEW's dimension that is BACK from the end; 0 where it repeats.
 */
static int64_t step_of(const struct hob_view *view, uint32_t back)
{
    if (view->rank < back || view->shape[view->rank - back] == 1)
        return 0;
    return view->strides[view->rank - back];
}

void cube_attention_operands(const struct hob_call *call, int is_backward,
                             const struct hob_view *out[OPERANDS])
{
    for (uint32_t i = 0; i < 3; i++)
        out[Q + i] = hob_arg_view(call, i);
    out[GRAD] = is_backward ? hob_arg_view(call, 7) : NULL;
    out[MASK] = hob_arg_view(call, 3);
    out[BIAS] = hob_arg_view(call, 4);
}

struct attention_options cube_attention_options(const struct hob_call *call,
                                                int is_backward)
{
    const struct hob_view *q = hob_arg_view(call, 0);
    const int64_t width = q->shape[q->rank - 1];
    const uint32_t first = is_backward ? 8 : 5;
    struct attention_options out = {0};

    out.scale = !cube_arg_absent(call, first) ? cube_arg_f64(call, first)
                : width                       ? 1 / sqrt((double)width)
                                              : 1;
    if (!cube_arg_absent(call, first + 1))
        out.cap = cube_arg_f64(call, first + 1);
    out.causal = cube_arg_i64(call, first + 2) != 0;
    out.ahead =
        hob_arg_view(call, 1)->shape[q->rank - 2] - q->shape[q->rank - 2];
    return out;
}

void cube_attention_init(struct attention *attention,
                         struct cube_device *device, struct hob_call *call,
                         const struct hob_view *const views[OPERANDS],
                         const struct attention_options *options)
{
    const struct hob_view *q = views[Q];
    const uint32_t rank = q->rank;

    memset(attention, 0, sizeof(*attention));
    attention->device = device;
    attention->call = call;
    attention->options = *options;
    attention->queries = q->shape[rank - 2];
    attention->d = q->shape[rank - 1];
    attention->keys = views[K]->shape[rank - 2];
    attention->e = views[V]->shape[rank - 1];
    cube_space_init(&attention->batch, rank - 2, q->shape);
    for (uint32_t i = 0; i < OPERANDS; i++) {
        /* What is not there lies like the queries. */
        const struct hob_view *view = views[i] ? views[i] : q;
        const struct hob_view outer = outer_of(view);

        attention->views[i] = views[i];
        cube_space_add(&attention->batch, &outer);
        attention->row_steps[i] = step_of(view, 2);
        attention->column_steps[i] = step_of(view, 1);
    }
    cube_space_collapse(&attention->batch);
}

/* Whether operand INDEX can be read WIDE elements at a time along its rows. */
static int is_vector(const struct attention *attention, uint32_t index)
{
    const struct cube_space *batch = &attention->batch;
    const struct hob_view *view = attention->views[index];
    const uint64_t bytes = (uint64_t)WIDE * hob_dtype_size(view->dtype);

    if (view->strides[view->rank - 1] != 1 ||
        view->shape[view->rank - 1] % WIDE ||
        attention->row_steps[index] % WIDE ||
        (uint64_t)(uintptr_t)view->data % bytes ||
        cube_lowest(view, NULL) % WIDE)
        return 0;
    for (uint32_t i = 0; i < batch->rank; i++)
        if (batch->strides[index][i] % WIDE)
            return 0;
    return 1;
}

static int32_t wide_of(const struct attention *attention)
{
    for (uint32_t i = Q; i <= GRAD; i++)
        if (attention->views[i] && !is_vector(attention, i))
            return 1;
    return WIDE;
}

/* ---- tiles ---- */

/* Columns of the result. */
static int64_t width_of(const struct attention *attention)
{
    return attention->mode == WEIGH ? attention->e : attention->d;
}

static int32_t tile_rows(const struct tiling *tiling)
{
    return (int32_t)tiling->group_size / tiling->across * tiling->each_m;
}

static int32_t tile_columns(const struct tiling *tiling)
{
    return tiling->across * tiling->each_n;
}

/* The shared arrays of attention_program. */
static int64_t shared_bytes(const struct tiling *tiling)
{
    const int32_t more =
        tiling->each_n > tiling->each_c ? tiling->each_n : tiling->each_c;
    const int64_t chunk = tile_rows(tiling) + tiling->across * more;

    return 4 * (CHUNKS * DEPTH * chunk +
                (int64_t)tile_rows(tiling) * tile_columns(tiling));
}

/* The largest tiles that fit the device and are many enough for it; 0 if there
 * are none. */
static int tiling_of(const struct attention *attention, struct tiling *out)
{
    static const struct {
        int32_t each_m, each_n;
    } sizes[] = {{8, 8}, {8, 4}, {4, 4}};
    const int64_t width = width_of(attention);
    const struct cube_limits *limits = &attention->device->limits;
    /* The slopes of a cap want registers of their own. */
    const int is_large =
        attention->options.cap == 0 || attention->mode == WEIGH;

    for (uint32_t i = 0; i < 3; i++) {
        int64_t tiles;

        out->across = width <= 64 ? 8 : width <= 128 ? 16 : 32;
        out->each_m = sizes[i].each_m;
        out->each_n = sizes[i].each_n;
        out->each_c = width <= 32 ? 4 : 8;
        out->group_size =
            i < 2 || out->across == 32 ? 128 : 8 * (uint32_t)out->across;
        tiles = cube_divide_up(attention->queries, tile_rows(out)) *
                attention->batch.count;
        if (shared_bytes(out) > limits->shared_bytes)
            continue;
        if (i == 2 || (is_large && attention->queries > tile_rows(out) / 2 &&
                       tiles >= cube_processors(attention->device)))
            return 1;
    }
    return 0;
}

int cube_attention_fits(struct attention *attention, enum attention_mode mode)
{
    struct tiling tiling;

    attention->mode = mode;
    return width_of(attention) <= WIDTH_MOST && tiling_of(attention, &tiling);
}

/* ---- launches ---- */

static void add_optional(struct cube_job *job, const struct hob_view *view)
{
    if (view)
        cube_job_lowest(job, view);
    else
        cube_job_absent(job);
}

/* Flags for each tile of ROWS rows of operand INDEX into OUT. */
static hob_status find_wild(const struct attention *attention, uint32_t index,
                            int32_t rows, int64_t tiles, void *out)
{
    const struct hob_view *view = attention->views[index];
    const struct cube_space *batch = &attention->batch;
    struct cube_job job;

    cube_job_init(&job, attention->device, attention->call,
                  &not_finite_program);
    cube_job_memory(&job, out, HOB_DTYPE_I32, tiles * batch->count);
    cube_job_lowest(&job, view);
    cube_job_space(&job, batch);
    cube_job_i64(&job, cube_lowest(view, NULL));
    cube_job_i64s(&job, batch->strides[index], batch->rank);
    cube_job_i64(&job, view->shape[view->rank - 2]);
    cube_job_i64(&job, view->shape[view->rank - 1]);
    cube_job_i64(&job, attention->row_steps[index]);
    cube_job_i64(&job, attention->column_steps[index]);
    cube_job_i64(&job, tiles);
    cube_job_i64(&job, batch->count);
    cube_job_reach(&job, tiles * batch->count);
    cube_job_reach(&job, rows * view->shape[view->rank - 1]);
    cube_job_constant(&job, (int32_t)batch->rank);
    cube_job_constant(&job, rows);
    cube_job_symbol(&job, "float");
    return cube_job_run(&job, tiles * batch->count);
}

static void add_memory(struct cube_job *job, const void *data, uint32_t dtype,
                       int64_t count)
{
    if (data)
        cube_job_memory(job, data, dtype, count);
    else
        cube_job_absent(job);
}

static void add_buffers(struct cube_job *job, const struct attention *attention,
                        const void *wild, int64_t wild_count)
{
    const int64_t scores =
        attention->batch.count * attention->queries * attention->row_size;

    cube_job_view(job, attention->out);
    cube_job_view(job, attention->lse);
    add_optional(job, attention->slopes);
    for (uint32_t i = 0; i < OPERANDS; i++)
        add_optional(job, attention->views[i]);
    add_optional(job, attention->delta);
    add_memory(job, attention->p, HOB_DTYPE_F32, scores);
    add_memory(job, attention->w, HOB_DTYPE_F32, scores);
    add_memory(job, wild, HOB_DTYPE_I32, wild_count);
}

static void add_numbers(struct cube_job *job, const struct attention *attention,
                        int64_t tiles)
{
    const struct cube_space *batch = &attention->batch;
    const double scale = attention->options.scale;
    const double cap = attention->options.cap;

    cube_job_space(job, batch);
    for (uint32_t i = 0; i < OPERANDS; i++) {
        cube_job_i64(job, attention->views[i]
                              ? cube_lowest(attention->views[i], NULL)
                              : 0);
        cube_job_i64s(job, batch->strides[i], batch->rank);
    }
    cube_job_i64s(job, attention->row_steps, OPERANDS);
    cube_job_i64s(job, attention->column_steps, OPERANDS);
    cube_job_i64(job, attention->queries);
    cube_job_i64(job, attention->keys);
    cube_job_i64(job, attention->d);
    cube_job_i64(job, attention->e);
    cube_job_i64(job, attention->row_size);
    cube_job_i64(job, attention->options.ahead);
    cube_job_i64(job, tiles);
    cube_job_i64(job, batch->count);
    cube_job_f64(job, cap != 0 ? scale / cap : scale * log2_e);
    cube_job_f64(job, cap * log2_e);
    cube_job_f64(job, scale);
    cube_job_reach(job, tiles * batch->count);
    /* Tiles step over the end. */
    cube_job_reach(job, attention->queries + 4096);
    cube_job_reach(job, attention->keys + 4096);
}

static hob_status launch(const struct attention *attention,
                         const struct tiling *tiling, const void *wild,
                         int64_t wild_count)
{
    const int64_t tiles = cube_divide_up(attention->queries, tile_rows(tiling));
    const struct hob_view *out = attention->out;
    const int32_t wide = wide_of(attention);
    struct cube_job job;

    cube_job_init(&job, attention->device, attention->call, &attention_program);
    job.variant.group_size = tiling->group_size;
    add_buffers(&job, attention, wild, wild_count);
    job.variant.widths[0] =
        width_of(attention) % WIDE == 0 && (uintptr_t)out->data % 16 == 0 ? WIDE
                                                                          : 1;
    for (uint32_t i = Q; i <= GRAD; i++)
        job.variant.widths[3 + i] = (uint8_t)wide;
    job.variant.widths[P_ALL] = job.variant.widths[W_ALL] = WIDE;
    add_numbers(&job, attention, tiles);
    cube_job_constant(&job, (int32_t)attention->batch.rank);
    cube_job_constant(&job, (int32_t)attention->mode);
    cube_job_constant(&job, tiling->across);
    cube_job_constant(&job, tiling->each_m);
    cube_job_constant(&job, tiling->each_n);
    cube_job_constant(&job, tiling->each_c);
    cube_job_constant(&job, wide);
    cube_job_constant(&job, attention->views[MASK] != NULL);
    cube_job_constant(&job, attention->views[BIAS] != NULL);
    cube_job_constant(&job, attention->options.cap != 0);
    /* Without keys there is nothing that comes later. */
    cube_job_constant(&job, wild != NULL);
    cube_job_constant(&job, attention->slopes != NULL);
    return cube_job_run(&job, tiles * attention->batch.count);
}

hob_status cube_attention_run(struct attention *attention,
                              enum attention_mode mode,
                              const struct hob_view *out)
{
    struct cube_device *device = attention->device;
    struct tiling tiling;
    int64_t tiles, count;
    void *wild = NULL;
    hob_status st = HOB_OK;

    attention->mode = mode;
    attention->out = out;
    (void)tiling_of(attention, &tiling);
    tiles = cube_divide_up(attention->keys, tile_columns(&tiling));
    count = tiles * attention->batch.count;
    if (attention->options.causal && count > 0) {
        st = device->runtime->alloc(device, (uint64_t)count * 4, &wild);
        if (st)
            return cube_fail(device, attention->call, st, NULL);
        st = find_wild(attention, mode == WEIGH ? V : K, tile_columns(&tiling),
                       tiles, wild);
    }
    if (!st)
        st = launch(attention, &tiling, wild, count);
    if (wild)
        device->runtime->free(device, wild, (uint64_t)count * 4);
    return st;
}

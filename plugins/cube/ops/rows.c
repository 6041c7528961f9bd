/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - softmax, norms, cross entropy: what folds the elements along one
 * dimension and writes as many, or a loss. A row is read once where the
 * invocations of a group can keep it, or of a cluster of groups, else once for
 * each step.
 */
#include "rows.h"

#include "../splits.h"
#include "../texts.h"

enum rows_op {
    SOFTMAX = 1,
    LOG_SOFTMAX,
    LAYER_NORM,
    RMS_NORM,
    SOFTMAX_BACKWARD,
    LOG_SOFTMAX_BACKWARD,
    CROSS_ENTROPY,
    CROSS_ENTROPY_BACKWARD
};

enum {
    OUT,
    X,
    G,
    OPERANDS,
    VECTORS = OPERANDS + 2, /* weight and bias too */

    KEEP_ELEMENTS = 32, /* of a lane, of all operands that are read */
    LANES_MOST = 1024,
    /* Two such groups a processor take turns at memory; more than four of a
     * row wait for each other longer than for a second look at it. */
    CLUSTER_LANES = 512,
    CLUSTER_MOST = 4,
    GROUP_LEAST = 128, /* small ones wait for fewer of their own */
    BUSY = 512,        /* lanes that a processor has work for */
    /* With so many columns one invocation walks down each. */
    COLUMNS_MANY = 1 << 15,
    COLUMN_LANES = 8
};

static const struct cube_program rows_program = {
    .name = "rows",
    .text = cube_text_rows,
    .buffers = {{"out", CUBE_WRITTEN},
                {"x", CUBE_PAIRS},
                {"g", 0},
                {"weight", CUBE_PAIRS},
                {"bias", CUBE_PAIRS},
                {"targets", 0},
                {"slope", 0},
                {"losses", CUBE_WRITTEN},
                {"bad", CUBE_WRITTEN | CUBE_ATOMIC}},
    .params = {CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("out"),
               CUBE_OPERAND_PARAMS("x"),
               CUBE_OPERAND_PARAMS("g"),
               {"count", CUBE_INDEX, 0},
               {"length", CUBE_INDEX, 0},
               {"epsilon", CUBE_VALUE_OF(X), 0}},
    .shared = {{"partial", "ACCUM", "GROUP_SIZE"}},
    .constants = {"RANK", "ROWS_OP", "ROWS", "IS_ROWS", "KEEP", "WIDE",
                  "HAS_WEIGHT", "HAS_BIAS", "IS_WHOLE", "CLUSTER"},
    .symbols = {"ACCUM", "LARGEST"},
    .flags = CUBE_SPACES | CUBE_SUBGROUPS | CUBE_MATHS | CUBE_CLUSTERS,
};

struct rows {
    struct cube_device *device;
    struct hob_call *call;
    enum rows_op op;
    const struct hob_view *views[OPERANDS]; /* G may be NULL */
    const struct hob_view *weight, *bias;   /* NULL: there is none */
    const struct cube_entropy *entropy;     /* likewise */
    double epsilon;
    struct cube_space space; /* places of rows, then a row's elements */
    int64_t count, length;
    uint32_t lanes, rows, keep, is_whole, wide,
        is_rows; /* as rows.cube has them */
    uint32_t group_size, cluster;
};

/* ---- where rows lie ---- */

/* VIEW without dimension DIM. */
static struct hob_view without(const struct hob_view *view, uint32_t dim)
{
    struct hob_view rest = *view;

    rest.rank--;
    for (uint32_t i = dim; i < rest.rank; i++) {
        rest.shape[i] = view->shape[i + 1];
        rest.strides[i] = view->strides[i + 1];
    }
    return rest;
}

static void lay_out(struct rows *rows, uint32_t dim)
{
    struct cube_space *space = &rows->space;
    const struct hob_view rest = without(rows->views[OUT], dim);

    cube_space_init(space, rest.rank, rest.shape);
    for (uint32_t i = 0; i < OPERANDS; i++) {
        /* What is not there lies like the result. */
        const struct hob_view part =
            without(rows->views[i] ? rows->views[i] : rows->views[OUT], dim);

        cube_space_add(space, &part);
    }
    cube_space_collapse(space);
    rows->count = space->count;
    rows->length = rows->views[OUT]->shape[dim];
    space->sizes[space->rank] = rows->length;
    for (uint32_t i = 0; i < OPERANDS; i++)
        space->strides[i][space->rank] =
            (rows->views[i] ? rows->views[i] : rows->views[OUT])->strides[dim];
    space->rank++;
    space->count *= rows->length;
}

/* Whether all operands can be read WIDE elements at a time along a row. */
static int is_vector(const struct rows *rows, int64_t wide)
{
    const struct cube_space *space = &rows->space;
    const uint32_t last = space->rank - 1;

    if (rows->length % wide ||
        (rows->weight && (uintptr_t)rows->weight->data % 16 != 0) ||
        (rows->bias && (uintptr_t)rows->bias->data % 16 != 0))
        return 0;
    for (uint32_t i = 0; i < OPERANDS; i++) {
        if (space->strides[i][last] != 1 || (uintptr_t)space->data[i] % 16 != 0)
            return 0;
        for (uint32_t d = 0; d < last; d++)
            if (space->strides[i][d] % wide || space->strides[i][d] < 0)
                return 0;
    }
    return 1;
}

/* ---- how the work is split: by sizes alone ---- */

/* Neighbours of a group are lanes of a row, unless rows lie closer together
 * than their elements. */
static int is_along(const struct rows *rows)
{
    const struct cube_space *space = &rows->space;
    const uint32_t last = space->rank - 1;

    return last == 0 || cube_magnitude(space->strides[X][last]) <=
                            cube_magnitude(space->strides[X][last - 1]);
}

/* A row of VECTORS that one group cannot keep is several groups', which keep
 * KEEP vectors a lane, if they can. */
static void split_cluster(struct rows *rows, int64_t vectors, int64_t keep)
{
    const struct cube_limits *limits = &rows->device->limits;
    const uint32_t most =
        limits->cluster < CLUSTER_MOST ? limits->cluster : CLUSTER_MOST;
    const int64_t groups = cube_divide_up(vectors, keep * CLUSTER_LANES);

    if (groups > most || limits->group_size < CLUSTER_LANES)
        return;
    rows->is_whole = 1;
    rows->cluster = cube_power_from(groups, most);
    rows->group_size = rows->lanes = CLUSTER_LANES;
    rows->keep = (uint32_t)keep;
}

static void split(struct rows *rows)
{
    const uint32_t size = hob_dtype_size(rows->views[OUT]->dtype);
    const int64_t operands = rows->views[G] ? 2 : 1;
    uint32_t most = rows->device->limits.group_size;
    int64_t vectors, keep;

    rows->is_rows = (uint32_t)is_along(rows);
    rows->wide = 16 / size;
    if (!rows->is_rows || !is_vector(rows, rows->wide))
        rows->wide = 1;
    keep = KEEP_ELEMENTS / operands / rows->wide;
    if (rows->wide == 1 && keep > 8)
        keep = 8; /* each is a load of its own */
    if (size == 8)
        keep = keep > 1 ? keep / 2 : 1;
    if (most > LANES_MOST)
        most = LANES_MOST;
    vectors = rows->length / rows->wide;
    /* A few rows are over sooner where many work at each. */
    if (rows->is_rows && vectors <= most &&
        rows->count * vectors <= cube_processors(rows->device) * BUSY)
        keep = 1;
    if (rows->is_rows)
        rows->lanes = cube_power_from((vectors + keep - 1) / keep, most);
    else
        rows->lanes = rows->count >= COLUMNS_MANY
                          ? 1
                          : cube_power_from(rows->length / keep, COLUMN_LANES);
    vectors = (vectors + rows->lanes - 1) / rows->lanes;
    rows->is_whole = vectors <= keep;
    rows->keep = cube_power_from(vectors, (uint32_t)keep);
    rows->group_size = rows->lanes > GROUP_LEAST ? rows->lanes : GROUP_LEAST;
    rows->rows = rows->group_size / rows->lanes;
    rows->cluster = 1;
    if (rows->is_rows && !rows->is_whole && rows->wide >= 4)
        split_cluster(rows, rows->length / rows->wide, keep);
}

/* ---- launches ---- */

static void add_optional(struct cube_job *job, const struct hob_view *view)
{
    if (view)
        cube_job_view(job, view);
    else
        cube_job_absent(job);
}

static void add_entropy(struct cube_job *job, const struct rows *rows)
{
    const struct cube_entropy *entropy = rows->entropy;

    add_optional(job, entropy ? entropy->targets : NULL);
    add_optional(job, entropy ? entropy->slope : NULL);
    if (entropy && entropy->losses)
        cube_job_memory(job, entropy->losses, entropy->logits->dtype,
                        rows->count);
    else
        cube_job_absent(job);
    if (entropy)
        cube_job_memory(job, entropy->bad, HOB_DTYPE_U32, 1);
    else
        cube_job_absent(job);
}

static hob_status run(struct rows *rows, uint32_t dim)
{
    const int is_double = rows->views[OUT]->dtype == HOB_DTYPE_F64;
    struct cube_job job;

    if (hob_view_count(rows->views[OUT]) == 0)
        return HOB_OK;
    lay_out(rows, dim);
    split(rows);
    cube_job_init(&job, rows->device, rows->call, &rows_program);
    job.variant.group_size = rows->group_size;
    if (rows->op == CROSS_ENTROPY)
        cube_job_absent(&job);
    else
        cube_job_operand(&job, &rows->space, OUT);
    cube_job_operand(&job, &rows->space, X);
    if (rows->views[G])
        cube_job_operand(&job, &rows->space, G);
    else
        cube_job_absent(&job);
    add_optional(&job, rows->weight);
    add_optional(&job, rows->bias);
    add_entropy(&job, rows);
    for (uint32_t i = 0; i < VECTORS; i++)
        job.variant.widths[i] = (uint8_t)rows->wide;
    cube_job_space(&job, &rows->space);
    for (uint32_t i = 0; i < OPERANDS; i++)
        cube_job_strides(&job, &rows->space, i);
    cube_job_i64(&job, rows->count);
    cube_job_i64(&job, rows->length);
    cube_job_f64(&job, rows->epsilon);
    cube_job_reach(&job, rows->count + LANES_MOST);
    cube_job_reach(&job,
                   rows->length + CLUSTER_MOST * LANES_MOST * KEEP_ELEMENTS);
    cube_job_constant(&job, (int32_t)rows->space.rank);
    cube_job_constant(&job, (int32_t)rows->op);
    cube_job_constant(&job, (int32_t)rows->rows);
    cube_job_constant(&job, (int32_t)rows->is_rows);
    cube_job_constant(&job, (int32_t)rows->keep);
    cube_job_constant(&job, (int32_t)rows->wide);
    cube_job_constant(&job, rows->weight != NULL);
    cube_job_constant(&job, rows->bias != NULL);
    cube_job_constant(&job, (int32_t)rows->is_whole);
    cube_job_constant(&job, (int32_t)rows->cluster);
    cube_job_symbol(&job, is_double ? "double" : "float");
    cube_job_symbol(&job, is_double ? "INF_F64" : "INF_F32");
    cube_job_each(&job, rows->rows);
    return cube_job_run(&job, (rows->count + rows->rows - 1) / rows->rows *
                                  rows->cluster);
}

static hob_status run_softmax(struct cube_device *device, struct hob_call *call,
                              enum rows_op op)
{
    const int is_backward =
        op == SOFTMAX_BACKWARD || op == LOG_SOFTMAX_BACKWARD;
    struct rows rows = {.device = device, .call = call, .op = op};

    rows.views[OUT] = hob_ret_view(call, 0);
    rows.views[X] = hob_arg_view(call, 0);
    rows.views[G] = is_backward ? hob_arg_view(call, 1) : NULL;
    return run(&rows, cube_dim(cube_arg_i64(call, is_backward ? 2 : 1),
                               rows.views[OUT]->rank));
}

static hob_status run_norm(struct cube_device *device, struct hob_call *call,
                           enum rows_op op)
{
    const int has_bias = op == LAYER_NORM;
    struct rows rows = {.device = device, .call = call, .op = op};

    rows.views[OUT] = hob_ret_view(call, 0);
    rows.views[X] = hob_arg_view(call, 0);
    rows.weight = hob_arg_view(call, 1);
    rows.bias = has_bias ? hob_arg_view(call, 2) : NULL;
    rows.epsilon = cube_arg_f64(call, has_bias ? 3 : 2);
    return run(&rows, rows.views[OUT]->rank - 1u);
}

hob_status cube_rows_entropy(struct cube_device *device, struct hob_call *call,
                             const struct cube_entropy *entropy)
{
    struct rows rows = {.device = device,
                        .call = call,
                        .op = entropy->losses ? CROSS_ENTROPY
                                              : CROSS_ENTROPY_BACKWARD,
                        .entropy = entropy};

    /* Losses are written without a place of their own in the space. */
    rows.views[OUT] = entropy->losses ? entropy->logits : entropy->out;
    rows.views[X] = entropy->logits;
    return run(&rows, 1);
}

/* A dimension of rank 0, or operands that do not lie like the result: the
 * bodies know. */
static int lie_alike(const struct hob_view *a, const struct hob_view *b)
{
    if (a->rank != b->rank || !a->rank)
        return 0;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return 0;
    return 1;
}

static hob_status prepare_softmax(void *device, const struct hob_call *call,
                                  struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return hob_arg_view(call, 0)->rank ? HOB_OK : HOB_ERR_UNSUPPORTED;
}

static hob_status prepare_backward(void *device, const struct hob_call *call,
                                   struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return lie_alike(hob_arg_view(call, 0), hob_arg_view(call, 1))
               ? HOB_OK
               : HOB_ERR_UNSUPPORTED;
}

/* Weights are read as they lie. */
static int is_plain(const struct hob_call *call, uint32_t index)
{
    return cube_arg_absent(call, index) ||
           cube_is_contiguous(hob_arg_view(call, index));
}

static hob_status prepare_rms_norm(void *device, const struct hob_call *call,
                                   struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return hob_arg_view(call, 0)->rank && is_plain(call, 1)
               ? HOB_OK
               : HOB_ERR_UNSUPPORTED;
}

static hob_status prepare_layer_norm(void *device, const struct hob_call *call,
                                     struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return hob_arg_view(call, 0)->rank && is_plain(call, 1) && is_plain(call, 2)
               ? HOB_OK
               : HOB_ERR_UNSUPPORTED;
}

/* ---- entries ---- */

static const uint32_t float_masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                       HOB_MASK_FLOAT};

/* X(op, driver, which, preparation, tensors, signature) */
#define ROWS_OPS                                                               \
    X(softmax, run_softmax, SOFTMAX, softmax, 1, "(x: Float, dim: i64) -> x")  \
    X(log_softmax, run_softmax, LOG_SOFTMAX, softmax, 1,                       \
      "(x: Float, dim: i64) -> x")                                             \
    X(softmax_backward, run_softmax, SOFTMAX_BACKWARD, backward, 2,            \
      "(output: Float, grad: Float, dim: i64) -> grad")                        \
    X(log_softmax_backward, run_softmax, LOG_SOFTMAX_BACKWARD, backward, 2,    \
      "(output: Float, grad: Float, dim: i64) -> grad")                        \
    X(layer_norm, run_norm, LAYER_NORM, layer_norm, 3,                         \
      "(x: Float, weight: Float?, bias: Float?, epsilon: f64 = 1e-5) -> x")    \
    X(rms_norm, run_norm, RMS_NORM, rms_norm, 2,                               \
      "(x: Float, weight: Float?, epsilon: f64 = 1e-5) -> x")

#define X(name, driver, which, preparation, tensors, text)                     \
    static hob_status execute_##name(void *device, struct hob_call *call)      \
    {                                                                          \
        return driver(device, call, which);                                    \
    }
ROWS_OPS
#undef X

#define X(name, driver, which, preparation, tensors, text)                     \
    {                                                                          \
        .op = #name,                                                           \
        .signature = text,                                                     \
        .dtypes = float_masks,                                                 \
        .dtype_count = tensors,                                                \
        .flags = HOB_ENTRY_IN_PLACE,                                           \
        .prepare = prepare_##preparation,                                      \
        .execute = execute_##name,                                             \
    },
static const struct hob_entry entries[] = {ROWS_OPS};
#undef X
#undef ROWS_OPS

const struct cube_entries cube_rows_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};

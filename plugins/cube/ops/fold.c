/* SPDX-License-Identifier: Apache-2.0 */
#include "fold.h"

#include "../texts.h"
#include "column_sums.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCKS_FEW = 256,     /* groups that leave a device idle */
    BLOCKS_ENOUGH = 1024, /* that do not all end at once */
    BLOCKS_WANTED = 2048,
    STEPS_LEAST = 8, /* of each invocation, in a part */
    STEPS_MANY = 64, /* what is worth a second launch where there are some */
    RESULTS_MANY = 1 << 15
};

#define PROGRAM(name_, flags_)                                                 \
    {                                                                          \
        .name = name_, .text = cube_text_reduce,                               \
        .buffers = {{"out", CUBE_WRITTEN},                                     \
                    {"out_index", CUBE_WRITTEN},                               \
                    {"x", 0},                                                  \
                    {"x_index", 0}},                                           \
        .params = {{"count", CUBE_INDEX, 0},                                   \
                   {"length", CUBE_INDEX, 0},                                  \
                   {"parts", CUBE_INDEX, 0},                                   \
                   {"part_length", CUBE_INDEX, 0},                             \
                   {"divisor", CUBE_INDEX, CUBE_LENGTH(3)},                    \
                   CUBE_SPACE_PARAMS,                                          \
                   CUBE_OPERAND_PARAMS("x")},                                  \
        .shared = {{"lanes", "ACCUM", "GROUP_SIZE"},                           \
                   {"lanes_at", "int", "GROUP_SIZE"}},                         \
        .constants =                                                           \
            {"RANK",      "OUTER",      "FOLD",    "IS_MEAN", "IS_ARG",        \
             "IS_SECOND", "HAS_VALUES", "IS_ROWS", "ACROSS",  "WIDE"},         \
        .symbols = {"ACCUM"}, .flags = CUBE_SPACES | (flags_),                 \
    }

static const struct cube_program plain_program = PROGRAM("reduce", 0);
static const struct cube_program mean_program =
    PROGRAM("reduce_mean", CUBE_MATHS);
#undef PROGRAM

enum cube_type cube_fold_accum(uint32_t kind, uint32_t is_mean,
                               const struct cube_limits *limits, uint32_t dtype)
{
    const uint32_t bit = HOB_DTYPE_BIT(dtype);
    const int is_wide = hob_dtype_size(dtype) == 8;

    if (kind == CUBE_FOLD_ANY || kind == CUBE_FOLD_ALL)
        return CUBE_U32;
    /* Products leave the range of f32 on the way to results that do not. */
    if (bit & HOB_MASK_FLOAT)
        return is_wide || (kind == CUBE_FOLD_PRODUCT && limits->has_f64)
                   ? CUBE_F64
                   : CUBE_F32;
    if (is_wide || (is_mean && limits->has_i64))
        return bit & HOB_MASK_SIGNED ? CUBE_I64 : CUBE_U64;
    return bit & HOB_MASK_SIGNED ? CUBE_I32 : CUBE_U32;
}

/* What is accumulated in: its type in the dialect and as memory. */
struct accum {
    const char *type;
    uint32_t dtype;
};

static struct accum accum_of(const struct cube_fold *fold)
{
    static const uint8_t dtypes[] = {
        [CUBE_F32] = HOB_DTYPE_F32, [CUBE_F64] = HOB_DTYPE_F64,
        [CUBE_I32] = HOB_DTYPE_I32, [CUBE_U32] = HOB_DTYPE_U32,
        [CUBE_I64] = HOB_DTYPE_I64, [CUBE_U64] = HOB_DTYPE_U64};
    const enum cube_type type = cube_fold_accum(
        fold->kind, fold->is_mean, &fold->device->limits, fold->x.dtype);

    return (struct accum){cube_type_name(type), dtypes[type]};
}

/* One launch of the two that there may be. */
struct pass {
    struct cube_space space; /* results first, then what is folded */
    uint32_t outer;          /* dimensions of the results */
    int64_t count, length;
    uint32_t wide, across, is_rows;
    int64_t parts, part_length;
};

static int64_t round_up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* ---- where elements lie ---- */

/* Dimensions of SPACE by falling stride, none of which is negative: for folds
 * that do not mind the order. */
static void reorder(struct cube_space *space)
{
    for (uint32_t i = 0; i < space->rank; i++) {
        int64_t *stride = &space->strides[0][i];

        if (*stride < 0) {
            space->data[0] = (const char *)space->data[0] +
                             (space->sizes[i] - 1) * *stride *
                                 (int64_t)hob_dtype_size(space->dtypes[0]);
            *stride = -*stride;
        }
    }
    for (uint32_t i = 1; i < space->rank; i++)
        for (uint32_t k = i;
             k > 0 && space->strides[0][k - 1] < space->strides[0][k]; k--) {
            const int64_t size = space->sizes[k];
            const int64_t stride = space->strides[0][k];

            space->sizes[k] = space->sizes[k - 1];
            space->strides[0][k] = space->strides[0][k - 1];
            space->sizes[k - 1] = size;
            space->strides[0][k - 1] = stride;
        }
}

/* The dimensions of X that are in DIMS (a bit each), or those that are not,
 * as a collapsed space. */
static void take_dims(struct cube_space *space, const struct hob_view *x,
                      uint32_t dims)
{
    struct hob_view part = *x;

    part.rank = 0;
    for (uint32_t i = 0; i < x->rank; i++)
        if (dims >> i & 1) {
            part.shape[part.rank] = x->shape[i];
            part.strides[part.rank++] = x->strides[i];
        }
    cube_space_init(space, part.rank, part.shape);
    cube_space_add(space, &part);
}

static void first_pass(struct pass *pass, const struct cube_fold *fold)
{
    const struct hob_view *x = &fold->x;
    const uint32_t all = (1u << x->rank) - 1;
    struct cube_space inner;

    take_dims(&pass->space, x, all & ~fold->dims);
    cube_space_collapse(&pass->space);
    take_dims(&inner, x, fold->dims);
    if (fold->kind != CUBE_FOLD_ARG_MAX && fold->kind != CUBE_FOLD_ARG_MIN)
        reorder(&inner);
    cube_space_collapse(&inner);
    pass->outer = pass->space.rank;
    pass->count = pass->space.count;
    pass->length = inner.count;
    for (uint32_t i = 0; i < inner.rank; i++) {
        pass->space.sizes[pass->outer + i] = inner.sizes[i];
        pass->space.strides[0][pass->outer + i] = inner.strides[0][i];
    }
    pass->space.rank += inner.rank;
    pass->space.count *= inner.count;
    pass->space.data[0] = inner.data[0];
}

/* Scratch [parts][count] of the pass before. */
static void second_pass(struct pass *pass, const struct pass *before,
                        const void *scratch, uint32_t dtype)
{
    memset(pass, 0, sizeof(*pass));
    pass->count = before->count;
    pass->length = before->parts;
    pass->outer = 1;
    pass->space.rank = 2;
    pass->space.operand_count = 1;
    pass->space.count = pass->count * pass->length;
    pass->space.sizes[0] = pass->count;
    pass->space.strides[0][0] = 1;
    pass->space.sizes[1] = pass->length;
    pass->space.strides[0][1] = pass->count;
    pass->space.data[0] = scratch;
    pass->space.dtypes[0] = dtype;
}

/* ---- how the work is split: by sizes alone ---- */

/* Elements that an invocation reads at once. */
static uint32_t width_of(const struct pass *pass)
{
    const struct cube_space *space = &pass->space;
    const uint32_t size = hob_dtype_size(space->dtypes[0]);
    const uint32_t wide = 16 / size;

    if (space->rank != pass->outer + 1 || space->strides[0][pass->outer] != 1 ||
        (uintptr_t)space->data[0] % 16 != 0 || pass->length % wide != 0)
        return 1;
    for (uint32_t i = 0; i < pass->outer; i++)
        if (space->strides[0][i] % (int64_t)wide != 0 ||
            space->strides[0][i] < 0)
            return 1;
    return wide;
}

static void split(struct pass *pass, int can_split)
{
    const struct cube_space *space = &pass->space;
    const int64_t near =
        space->rank > pass->outer
            ? cube_magnitude(space->strides[0][space->rank - 1])
            : 0;
    const int64_t far = pass->outer > 0
                            ? cube_magnitude(space->strides[0][pass->outer - 1])
                            : INT64_MAX;
    uint32_t along;
    int64_t blocks, step, most;

    pass->is_rows = near < far;
    pass->wide = pass->is_rows ? width_of(pass) : 1;
    if (pass->is_rows)
        along = cube_power_from(pass->length / pass->wide, CUBE_GROUP_SIZE);
    else
        along = pass->count >= RESULTS_MANY
                    ? 1
                    : cube_power_from(pass->length / STEPS_LEAST, 8);
    pass->across = CUBE_GROUP_SIZE / along;
    blocks = (pass->count + pass->across - 1) / pass->across;
    step = (int64_t)along * pass->wide;
    most = pass->length /
           (step * (blocks < BLOCKS_FEW ? STEPS_LEAST : STEPS_MANY));
    pass->parts = 1;
    if (can_split && blocks > 0 && blocks < BLOCKS_ENOUGH && most > 1) {
        pass->parts = BLOCKS_WANTED / blocks;
        if (pass->parts > most)
            pass->parts = most;
    }
    pass->part_length =
        round_up((pass->length + pass->parts - 1) / pass->parts, step);
    if (pass->part_length > 0)
        pass->parts =
            (pass->length + pass->part_length - 1) / pass->part_length;
    if (pass->parts == 0)
        pass->parts = 1;
}

/* ---- launches ---- */

/* Where a pass writes: results or scratch. */
struct goal {
    const void *values; /* NULL: only indices are wanted */
    const void *indices;
    uint32_t dtype, index_dtype;
};

static int is_arg(const struct cube_fold *fold)
{
    return fold->kind == CUBE_FOLD_ARG_MAX || fold->kind == CUBE_FOLD_ARG_MIN;
}

static void add_memory(struct cube_job *job, const void *data, uint32_t dtype,
                       int64_t count)
{
    if (data)
        cube_job_memory(job, data, dtype, count);
    else
        cube_job_absent(job);
}

static hob_status launch(const struct cube_fold *fold, const struct pass *pass,
                         const struct goal *goal, const void *x_index,
                         int is_last)
{
    static const int32_t folds[] = {1, 2, 3, 4, 5, 6, 3, 4};
    const int is_mean = fold->is_mean && is_last;
    const struct accum accum = accum_of(fold);
    const int64_t blocks = (pass->count + pass->across - 1) / pass->across;
    struct cube_job job;

    cube_job_init(&job, fold->device, fold->call,
                  is_mean ? &mean_program : &plain_program);
    add_memory(&job, goal->values, goal->dtype, pass->count * pass->parts);
    add_memory(&job, goal->indices, goal->index_dtype,
               pass->count * pass->parts);
    cube_job_operand(&job, &pass->space, 0);
    add_memory(&job, x_index, HOB_DTYPE_I32, pass->space.count);
    job.variant.widths[2] = (uint8_t)pass->wide;
    cube_job_i64(&job, pass->count);
    cube_job_i64(&job, pass->length);
    cube_job_i64(&job, pass->parts);
    cube_job_i64(&job, pass->part_length);
    if (is_mean) {
        cube_job_i64(&job, fold->length);
        cube_job_reach(&job, fold->length);
    }
    cube_job_space(&job, &pass->space);
    cube_job_strides(&job, &pass->space, 0);
    cube_job_constant(&job, (int32_t)pass->space.rank);
    cube_job_constant(&job, (int32_t)pass->outer);
    cube_job_constant(&job, folds[fold->kind]);
    cube_job_constant(&job, is_mean);
    cube_job_constant(&job, is_arg(fold));
    cube_job_constant(&job, x_index != NULL);
    cube_job_constant(&job, goal->values != NULL);
    cube_job_constant(&job, (int32_t)pass->is_rows);
    cube_job_constant(&job, (int32_t)pass->across);
    cube_job_constant(&job, (int32_t)pass->wide);
    cube_job_symbol(&job, accum.type);
    return cube_job_run(&job, blocks * pass->parts);
}

static hob_status fold_twice(const struct cube_fold *fold,
                             const struct pass *first, const struct goal *goal)
{
    struct cube_device *device = fold->device;
    const struct cube_runtime *runtime = device->runtime;
    const struct accum accum = accum_of(fold);
    const int64_t cells = first->count * first->parts;
    const uint64_t value_bytes =
        (uint64_t)round_up(cells * hob_dtype_size(accum.dtype), 64);
    const uint64_t bytes =
        value_bytes + (is_arg(fold) ? (uint64_t)cells * sizeof(int32_t) : 0);
    struct goal between = {.dtype = accum.dtype, .index_dtype = HOB_DTYPE_I32};
    struct pass second;
    void *scratch;
    hob_status st = runtime->alloc(device, bytes, &scratch);

    if (st)
        return cube_fail(device, fold->call, st, NULL);
    between.values = scratch;
    between.indices = is_arg(fold) ? (char *)scratch + value_bytes : NULL;
    st = launch(fold, first, &between, NULL, 0);
    if (!st) {
        second_pass(&second, first, scratch, accum.dtype);
        split(&second, 0);
        st = launch(fold, &second, goal, between.indices, 1);
    }
    runtime->free(device, scratch, bytes);
    return st;
}

/* Whether FOLD sums the columns of a row-major matrix of floats. */
static int is_of_columns(const struct cube_fold *fold, const struct pass *pass)
{
    const struct cube_space *space = &pass->space;

    return fold->kind == CUBE_FOLD_SUM && !fold->is_mean && fold->values &&
           (HOB_DTYPE_BIT(fold->x.dtype) & HOB_MASK_FLOAT) &&
           pass->outer == 1 && space->rank == 2 && space->strides[0][0] == 1 &&
           space->strides[0][1] >= space->sizes[0];
}

static hob_status sum_columns(const struct cube_fold *fold,
                              const struct pass *pass)
{
    const struct cube_column_sums sums = {.data = pass->space.data[0],
                                          .dtype = fold->x.dtype,
                                          .rows = pass->length,
                                          .columns = pass->count,
                                          .step = pass->space.strides[0][1],
                                          .sums = {fold->values}};

    return cube_column_sums(fold->device, fold->call, &sums);
}

hob_status cube_fold_run(struct cube_fold *fold)
{
    const struct goal goal = {
        .values = fold->values ? fold->values->data : NULL,
        .indices = fold->indices ? fold->indices->data : NULL,
        .dtype = fold->values ? fold->values->dtype : 0,
        .index_dtype = fold->indices ? fold->indices->dtype : 0};
    struct pass pass;

    first_pass(&pass, fold);
    fold->length = pass.length;
    if (pass.count == 0)
        return HOB_OK;
    if (is_of_columns(fold, &pass))
        return sum_columns(fold, &pass);
    split(&pass, 1);
    return pass.parts > 1 ? fold_twice(fold, &pass, &goal)
                          : launch(fold, &pass, &goal, NULL, 1);
}

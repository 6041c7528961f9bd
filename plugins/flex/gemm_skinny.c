/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_skinny.c - products with few rows (or columns) on one side.
 *
 * Such a product is bound by reading the large matrix, so it is read once,
 * in its own order, and never packed. If the few are the columns of B, the
 * transposed product is computed: c^T = b^T a^T.
 */
#include "gemm.h"

#include <string.h>

enum {
    ROWS_MAX = 2 * FLEX_SKINNY_ROWS, /* in groups of FLEX_SKINNY_ROWS */
    /* Bytes of a row of the large matrix in one task, if it streams by: long
     * runs are read faster (8 KiB by a third more than 2), but the sums of all
     * rows stay in the first-level cache, and several tasks are wanted. */
    STREAM_MOST = 8192,
    STREAM_LEAST = 2048,
    SUMS_BYTES = ROWS_MAX * (STREAM_LEAST + FLEX_ALIGN),
    DOT_COLUMNS = 64,
    /* Rows of the large matrix that all groups use before the next ones. */
    STREAM_DEPTH = 8,
    /* Elements of the few rows in one pass of dots, so that they stay in the
     * cache too. */
    DOT_ELEMENTS = 8192,
    /* Large matrices up to this size are better multiplied in tiles, as far as
     * those read them in place. */
    IN_PLACE_BYTES = 2 << 20,
    /* Bytes of the large matrix that are worth a thread. */
    PIECE_BYTES = 128 << 10
};

struct skinny {
    const struct flex_gemm *gemm;
    const struct flex_gemm_kernels *kernels;
    struct flex_device *device;
    int64_t few, many;
    /* The large matrix: depth index k, then the many. */
    const char *large;
    int64_t large_k, large_many;
    /* The small one packed, a group of rows after the other: in each [k][rows]
     * for streaming, [rows][k] for dots. */
    char *small;
    int64_t c_few, c_many; /* strides in c */
    int is_rows;           /* the few are rows of c, else columns */
    int is_stream;
    int64_t columns; /* of the large matrix in a task */
    int64_t sum_stride; /* a line more, as sums that are 4 KiB apart wait for
                         * each other's stores */
};

int flex_gemm_is_skinny(const struct flex_gemm *gemm)
{
    const int64_t size = hob_dtype_size(gemm->dtype);

    if (gemm->m <= ROWS_MAX && gemm->m <= gemm->n) {
        const int64_t bytes = gemm->n * gemm->k * size;

        if (gemm->m > 1 && gemm->b_column == 1)
            return bytes > IN_PLACE_BYTES;
        if (gemm->m >= FLEX_SKINNY_ROWS / 2)
            return gemm->b_row == 1 && bytes > IN_PLACE_BYTES / 8;
        return gemm->b_column == 1 || gemm->b_row == 1 || gemm->n == 1;
    }
    if (gemm->n <= ROWS_MAX && (gemm->a_column == 1 || gemm->a_row == 1))
        return gemm->n <= FLEX_SKINNY_ROWS ||
               gemm->m * gemm->k * size > IN_PLACE_BYTES;
    return 0;
}

/* One element of c from its sum. TYPE is f32 or f64 or an unsigned one. */
static void finish_f32(const struct flex_gemm *gemm, float *c, float sum,
                       int64_t column)
{
    if (gemm->alpha != 1)
        sum *= (float)gemm->alpha;
    if (gemm->beta != 0)
        sum += *c;
    if (gemm->bias)
        sum += ((const float *)gemm->bias)[column];
    if (gemm->relu && sum <= 0)
        sum = 0;
    *c = sum;
}

static void finish_f64(const struct flex_gemm *gemm, double *c, double sum,
                       int64_t column)
{
    if (gemm->alpha != 1)
        sum *= gemm->alpha;
    if (gemm->beta != 0)
        sum += *c;
    if (gemm->bias)
        sum += ((const double *)gemm->bias)[column];
    if (gemm->relu && sum <= 0)
        sum = 0;
    *c = sum;
}

/* Move COLUMNS sums of each of the few rows to their places in c. */
static void finish(const struct skinny *job, int64_t first, int64_t columns,
                   const char *sums)
{
    const struct flex_gemm *gemm = job->gemm;
    const int32_t size = job->kernels->size;

    for (int64_t i = 0; i < job->few; i++) {
        for (int64_t j = 0; j < columns; j++) {
            int64_t at = i * job->c_few + (first + j) * job->c_many;
            int64_t column = job->is_rows ? first + j : i;
            const char *sum = sums + (i * job->sum_stride + j) * size;
            char *c = (char *)gemm->c + at * size;

            if (gemm->dtype == HOB_DTYPE_F32)
                finish_f32(gemm, (float *)(void *)c,
                           *(const float *)(const void *)sum, column);
            else if (gemm->dtype == HOB_DTYPE_F64)
                finish_f64(gemm, (double *)(void *)c,
                           *(const double *)(const void *)sum, column);
            else if (size == 4)
                *(uint32_t *)(void *)c =
                    *(const uint32_t *)(const void *)sum +
                    (gemm->beta != 0 ? *(uint32_t *)(void *)c : 0);
            else
                *(uint64_t *)(void *)c =
                    *(const uint64_t *)(const void *)sum +
                    (gemm->beta != 0 ? *(uint64_t *)(void *)c : 0);
        }
    }
    if (gemm->epilogue && job->is_rows)
        gemm->epilogue(gemm->epilogue_context, (char *)gemm->c + first * size,
                       0, job->few, first, columns, gemm->ldc);
    else if (gemm->epilogue)
        gemm->epilogue(gemm->epilogue_context,
                       (char *)gemm->c + first * gemm->ldc * size, first,
                       columns, 0, job->few, gemm->ldc);
}

/* The sums of one task at DEPTH rows from K on, for a group of rows after the
 * other. */
static void sum_rows(const struct skinny *job, int64_t k, int64_t depth,
                     int64_t columns, const char *large, char *sums)
{
    const int32_t size = job->kernels->size;

    for (int64_t i = 0; i < job->few; i += FLEX_SKINNY_ROWS) {
        const int64_t rows =
            job->few - i < FLEX_SKINNY_ROWS ? job->few - i : FLEX_SKINNY_ROWS;
        const char *small = job->small + i * job->gemm->k * size;
        char *out = sums + i * job->sum_stride * size;

        if (job->is_stream)
            job->kernels->stream[rows - 1](depth, columns,
                                           small + k * rows * size,
                                           large + k * job->large_k * size,
                                           job->large_k, out, job->sum_stride);
        else
            job->kernels->dot[rows - 1](depth, columns, small + k * size,
                                        job->gemm->k, large + k * size,
                                        job->large_many, out, job->sum_stride);
    }
}

static void skinny_task(const struct skinny *job, int64_t task)
{
    _Alignas(FLEX_ALIGN) char sums[SUMS_BYTES];
    const int32_t size = job->kernels->size;
    const int64_t first = task * job->columns;
    const int64_t columns =
        job->many - first < job->columns ? job->many - first : job->columns;
    const char *large = job->large + first * job->large_many * size;
    const int64_t k_count = job->gemm->k;
    int64_t depth = k_count;

    if (!job->is_stream)
        depth = DOT_ELEMENTS /
                (job->few < FLEX_SKINNY_ROWS ? job->few : FLEX_SKINNY_ROWS);
    else if (job->few > FLEX_SKINNY_ROWS)
        depth = STREAM_DEPTH;
    memset(sums, 0, (size_t)(job->few * job->sum_stride * size));
    for (int64_t k = 0; k < k_count; k += depth)
        sum_rows(job, k, k_count - k < depth ? k_count - k : depth, columns,
                 large, sums);
    finish(job, first, columns, sums);
}

static void skinny_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    (void)worker;
    for (int64_t i = first; i < last; i++)
        skinny_task(context, i);
}

/* Pack the small operand, whose strides are ROW (the few) and COLUMN (k). */
static void pack_small(struct skinny *job, const char *in, int64_t row,
                       int64_t column)
{
    const int32_t size = job->kernels->size;
    const int64_t k_count = job->gemm->k;

    for (int64_t i = 0; i < job->few; i++) {
        const int64_t group = i / FLEX_SKINNY_ROWS * FLEX_SKINNY_ROWS;
        const int64_t rows = job->few - group < FLEX_SKINNY_ROWS
                                 ? job->few - group
                                 : FLEX_SKINNY_ROWS;
        for (int64_t k = 0; k < k_count; k++) {
            int64_t at = job->is_stream ? group * k_count + k * rows + i - group
                                        : i * k_count + k;
            const char *from = in + (i * row + k * column) * size;
            if (size == 4)
                memcpy(job->small + at * 4, from, 4);
            else
                memcpy(job->small + at * 8, from, 8);
        }
    }
}

hob_status flex_gemm_skinny(struct flex_device *device,
                            const struct flex_gemm *gemm)
{
    struct skinny job = {
        .gemm = gemm,
        .device = device,
        .kernels = &device->blas->kernels[flex_gemm_type_of(gemm->dtype)]};
    _Alignas(FLEX_ALIGN) char stack[4096];
    const int is_rows = gemm->m <= ROWS_MAX && gemm->m <= gemm->n;
    uint64_t small_bytes;
    int64_t task_bytes;

    job.is_rows = is_rows;
    job.few = is_rows ? gemm->m : gemm->n;
    job.many = is_rows ? gemm->n : gemm->m;
    job.large = is_rows ? gemm->b : gemm->a;
    job.large_k = is_rows ? gemm->b_row : gemm->a_column;
    job.large_many = is_rows ? gemm->b_column : gemm->a_row;
    job.c_few = is_rows ? gemm->ldc : 1;
    job.c_many = is_rows ? 1 : gemm->ldc;
    /* flex_gemm_is_skinny() saw to it: if k is not the dense direction, the
     * many are, or there is only one of them. */
    job.is_stream = job.large_k != 1;
    job.columns =
        job.is_stream
            ? flex_clamp(2 * STREAM_MOST / job.few, STREAM_LEAST, STREAM_MOST) /
                  FLEX_ALIGN * FLEX_ALIGN / job.kernels->size
            : DOT_COLUMNS;
    if (job.columns > job.many)
        job.columns = job.many;
    job.sum_stride = job.columns + FLEX_ALIGN / job.kernels->size;
    small_bytes =
        (uint64_t)job.few * (uint64_t)gemm->k * (uint64_t)job.kernels->size;
    job.small = stack;
    if (small_bytes > sizeof(stack)) {
        job.small = flex_scratch_take(device, small_bytes);
        if (!job.small)
            return HOB_ERR_MEMORY;
    }
    pack_small(&job, is_rows ? gemm->a : gemm->b,
               is_rows ? gemm->a_row : gemm->b_column,
               is_rows ? gemm->a_column : gemm->b_row);
    task_bytes = job.columns * gemm->k * job.kernels->size + 1;
    flex_parallel(device, (job.many + job.columns - 1) / job.columns,
                  1 + PIECE_BYTES / task_bytes, skinny_range, &job);
    if (job.small != stack)
        flex_scratch_give(device, job.small, small_bytes);
    return HOB_OK;
}

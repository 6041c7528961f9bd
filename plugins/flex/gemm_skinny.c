/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_skinny.c - products with at most 8 rows (or columns) on one side.
 *
 * Such a product is bound by reading the large matrix, so it is read once,
 * in its own order, and never packed. If the few are the columns of B, the
 * transposed product is computed: c^T = b^T a^T.
 */
#include "gemm.h"

#include <string.h>

enum {
    /* Columns of the large matrix in one task: the sums of 8 rows (16 KiB in
     * f32) stay in the first-level cache beside what streams by. */
    STREAM_COLUMNS = 512,
    DOT_COLUMNS = 64,
    /* Depth of one pass of dots, so that 8 rows of A stay in the cache. */
    DOT_DEPTH = 1024,
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
    /* The small one packed: [k][few] for streaming, [few][k] for dots. */
    char *small;
    int64_t c_few, c_many; /* strides in c */
    int is_rows;           /* the few are rows of c, else columns */
    int is_stream;
    int64_t columns; /* of the large matrix in a task */
};

int flex_gemm_is_skinny(const struct flex_gemm *gemm)
{
    if (gemm->m <= FLEX_SKINNY_ROWS)
        return gemm->b_column == 1 || gemm->b_row == 1 || gemm->n == 1;
    if (gemm->n <= FLEX_SKINNY_ROWS)
        return gemm->a_column == 1 || gemm->a_row == 1;
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
            const char *sum = sums + (i * job->columns + j) * size;
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

static void skinny_task(const struct skinny *job, int64_t task)
{
    _Alignas(FLEX_ALIGN) char sums[FLEX_SKINNY_ROWS * STREAM_COLUMNS * 8];
    const int32_t size = job->kernels->size;
    const int64_t first = task * job->columns;
    const int64_t columns =
        job->many - first < job->columns ? job->many - first : job->columns;
    const char *large = job->large + first * job->large_many * size;
    const int64_t k = job->gemm->k;

    memset(sums, 0, (size_t)(job->few * job->columns * size));
    if (job->is_stream) {
        job->kernels->stream[job->few - 1](k, columns, job->small, large,
                                           job->large_k, sums, job->columns);
    } else {
        for (int64_t l = 0; l < k; l += DOT_DEPTH)
            job->kernels->dot[job->few - 1](
                k - l < DOT_DEPTH ? k - l : DOT_DEPTH, columns,
                job->small + l * size, k, large + l * size, job->large_many,
                sums, job->columns);
    }
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

    for (int64_t i = 0; i < job->few; i++)
        for (int64_t k = 0; k < k_count; k++) {
            int64_t at = job->is_stream ? k * job->few + i : i * k_count + k;
            const char *from = in + (i * row + k * column) * size;
            if (size == 4)
                memcpy(job->small + at * 4, from, 4);
            else
                memcpy(job->small + at * 8, from, 8);
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
    const int is_rows = gemm->m <= FLEX_SKINNY_ROWS;
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
    job.columns = job.is_stream ? STREAM_COLUMNS : DOT_COLUMNS;
    if (job.columns > job.many)
        job.columns = job.many;
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

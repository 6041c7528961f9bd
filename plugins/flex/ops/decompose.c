/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decompose.c - det and lu. All dtypes are computed in f64 and rounded once.
 * Matrices of a batch go to different threads, the products of a large one
 * do too.
 */
#include "decompose.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- for qr.c, too ---- */

static void minus_outer_range(void *context, int64_t first, int64_t last,
                              uint32_t worker)
{
    const struct flex_outer *outer = context;
    const double *t = outer->t;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        double *row = outer->a + i * outer->stride;
        const double v = outer->v[i];

        for (int64_t c = 0; c < outer->columns; c++)
            row[c] -= v * t[c];
    }
}

void flex_minus_outer(struct flex_device *device,
                      const struct flex_outer *outer, int64_t rows)
{
    struct flex_outer job = *outer;

    if (outer->columns > 0)
        flex_parallel(device, rows, 1 + FLEX_GRAIN_CHEAP / 4 / outer->columns,
                      minus_outer_range, &job);
}

void flex_part_multiply(struct flex_matrices *job, int64_t m, int64_t n,
                        int64_t k, double alpha, struct flex_part a,
                        int is_turned, struct flex_part b, double beta,
                        struct flex_part c)
{
    const struct flex_gemm gemm = {
        .struct_size = sizeof(gemm),
        .dtype = HOB_DTYPE_F64,
        .m = m,
        .n = n,
        .k = k,
        .a = a.at,
        .a_row = is_turned ? 1 : a.stride,
        .a_column = is_turned ? a.stride : 1,
        .b = b.at,
        .b_row = b.stride,
        .b_column = 1,
        .c = c.at,
        .ldc = c.stride,
        .alpha = alpha,
        .beta = beta,
    };

    if (m > 0 && n > 0 && flex_gemm(job->device, &gemm))
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
}

/* Matrix AT of the argument into A. */
void flex_matrices_load(const struct flex_matrices *job, int64_t at, double *a)
{
    const int64_t count = job->m * job->n;
    char block[FLEX_BLOCK * 8];

    for (int64_t i = 0; i < count; i += FLEX_BLOCK) {
        int64_t n = count - i < FLEX_BLOCK ? count - i : FLEX_BLOCK;
        const void *in = flex_loop_fetch(&job->in, at * count + i, n, block);

        if (job->dtype == HOB_DTYPE_F64)
            memcpy(a + i, in, (size_t)n * 8);
        else
            job->device->kernels->cast[HOB_DTYPE_F64][job->dtype](a + i, in, n);
    }
}

/* COUNT numbers as elements of result INDEX from FIRST on. */
void flex_matrices_store(const struct flex_matrices *job, uint32_t index,
                         int64_t first, const double *from, int64_t count)
{
    char *out = hob_ret_view(job->call, index)->data;

    if (count == 0) /* then there may be no memory either */
        return;
    out += first * (int64_t)hob_dtype_size(job->dtype);
    if (job->dtype == HOB_DTYPE_F64)
        memcpy(out, from, (size_t)count * 8);
    else
        job->device->kernels->cast[job->dtype][HOB_DTYPE_F64](out, from, count);
}

static void batch_range(void *context, int64_t first, int64_t last,
                        uint32_t worker)
{
    struct flex_matrices *job = context;
    double *scratch = flex_scratch_take(job->device, job->bytes);

    (void)worker;
    if (!scratch) {
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = first; i < last; i++)
        job->decompose(job, i, scratch);
    flex_scratch_give(job->device, scratch, job->bytes);
}

/* DOUBLES of scratch a matrix; on failure the call has a message. */
hob_status flex_matrices_run(struct flex_matrices *job, int64_t batch,
                             int64_t doubles)
{
    int64_t grain = 1 + FLEX_GRAIN_DEAR / (job->m * job->n + 1);

    job->bytes = (uint64_t)doubles * sizeof(double);
    flex_parallel(job->device, batch, grain, batch_range, job);
    if (job->failed)
        return job->call->host->fail(job->call, HOB_ERR_MEMORY,
                                     "%s: no memory for %" PRId64
                                     " numbers to work on",
                                     job->call->op_name, doubles);
    return HOB_OK;
}

struct flex_matrices flex_matrices_of(struct flex_device *device,
                                      struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct flex_matrices job = {
        .device = device, .call = call, .dtype = x->dtype};

    flex_loop_init(&job.in, x);
    job.m = x->shape[x->rank - 2];
    job.n = x->shape[x->rank - 1];
    job.k = job.m < job.n ? job.m : job.n;
    return job;
}

/* Matrices in the last two dimensions of VIEW. */
int64_t flex_matrices_count(const struct hob_view *view)
{
    int64_t batch = 1;

    for (uint32_t i = 0; i + 2 < view->rank; i++)
        batch *= view->shape[i];
    return batch;
}

/* ---- elimination: det and lu ---- */

/* The row from J on whose element in column J is greatest: NaN first, of
 * equals the first. */
static int64_t pivot_row(const struct flex_matrices *job, const double *a,
                         int64_t j)
{
    int64_t best = j;

    for (int64_t i = j; i < job->m; i++) {
        double size = fabs(a[i * job->n + j]);

        if (isnan(size))
            return i;
        if (size > fabs(a[best * job->n + j]))
            best = i;
    }
    return best;
}

static void swap_rows(double *a, double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double kept = a[i];

        a[i] = b[i];
        b[i] = kept;
    }
}

/* Columns up to which there are too few for a product. */
enum { NARROW = 16 };

/* A from row ROW and column COLUMN on. */
static struct flex_part part(const struct flex_matrices *job, double *a,
                             int64_t row, int64_t column)
{
    struct flex_part at = {a + row * job->n + column, job->n};

    return at;
}

/* Columns FIRST up to LAST of rows TOP up to BOTTOM, multiplied from the left
 * by the inverse of L there, whose diagonal is 1: halves of L by turns. */
static void solve(struct flex_matrices *job, double *a, int64_t top,
                  int64_t bottom, int64_t first, int64_t last)
{
    const int64_t n = job->n, half = top + (bottom - top) / 2;

    if (bottom - top > NARROW) {
        solve(job, a, top, half, first, last);
        flex_part_multiply(job, bottom - half, last - first, half - top, -1,
                           part(job, a, half, top), 0, part(job, a, top, first),
                           1, part(job, a, half, first));
        solve(job, a, half, bottom, first, last);
        return;
    }
    for (int64_t i = top + 1; i < bottom; i++)
        for (int64_t p = top; p < i; p++) {
            const double factor = a[i * n + p];
            const double *from = a + p * n;
            double *to = a + i * n;

            for (int64_t c = first; c < last; c++)
                to[c] -= factor * from[c];
        }
}

/* Eliminate below the diagonal in columns FIRST up to LAST, in all rows, but
 * in no column behind. ORDER follows the rows; returns its sign. */
static int eliminate_few(struct flex_matrices *job, double *a, double *order,
                         double *factors, int64_t first, int64_t last)
{
    const int64_t n = job->n;
    int sign = 1;

    for (int64_t j = first; j < last; j++) {
        const int64_t from = pivot_row(job, a, j);
        const int64_t below = job->m - j - 1;
        double *row = a + j * n;
        struct flex_outer outer = {row + n + j + 1, n, last - j - 1, factors,
                                   row + j + 1};

        if (from != j) {
            swap_rows(row, a + from * n, n);
            swap_rows(order + j, order + from, 1);
            sign = -sign;
        }
        /* Where the greatest is 0, all are. */
        for (int64_t i = 0; i < below; i++) {
            double *head = row + (i + 1) * n + j;

            if (row[j] != 0)
                *head /= row[j];
            factors[i] = *head;
        }
        flex_minus_outer(job->device, &outer, below);
    }
    return sign;
}

/* The same in halves: what the left one does to the right is a product
 * (Toledo 1997), so nearly all of the work is. */
static int eliminate_columns(struct flex_matrices *job, double *a,
                             double *order, double *factors, int64_t first,
                             int64_t last)
{
    const int64_t half = first + (last - first) / 2;
    int sign;

    if (last - first <= NARROW)
        return eliminate_few(job, a, order, factors, first, last);
    sign = eliminate_columns(job, a, order, factors, first, half);
    solve(job, a, first, half, half, last);
    flex_part_multiply(job, job->m - half, last - half, half - first, -1,
                       part(job, a, half, first), 0, part(job, a, first, half),
                       1, part(job, a, half, half));
    return sign * eliminate_columns(job, a, order, factors, half, last);
}

/*
 * A [m, n] to L and U in one, with partial pivoting. ORDER [m] becomes the
 * rows' old places; FACTORS [m] is scratch. Returns the sign of the order.
 */
static int eliminate(struct flex_matrices *job, double *a, double *order,
                     double *factors)
{
    int sign;

    for (int64_t i = 0; i < job->m; i++)
        order[i] = (double)i;
    sign = eliminate_columns(job, a, order, factors, 0, job->k);
    solve(job, a, 0, job->k, job->k, job->n);
    return sign;
}

static void det_of(struct flex_matrices *job, int64_t at, double *scratch)
{
    double *order = scratch + job->m * job->n;
    double product;

    flex_matrices_load(job, at, scratch);
    product = eliminate(job, scratch, order, order + job->m);
    for (int64_t i = 0; i < job->n; i++)
        product *= scratch[i * job->n + i];
    flex_matrices_store(job, 0, at, &product, 1);
}

static hob_status det(void *device, struct hob_call *call)
{
    struct flex_matrices job = flex_matrices_of(device, call);

    job.decompose = det_of;
    return flex_matrices_run(&job, flex_matrices_count(hob_arg_view(call, 0)),
                             job.m * job.n + 2 * job.m);
}

/* Row i of L U is row order[i] of x. */
static void lu_of(struct flex_matrices *job, int64_t at, double *scratch)
{
    const int64_t m = job->m, n = job->n, k = job->k;
    double *order = scratch + m * n;
    double *factors = order + m;
    double *line = factors + m;

    flex_matrices_load(job, at, scratch);
    (void)eliminate(job, scratch, order, factors);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < m; j++)
            line[j] = (int64_t)order[j] == i;
        flex_matrices_store(job, 0, (at * m + i) * m, line, m);
        for (int64_t j = 0; j < k; j++)
            line[j] = i > j ? scratch[i * n + j] : i == j;
        flex_matrices_store(job, 1, (at * m + i) * k, line, k);
    }
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < i; j++)
            scratch[i * n + j] = 0;
        flex_matrices_store(job, 2, (at * k + i) * n, scratch + i * n, n);
    }
}

static hob_status lu(void *device, struct hob_call *call)
{
    struct flex_matrices job = flex_matrices_of(device, call);

    job.decompose = lu_of;
    return flex_matrices_run(&job, flex_matrices_count(hob_arg_view(call, 0)),
                             job.m * job.n + 3 * job.m);
}

/* ---- the table ---- */

static const uint32_t masks[] = {HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "det",
        .signature = "(x: Float) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = det,
    },
    {
        .op = "lu",
        .signature = "(x: Float) -> (x, x, x)",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = lu,
    },
    {
        .op = "qr",
        .signature = "(x: Float, reduced: bool = true) -> (x, x)",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = flex_qr,
    },
};

const struct flex_entries flex_decompose_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

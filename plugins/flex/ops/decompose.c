/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decompose.c - det, lu and qr. All dtypes are computed in f64 and rounded
 * once. Matrices of a batch go to different threads, the rows of a large one
 * do too.
 */
#include "flex.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- rows of f64 ---- */

/* A, minus the product of a column V and a row T. */
struct outer {
    double *a; /* [rows, stride], at its first element */
    int64_t stride, columns;
    const double *v, *t;
};

static void minus_outer_range(void *context, int64_t first, int64_t last,
                              uint32_t worker)
{
    const struct outer *outer = context;
    const double *t = outer->t;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        double *row = outer->a + i * outer->stride;
        const double v = outer->v[i];

        for (int64_t c = 0; c < outer->columns; c++)
            row[c] -= v * t[c];
    }
}

static void minus_outer(struct flex_device *device, const struct outer *outer,
                        int64_t rows)
{
    struct outer job = *outer;

    if (outer->columns > 0)
        flex_parallel(device, rows, 1 + FLEX_GRAIN_CHEAP / 4 / outer->columns,
                      minus_outer_range, &job);
}

/* OUT = V' A, for some columns. */
struct product {
    const double *a;
    int64_t rows, stride;
    const double *v;
    double *out;
};

static void product_range(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    const struct product *product = context;

    (void)worker;
    memset(product->out + first, 0, (size_t)(last - first) * sizeof(double));
    for (int64_t i = 0; i < product->rows; i++) {
        const double *row = product->a + i * product->stride;
        const double v = product->v[i];

        for (int64_t c = first; c < last; c++)
            product->out[c] += v * row[c];
    }
}

/* ---- the matrices of a call ---- */

struct job {
    struct flex_device *device;
    struct hob_call *call;
    struct flex_loop in;
    uint32_t dtype;
    int64_t m, n, k;
    int64_t count;  /* columns of q */
    uint64_t bytes; /* of scratch for one matrix */
    void (*decompose)(const struct job *job, int64_t at, double *scratch);
    int failed; /* no memory */
};

/* Matrix AT of the argument into A. */
static void load(const struct job *job, int64_t at, double *a)
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
static void store(const struct job *job, uint32_t index, int64_t first,
                  const double *from, int64_t count)
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
    struct job *job = context;
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
static hob_status run(struct job *job, int64_t batch, int64_t doubles)
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

static struct job job_of(struct flex_device *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct job job = {.device = device, .call = call, .dtype = x->dtype};

    flex_loop_init(&job.in, x);
    job.m = x->shape[x->rank - 2];
    job.n = x->shape[x->rank - 1];
    job.k = job.m < job.n ? job.m : job.n;
    return job;
}

/* Matrices in the last two dimensions of VIEW. */
static int64_t batch_of(const struct hob_view *view)
{
    int64_t batch = 1;

    for (uint32_t i = 0; i + 2 < view->rank; i++)
        batch *= view->shape[i];
    return batch;
}

/* ---- elimination: det and lu ---- */

/* The row from J on whose element in column J is greatest: NaN first, of
 * equals the first. */
static int64_t pivot_row(const struct job *job, const double *a, int64_t j)
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

/*
 * A [m, n] to L and U in one, with partial pivoting. ORDER [m] becomes the
 * rows' old places; FACTORS [m] is scratch. Returns the sign of the order.
 */
static int eliminate(const struct job *job, double *a, double *order,
                     double *factors)
{
    const int64_t n = job->n;
    int sign = 1;

    for (int64_t i = 0; i < job->m; i++)
        order[i] = (double)i;
    for (int64_t j = 0; j < job->k; j++) {
        const int64_t from = pivot_row(job, a, j);
        const int64_t below = job->m - j - 1;
        double *row = a + j * n;
        struct outer outer = {row + n + j + 1, n, n - j - 1, factors,
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
        minus_outer(job->device, &outer, below);
    }
    return sign;
}

static void det_of(const struct job *job, int64_t at, double *scratch)
{
    double *order = scratch + job->m * job->n;
    double product;

    load(job, at, scratch);
    product = eliminate(job, scratch, order, order + job->m);
    for (int64_t i = 0; i < job->n; i++)
        product *= scratch[i * job->n + i];
    store(job, 0, at, &product, 1);
}

static hob_status det(void *device, struct hob_call *call)
{
    struct job job = job_of(device, call);

    job.decompose = det_of;
    return run(&job, batch_of(hob_arg_view(call, 0)),
               job.m * job.n + 2 * job.m);
}

/* Row i of L U is row order[i] of x. */
static void lu_of(const struct job *job, int64_t at, double *scratch)
{
    const int64_t m = job->m, n = job->n, k = job->k;
    double *order = scratch + m * n;
    double *factors = order + m;
    double *line = factors + m;

    load(job, at, scratch);
    (void)eliminate(job, scratch, order, factors);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < m; j++)
            line[j] = (int64_t)order[j] == i;
        store(job, 0, (at * m + i) * m, line, m);
        for (int64_t j = 0; j < k; j++)
            line[j] = i > j ? scratch[i * n + j] : i == j;
        store(job, 1, (at * m + i) * k, line, k);
    }
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < i; j++)
            scratch[i * n + j] = 0;
        store(job, 2, (at * k + i) * n, scratch + i * n, n);
    }
}

static hob_status lu(void *device, struct hob_call *call)
{
    struct job job = job_of(device, call);

    job.decompose = lu_of;
    return run(&job, batch_of(hob_arg_view(call, 0)),
               job.m * job.n + 3 * job.m);
}

/* ---- reflection: qr ---- */

/* The length of V [COUNT], which may be too large to square. */
static double length_of(const double *v, int64_t count)
{
    double most = 0, sum = 0;

    for (int64_t i = 0; i < count; i++)
        most = fabs(v[i]) > most ? fabs(v[i]) : most;
    if (most == 0 || isinf(most))
        most = 1;
    for (int64_t i = 0; i < count; i++)
        sum += v[i] / most * (v[i] / most);
    return most * sqrt(sum);
}

/* Reflect A [rows, columns] by V [rows], whose first element is 1; T is
 * scratch. */
static void reflect(struct flex_device *device, double *a, int64_t rows,
                    int64_t stride, int64_t columns, double *v, double *t)
{
    struct product product = {a, rows, stride, v, t};
    struct outer outer = {a, stride, columns, v, t};
    double square = 0;

    for (int64_t i = 0; i < rows; i++)
        square += v[i] * v[i];
    flex_parallel(device, columns, 1 + FLEX_GRAIN_CHEAP / 4 / rows,
                  product_range, &product);
    for (int64_t c = 0; c < columns; c++)
        t[c] *= 2 / square;
    minus_outer(device, &outer, rows);
}

/* The reflector of column J of A [m, n] into V, from row J on. */
static void reflector(const struct job *job, const double *a, int64_t j,
                      double *v)
{
    const int64_t rows = job->m - j;
    double head;

    for (int64_t i = 0; i < rows; i++)
        v[i] = a[(j + i) * job->n + j];
    head = v[0] + copysign(length_of(v, rows), v[0] < 0 ? -1 : 1);
    for (int64_t i = 1; i < rows && head != 0; i++)
        v[i] /= head;
    v[0] = 1;
}

static void qr_of(const struct job *job, int64_t at, double *scratch)
{
    const int64_t m = job->m, n = job->n, count = job->count;
    const int64_t steps = n < m ? n : m - 1; /* one row needs none */
    double *q = scratch + m * n;
    double *v = q + m * count;
    double *t = v + m;

    load(job, at, scratch);
    memset(q, 0, (size_t)(m * count) * sizeof(double));
    for (int64_t i = 0; i < count; i++)
        q[i * count + i] = 1;
    for (int64_t j = 0; j < steps; j++) {
        reflector(job, scratch, j, v);
        reflect(job->device, scratch + j * n + j, m - j, n, n - j, v, t);
        for (int64_t i = 1; i < m - j; i++)
            scratch[(j + i) * n + j] = v[i]; /* in place of the zeros */
    }
    for (int64_t j = steps - 1; j >= 0; j--) {
        v[0] = 1;
        for (int64_t i = 1; i < m - j; i++)
            v[i] = scratch[(j + i) * n + j];
        reflect(job->device, q + j * count, m - j, count, count, v, t);
    }
    for (int64_t j = 0; j < job->k; j++) {
        if (!(scratch[j * n + j] < 0))
            continue;
        for (int64_t i = 0; i < m; i++)
            q[i * count + j] = -q[i * count + j];
        for (int64_t i = j; i < n; i++)
            scratch[j * n + i] = -scratch[j * n + i];
    }
    store(job, 0, at * m * count, q, m * count);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < i && j < n; j++)
            scratch[i * n + j] = 0;
        store(job, 1, (at * count + i) * n, scratch + i * n, n);
    }
}

static hob_status qr(void *device, struct hob_call *call)
{
    struct job job = job_of(device, call);
    int64_t widest;

    job.count = flex_arg_i64(call, 1) ? job.k : job.m;
    job.decompose = qr_of;
    widest = job.n > job.count ? job.n : job.count;
    return run(&job, batch_of(hob_arg_view(call, 0)),
               job.m * job.n + job.m * job.count + job.m + widest);
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
        .execute = qr,
    },
};

const struct flex_entries flex_decompose_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qr.c - qr by Householder reflections, some columns at a time.
 *
 * Reflections by v_1 .. v_b are I - V T V' with V = [v_1 .. v_b] and an upper
 * triangular T (Schreiber and Van Loan 1989), so that they meet the other
 * columns, and make up Q, as products.
 */
#include "decompose.h"

#include <math.h>
#include <string.h>

/* Reflections at a time; and how many, and of how many columns, are worth it.
 */
enum { BLOCK = 32, MANY = 8 };

/* What a matrix works on, besides itself. */
struct work {
    double *q;          /* [m, count] */
    double *v;          /* [m, BLOCK] */
    double *t, *square; /* [BLOCK, BLOCK] */
    double *left;       /* [2 BLOCK, widest] */
    double *one;        /* [m]: a reflector */
    double *row;        /* [widest] */
};

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
    struct flex_outer outer = {a, stride, columns, v, t};
    double square = 0;

    for (int64_t i = 0; i < rows; i++)
        square += v[i] * v[i];
    flex_parallel(device, columns, 1 + FLEX_GRAIN_CHEAP / 4 / rows,
                  product_range, &product);
    for (int64_t c = 0; c < columns; c++)
        t[c] *= 2 / square;
    flex_minus_outer(device, &outer, rows);
}

/* The reflector of column J of A [m, n] into V, from row J on. */
static void reflector(const struct flex_matrices *job, const double *a,
                      int64_t j, double *v)
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

/* Put COUNT reflectors of A from column FIRST on into V, and what makes one
 * reflection of them into T. */
static void gather(struct flex_matrices *job, const double *a, int64_t first,
                   int64_t count, const struct work *work)
{
    const int64_t rows = job->m - first;
    const struct flex_part v = {work->v, count};
    double *t = work->t, *square = work->square;

    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < count; j++)
            work->v[i * count + j] =
                i > j ? a[(first + i) * job->n + first + j] : i == j;
    flex_part_multiply(job, count, count, rows, 1, v, 1, v, 0,
                       (struct flex_part){square, count});
    for (int64_t j = 0; j < count; j++) {
        const double factor = 2 / square[j * count + j];

        for (int64_t i = 0; i < count; i++) {
            double sum = 0;

            for (int64_t p = i; p < j; p++)
                sum += t[i * count + p] * square[p * count + j];
            t[i * count + j] = i < j ? -factor * sum : i == j ? factor : 0;
        }
    }
}

/* C [rows, columns] = (I - V T V') C, or with T' if IS_TURNED. */
static void apply(struct flex_matrices *job, const struct work *work,
                  int64_t rows, int64_t count, int is_turned, double *c,
                  int64_t stride, int64_t columns)
{
    const struct flex_part v = {work->v, count}, t = {work->t, count};
    const struct flex_part left = {work->left, columns};
    const struct flex_part right = {work->left + count * columns, columns};
    const struct flex_part out = {c, stride};

    if (columns <= 0)
        return;
    flex_part_multiply(job, count, columns, rows, 1, v, 1, out, 0, left);
    flex_part_multiply(job, count, columns, count, 1, t, is_turned, left, 0,
                       right);
    flex_part_multiply(job, rows, columns, count, -1, v, 0, right, 1, out);
}

/* Whether so many reflections of so many columns are worth products. */
static int are_many(int64_t count, int64_t columns)
{
    return count >= MANY && columns >= MANY;
}

/* A [m, n] to R, with STEPS reflectors below its diagonal. */
static void reflect_all(struct flex_matrices *job, double *a, int64_t steps,
                        const struct work *work)
{
    const int64_t m = job->m, n = job->n;

    for (int64_t first = 0; first < steps; first += BLOCK) {
        const int64_t last = steps - first < BLOCK ? steps : first + BLOCK;
        const int is_block = are_many(last - first, n - last);

        for (int64_t j = first; j < last; j++) {
            reflector(job, a, j, work->one);
            reflect(job->device, a + j * n + j, m - j, n,
                    (is_block ? last : n) - j, work->one, work->row);
            for (int64_t i = 1; i < m - j; i++)
                a[(j + i) * n + j] = work->one[i]; /* in place of the zeros */
        }
        if (is_block) {
            gather(job, a, first, last - first, work);
            apply(job, work, m - first, last - first, 1, a + first * n + last,
                  n, n - last);
        }
    }
}

/* Q = the reflections of 1, the last first. */
static void form_q(struct flex_matrices *job, const double *a, int64_t steps,
                   const struct work *work)
{
    const int64_t m = job->m, n = job->n, count = job->count;
    double *q = work->q;

    memset(q, 0, (size_t)(m * count) * sizeof(double));
    for (int64_t i = 0; i < count; i++)
        q[i * count + i] = 1;
    for (int64_t last = steps, first; last > 0; last = first) {
        first = (last - 1) / BLOCK * BLOCK;
        /* Left of FIRST there are zeros. */
        if (are_many(last - first, count - first)) {
            gather(job, a, first, last - first, work);
            apply(job, work, m - first, last - first, 0,
                  q + first * count + first, count, count - first);
            continue;
        }
        for (int64_t j = last - 1; j >= first; j--) {
            work->one[0] = 1;
            for (int64_t i = 1; i < m - j; i++)
                work->one[i] = a[(j + i) * n + j];
            reflect(job->device, q + j * count + first, m - j, count,
                    count - first, work->one, work->row);
        }
    }
}

static int64_t widest(const struct flex_matrices *job)
{
    return job->n > job->count ? job->n : job->count;
}

static void qr_of(struct flex_matrices *job, int64_t at, double *scratch)
{
    const int64_t m = job->m, n = job->n, count = job->count;
    const int64_t steps = n < m ? n : m - 1; /* one row needs none */
    struct work work;

    work.q = scratch + m * n;
    work.v = work.q + m * count;
    work.t = work.v + m * BLOCK;
    work.square = work.t + BLOCK * BLOCK;
    work.left = work.square + BLOCK * BLOCK;
    work.one = work.left + 2 * BLOCK * widest(job);
    work.row = work.one + m;
    flex_matrices_load(job, at, scratch);
    reflect_all(job, scratch, steps, &work);
    form_q(job, scratch, steps, &work);
    for (int64_t j = 0; j < job->k; j++) {
        if (!(scratch[j * n + j] < 0))
            continue;
        for (int64_t i = 0; i < m; i++)
            work.q[i * count + j] = -work.q[i * count + j];
        for (int64_t i = j; i < n; i++)
            scratch[j * n + i] = -scratch[j * n + i];
    }
    flex_matrices_store(job, 0, at * m * count, work.q, m * count);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < i && j < n; j++)
            scratch[i * n + j] = 0;
        flex_matrices_store(job, 1, (at * count + i) * n, scratch + i * n, n);
    }
}

hob_status flex_qr(void *device, struct hob_call *call)
{
    struct flex_matrices job = flex_matrices_of(device, call);

    job.count = flex_arg_i64(call, 1) ? job.k : job.m;
    job.decompose = qr_of;
    return flex_matrices_run(&job, flex_matrices_count(hob_arg_view(call, 0)),
                             job.m * (job.n + job.count + BLOCK + 1) +
                                 2 * BLOCK * BLOCK +
                                 (2 * BLOCK + 1) * widest(&job));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - what goes along a dimension: C11 softmax, C12 norms, C13 sums and
 * maxima, C14 argmax, cumulative sums, topk, sort.
 *
 * n: 0 rows, 1 columns, 2 the dimension (2: all), 3 k of topk.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS, COLUMNS, DIM, K };

/* ---- lines: the elements that are reduced together ---- */

/* Element I of line LINE; the dimension is that of the case. */
static double line_get(const struct bench_case *c, const struct bench_array *in,
                       int64_t line, int64_t i)
{
    if (c->n[DIM] == 0)
        return bench_get(&in[0], i * c->n[COLUMNS] + line);
    return bench_get(&in[0], line * c->n[COLUMNS] + i);
}

static int64_t line_length(const struct bench_case *c)
{
    return c->n[DIM] == 2   ? c->n[ROWS] * c->n[COLUMNS]
           : c->n[DIM] == 1 ? c->n[COLUMNS]
                            : c->n[ROWS];
}

/* Where element I of line LINE is in a result of the same shape. */
static int64_t line_place(const struct bench_case *c, int64_t line, int64_t i)
{
    return c->n[DIM] == 0 ? i * c->n[COLUMNS] + line : line * c->n[COLUMNS] + i;
}

/* ---- C11 ---- */

static hob_tensor *softmax(hob_scope *scope, hob_tensor *const *in,
                           const struct bench_case *c)
{
    return hob_softmax(scope, in[0], c->n[DIM]);
}

static hob_tensor *log_softmax(hob_scope *scope, hob_tensor *const *in,
                               const struct bench_case *c)
{
    return hob_log_softmax(scope, in[0], c->n[DIM]);
}

/* log(sum(exp(x))) of a line; the inputs are small. */
static double log_sum(const struct bench_case *c, const struct bench_array *in,
                      int64_t line)
{
    double sum = 0;

    for (int64_t i = 0; i < line_length(c); i++)
        sum += exp(line_get(c, in, line, i));
    return log(sum);
}

static void log_softmax_all(const struct bench_case *c,
                            const struct bench_array *in, double *out)
{
    for (int64_t line = 0; line < c->n[ROWS]; line++) {
        const double sum = log_sum(c, in, line);

        for (int64_t i = 0; i < c->n[COLUMNS]; i++)
            out[line_place(c, line, i)] = line_get(c, in, line, i) - sum;
    }
}

static void softmax_all(const struct bench_case *c,
                        const struct bench_array *in, double *out)
{
    log_softmax_all(c, in, out);
    for (int64_t i = 0; i < c->out_count; i++)
        out[i] = exp(out[i]);
}

/* ---- C12 ---- */

static const double epsilon = 1e-5;

static hob_tensor *layer_norm(hob_scope *scope, hob_tensor *const *in,
                              const struct bench_case *c)
{
    (void)c;
    return hob_layer_norm(scope, in[0], in[1], in[2], epsilon);
}

static hob_tensor *rms_norm(hob_scope *scope, hob_tensor *const *in,
                            const struct bench_case *c)
{
    (void)c;
    return hob_rms_norm(scope, in[0], in[1], epsilon);
}

/* The mean of (x - CENTER) ** POWER of a line. */
static double moment(const struct bench_case *c, const struct bench_array *in,
                     int64_t line, double center, int power)
{
    double sum = 0;

    for (int64_t i = 0; i < c->n[COLUMNS]; i++) {
        const double x = line_get(c, in, line, i) - center;

        sum += power == 2 ? x * x : x;
    }
    return sum / (double)c->n[COLUMNS];
}

static void layer_norm_all(const struct bench_case *c,
                           const struct bench_array *in, double *out)
{
    for (int64_t line = 0; line < c->n[ROWS]; line++) {
        const double mean = moment(c, in, line, 0, 1);
        const double scale = 1 / sqrt(moment(c, in, line, mean, 2) + epsilon);

        for (int64_t i = 0; i < c->n[COLUMNS]; i++)
            out[line_place(c, line, i)] = (line_get(c, in, line, i) - mean) *
                                              scale * bench_get(&in[1], i) +
                                          bench_get(&in[2], i);
    }
}

static void rms_norm_all(const struct bench_case *c,
                         const struct bench_array *in, double *out)
{
    for (int64_t line = 0; line < c->n[ROWS]; line++) {
        const double scale = 1 / sqrt(moment(c, in, line, 0, 2) + epsilon);

        for (int64_t i = 0; i < c->n[COLUMNS]; i++)
            out[line_place(c, line, i)] =
                line_get(c, in, line, i) * scale * bench_get(&in[1], i);
    }
}

/* ---- C13 ---- */

static hob_tensor *sum(hob_scope *scope, hob_tensor *const *in,
                       const struct bench_case *c)
{
    return c->n[DIM] == 2 ? hob_sum(scope, in[0])
                          : hob_sum_dim(scope, in[0], c->n[DIM]);
}

static double sum_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t at)
{
    double all = 0;

    for (int64_t i = 0; i < line_length(c); i++)
        all += line_get(c, in, at, i);
    return all;
}

static hob_tensor *max(hob_scope *scope, hob_tensor *const *in,
                       const struct bench_case *c)
{
    return c->n[DIM] == 2 ? hob_max(scope, in[0])
                          : hob_max_dim(scope, in[0], c->n[DIM]);
}

/* The first of the greatest. */
static int64_t find_max(const struct bench_case *c,
                        const struct bench_array *in, int64_t line)
{
    int64_t best = 0;

    for (int64_t i = 1; i < line_length(c); i++)
        if (line_get(c, in, line, i) > line_get(c, in, line, best))
            best = i;
    return best;
}

static double max_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t at)
{
    return line_get(c, in, at, find_max(c, in, at));
}

/* ---- C14 ---- */

static hob_tensor *argmax(hob_scope *scope, hob_tensor *const *in,
                          const struct bench_case *c)
{
    return hob_argmax(scope, in[0], c->n[DIM], HOB_DTYPE_I64);
}

static double argmax_at(const struct bench_case *c,
                        const struct bench_array *in, int64_t at)
{
    return (double)find_max(c, in, at);
}

static hob_tensor *cumsum(hob_scope *scope, hob_tensor *const *in,
                          const struct bench_case *c)
{
    return hob_cumsum(scope, in[0], c->n[DIM]);
}

static void cumsum_all(const struct bench_case *c, const struct bench_array *in,
                       double *out)
{
    const int64_t lines = c->out_count / line_length(c);

    for (int64_t line = 0; line < lines; line++) {
        double so_far = 0;

        for (int64_t i = 0; i < line_length(c); i++) {
            so_far += line_get(c, in, line, i);
            out[line_place(c, line, i)] = so_far;
        }
    }
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int falling(const void *a, const void *b)
{
    return rising(b, a);
}

static hob_tensor *sort(hob_scope *scope, hob_tensor *const *in,
                        const struct bench_case *c)
{
    return hob_sort(scope, in[0], c->n[DIM], 0);
}

static void sort_all(const struct bench_case *c, const struct bench_array *in,
                     double *out)
{
    const int64_t columns = c->n[COLUMNS];

    for (int64_t line = 0; line < c->n[ROWS]; line++) {
        for (int64_t i = 0; i < columns; i++)
            out[line * columns + i] = line_get(c, in, line, i);
        qsort(out + line * columns, (size_t)columns, sizeof(*out), rising);
    }
}

static hob_tensor *topk(hob_scope *scope, hob_tensor *const *in,
                        const struct bench_case *c)
{
    return hob_topk(scope, in[0], c->n[K], c->n[DIM]);
}

static void topk_all(const struct bench_case *c, const struct bench_array *in,
                     double *out)
{
    const int64_t columns = c->n[COLUMNS];
    double *line = malloc((size_t)columns * sizeof(*line));

    for (int64_t row = 0; line && row < c->n[ROWS]; row++) {
        for (int64_t i = 0; i < columns; i++)
            line[i] = line_get(c, in, row, i);
        qsort(line, (size_t)columns, sizeof(*line), falling);
        for (int64_t i = 0; i < c->n[K]; i++)
            out[row * c->n[K] + i] = line[i];
    }
    free(line);
}

/* ---- the table ---- */

#define F32 HOB_DTYPE_F32
#define MATRIX(rows, columns, dim, low, high)                                  \
    .in = {{F32, {rows, columns}, low, high}}, .n = {rows, columns, dim}
#define SAME(rows, columns)                                                    \
    .out_count = (int64_t)(rows) * (columns),                                  \
    .bytes = 8.0 * (double)(rows) * (columns)

/* A function of rows, or of columns, whose result has the same shape. */
#define ROWWISE(case_id, label, rows, columns, function, python, reference,    \
                wanted)                                                        \
    {                                                                          \
        .id = case_id, .name = label " " #rows " x " #columns,                 \
        MATRIX(rows, columns, 1, 0, 0), .hob = function, .torch = python,      \
        .all = reference, SAME(rows, columns), .target = {                     \
            .peer = wanted                                                     \
        }                                                                      \
    }

/* A result for each row, each column, or one. */
#define REDUCTION(case_id, label, rows, columns, dim, count, function, python, \
                  reference, exact, wanted)                                    \
    {                                                                          \
        .id = case_id, .name = label ", " #rows " x " #columns,                \
        MATRIX(rows, columns, dim, 0, 1), .hob = function, .torch = python,    \
        .at = reference, .is_exact = exact, .out_count = count,                \
        .bytes = 4.0 * (rows) * (columns), .is_read = 1, .target = {           \
            .peer = wanted                                                     \
        }                                                                      \
    }

#define NORM(label, rows, columns, low, high, function, python, reference)     \
    {                                                                          \
        .id = "C12", .name = label " " #rows " x " #columns,                   \
        .in = {{F32, {rows, columns}, low, high},                              \
               {F32, {columns}, 0, 0},                                         \
               {F32, {columns}, 0, 0}},                                        \
        .n = {rows, columns, 1}, .hob = function, .torch = python,             \
        .all = reference, .tolerance = 1e-4, SAME(rows, columns),              \
        .target = {.peer = 1.8},                                               \
        .note = "the mean is a hundred times the deviation, so that sums of "  \
                "squares would show"                                           \
    }

static const struct bench_case cases[] = {
    ROWWISE("C11", "softmax", 4096, 1024, softmax, "torch.softmax(a, 1)",
            softmax_all, 2),
    ROWWISE("C11", "softmax", 128, 50257, softmax, "torch.softmax(a, 1)",
            softmax_all, 2),
    ROWWISE("C11", "log softmax", 4096, 1024, log_softmax,
            "torch.log_softmax(a, 1)", log_softmax_all, 2),
    ROWWISE("C11", "log softmax", 128, 50257, log_softmax,
            "torch.log_softmax(a, 1)", log_softmax_all, 2),
    {.id = "C11",
     .name = "softmax 7 x 33",
     MATRIX(7, 33, 1, 0, 0),
     .hob = softmax,
     .all = softmax_all,
     SAME(7, 33),
     .is_smoke_only = 1},

    NORM("layer norm", 4096, 1024, 29, 31, layer_norm,
         "F.layer_norm(a, (1024,), b, c, 1e-5)", layer_norm_all),
    NORM("rms norm", 4096, 1024, 0, 0, rms_norm,
         "a * torch.rsqrt((a * a).mean(1, True) + 1e-5) * b", rms_norm_all),
    {.id = "C12",
     .name = "layer norm 5 x 100",
     .in = {{F32, {5, 100}, 1000, 1001},
            {F32, {100}, 0, 0},
            {F32, {100}, 0, 0}},
     .n = {5, 100, 1},
     .hob = layer_norm,
     .all = layer_norm_all,
     .tolerance = 1e-4,
     SAME(5, 100),
     .is_smoke_only = 1},

    REDUCTION("C13", "sum of rows", 4096, 4096, 1, 4096, sum, "torch.sum(a, 1)",
              sum_at, 0, 1),
    REDUCTION("C13", "sum of columns", 4096, 4096, 0, 4096, sum,
              "torch.sum(a, 0)", sum_at, 0, 3),
    REDUCTION("C13", "sum of all", 4096, 4096, 2, 1, sum, "torch.sum(a)",
              sum_at, 0, 1),
    REDUCTION("C13", "max of rows", 4096, 4096, 1, 4096, max,
              "torch.amax(a, 1)", max_at, 1, 1),
    REDUCTION("C13", "max of columns", 4096, 4096, 0, 4096, max,
              "torch.amax(a, 0)", max_at, 1, 3),
    REDUCTION("C13", "max of all", 4096, 4096, 2, 1, max, "torch.amax(a)",
              max_at, 1, 1),
    {.id = "C13",
     .name = "sum of columns, 65 x 33",
     MATRIX(65, 33, 0, 0, 1),
     .hob = sum,
     .at = sum_at,
     .out_count = 33,
     .is_smoke_only = 1},

    REDUCTION("C14", "argmax of rows", 4096, 4096, 1, 4096, argmax,
              "torch.argmax(a, 1)", argmax_at, 1, 5),
    REDUCTION("C14", "argmax of columns", 4096, 4096, 0, 4096, argmax,
              "torch.argmax(a, 0)", argmax_at, 1, 20),
    {.id = "C14",
     .name = "cumsum along rows, 4096 x 4096",
     MATRIX(4096, 4096, 1, 0, 1),
     .hob = cumsum,
     .torch = "torch.cumsum(a, 1)",
     .all = cumsum_all,
     SAME(4096, 4096),
     .target = {.peer = 5}},
    {.id = "C14",
     .name = "cumsum along columns, 4096 x 4096",
     MATRIX(4096, 4096, 0, 0, 1),
     .hob = cumsum,
     .torch = "torch.cumsum(a, 0)",
     .all = cumsum_all,
     SAME(4096, 4096),
     .run_seconds = 0.3,
     .target = {.peer = 20}},
    {.id = "C14",
     .name = "topk, 100 of 1e6",
     .in = {{F32, {1, 1000000}, 0, 0}},
     .n = {1, 1000000, 1, 100},
     .hob = topk,
     .torch = "torch.topk(a, 100, 1)",
     .all = topk_all,
     .is_exact = 1,
     .out_count = 100,
     .bytes = 4e6,
     .is_read = 1,
     .target = {.peer = 1}},
    {.id = "C14",
     .name = "topk, 5 of 1024 in 4096 rows",
     .in = {{F32, {4096, 1024}, 0, 0}},
     .n = {4096, 1024, 1, 5},
     .hob = topk,
     .torch = "torch.topk(a, 5, 1)",
     .all = topk_all,
     .is_exact = 1,
     .out_count = 5 * 4096,
     .bytes = 4.0 * 4096 * 1024,
     .is_read = 1,
     .target = {.peer = 1}},
    {.id = "C14",
     .name = "sort 1e6",
     MATRIX(1, 1000000, 1, 0, 0),
     .hob = sort,
     .torch = "torch.sort(a, 1)",
     .all = sort_all,
     .is_exact = 1,
     .out_count = 1000000,
     .target = {.peer = 1.5}},
    {.id = "C14",
     .name = "argmax of columns, 65 x 33",
     MATRIX(65, 33, 0, 0, 1),
     .hob = argmax,
     .at = argmax_at,
     .is_exact = 1,
     .out_count = 33,
     .is_smoke_only = 1},
    {.id = "C14",
     .name = "cumsum along columns, 65 x 33",
     MATRIX(65, 33, 0, 0, 1),
     .hob = cumsum,
     .all = cumsum_all,
     SAME(65, 33),
     .is_smoke_only = 1},
    {.id = "C14",
     .name = "topk, 5 of 100 in 7 rows",
     .in = {{F32, {7, 100}, 0, 0}},
     .n = {7, 100, 1, 5},
     .hob = topk,
     .all = topk_all,
     .is_exact = 1,
     .out_count = 35,
     .is_smoke_only = 1},
    {.id = "C14",
     .name = "sort 1000",
     MATRIX(1, 1000, 1, 0, 0),
     .hob = sort,
     .all = sort_all,
     .is_exact = 1,
     .out_count = 1000,
     .is_smoke_only = 1},
};

const struct bench_family bench_reduce = {cases,
                                          sizeof(cases) / sizeof(cases[0])};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - cumsum, cumprod, cummax and cummin. Results are in row-major order,
 * so the input is read in its logical order too. Floats run in f64, integers
 * modulo 2^64.
 */
#include "move.h"
#include "reduce.h"

#include <math.h>
#include <string.h>

enum {
    CHUNK = FLEX_FOLD_BLOCK / 2,
    /* Rows of float sums, which are gone through at once: one has to wait for
     * each of its additions. Memory likes one row at a time better. */
    TOGETHER = 4
};

struct scan_run {
    flex_scan_fn scan;
    flex_scan_rows_fn rows;
    flex_cast_fn load;  /* f16, bf16 to f32, or NULL */
    flex_cast_fn store; /* back */
    struct flex_loop in;
    char *out;
    uint64_t identity; /* an accumulator's first value */
    int64_t n;         /* along the dimension */
    int64_t inner;     /* elements of the dimensions after it */
    int64_t together;  /* rows to go through at once */
    const struct flex_move_kernels *past; /* NULL: not past the caches */
    uint32_t size;
};

/* A chunk of results: in f32, and as they are stored. */
struct results {
    _Alignas(FLEX_ALIGN) float single[CHUNK];
    _Alignas(FLEX_ALIGN) unsigned char stored[CHUNK * 8];
};

/* Where results for OUT are computed: in place, or in a buffer first. */
static void *result_at(const struct scan_run *run, char *out,
                       struct results *results)
{
    if (run->store)
        return results->single;
    return run->past ? (void *)results->stored : (void *)out;
}

/* Bring N of them, from result_at(), to OUT. */
static void put_results(const struct scan_run *run, char *out,
                        struct results *results, int64_t n)
{
    void *stored = run->past ? (void *)results->stored : (void *)out;

    if (run->store)
        run->store(stored, results->single, n);
    if (run->past)
        run->past->stream(out, stored, n * run->size);
}

/* ROWS rows from FIRST on, chunk by chunk; more than one are dense and need no
 * conversion. */
static void scan_rows(const struct scan_run *run, int64_t first, int64_t rows,
                      struct flex_fold_buffer *buffer, struct results *results)
{
    uint64_t carry[TOGETHER];

    flex_copy_strided(carry, 1, &run->identity, 0, rows, sizeof(carry[0]));
    for (int64_t i = 0; i < run->n; i += CHUNK) {
        const int64_t n = run->n - i < CHUNK ? run->n - i : CHUNK;
        const int64_t at = first * run->n + i;
        char *out = run->out + at * run->size;

        run->scan(result_at(run, out, results),
                  flex_fold_fetch(&run->in, run->load, at, n, buffer), carry,
                  run->n, rows, n);
        if (rows == 1)
            put_results(run, out, results, n);
    }
}

static void rows_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct scan_run *run = context;
    const int64_t most = run->together;
    struct flex_fold_buffer buffer;
    struct results results;

    (void)worker;
    for (int64_t row = first; row < last; row += most)
        scan_rows(run, row, last - row < most ? last - row : most, &buffer,
                  &results);
    if (run->past)
        run->past->fence();
}

/* Pieces count chunks of the inner dimension: all of those of the first
 * outer index, then of the second and so on. */
static void columns_piece(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    struct scan_run *run = context;
    struct flex_fold_buffer buffer;
    struct results results;
    uint64_t acc[CHUNK];
    int64_t chunks = (run->inner + CHUNK - 1) / CHUNK;

    (void)worker;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t column = piece % chunks * CHUNK;
        int64_t left = run->inner - column;
        int64_t n = left < CHUNK ? left : CHUNK;

        flex_copy_strided(acc, 1, &run->identity, 0, n, sizeof(acc[0]));
        for (int64_t k = 0; k < run->n; k++) {
            int64_t at = (piece / chunks * run->n + k) * run->inner + column;
            char *out = run->out + at * run->size;

            run->rows(result_at(run, out, &results),
                      flex_fold_fetch(&run->in, run->load, at, n, &buffer), acc,
                      n);
            put_results(run, out, &results, n);
        }
    }
    if (run->past)
        run->past->fence();
}

/* What an accumulator of DTYPE begins with. */
static uint64_t identity_of(enum flex_scan scan, uint32_t dtype)
{
    static const double of_floats[FLEX_SCAN_COUNT_] = {0, 1, -(double)INFINITY,
                                                       (double)INFINITY};
    const uint32_t mask = HOB_DTYPE_BIT(dtype);
    const uint64_t top = UINT64_C(1) << (8 * hob_dtype_size(dtype) - 1);
    uint64_t bits;

    if (mask & HOB_MASK_FLOAT) {
        memcpy(&bits, &of_floats[scan], sizeof(bits));
        return bits;
    }
    if (scan == FLEX_SCAN_SUM || scan == FLEX_SCAN_PROD)
        return scan == FLEX_SCAN_PROD;
    if (mask & HOB_MASK_UNSIGNED)
        return scan == FLEX_SCAN_MAX ? 0 : 2 * top - 1;
    return scan == FLEX_SCAN_MAX ? ~top + 1 : top - 1;
}

static hob_status run_scan(struct flex_device *device, struct hob_call *call,
                           enum flex_scan scan)
{
    const struct flex_kernels *kernels = device->kernels;
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t dim = flex_dim(flex_arg_i64(call, 1), x->rank);
    uint32_t computed;
    int64_t pieces, grain;
    struct scan_run run = {.inner = 1};

    run.load = kernels->load_f32[x->dtype];
    run.store = kernels->store_f32[x->dtype];
    computed = run.load ? HOB_DTYPE_F32 : x->dtype;
    run.scan = kernels->scan[scan][computed];
    run.rows = kernels->scan_rows[scan][computed];
    run.identity = identity_of(scan, computed);
    flex_loop_init(&run.in, x);
    run.out = hob_ret_view(call, 0)->data;
    run.size = hob_dtype_size(x->dtype);
    run.n = x->shape[dim];
    for (uint32_t i = dim + 1; i < x->rank; i++)
        run.inner *= x->shape[i];
    run.together = 1;
    if (!run.load && flex_loop_dense(&run.in) &&
        (HOB_DTYPE_BIT(computed) & HOB_MASK_FLOAT) &&
        (scan == FLEX_SCAN_SUM || scan == FLEX_SCAN_PROD))
        run.together = TOGETHER;
    if (run.in.count == 0)
        return HOB_OK;
    /* Rows that go together are written where they belong. */
    if ((run.inner > 1 || run.together == 1) &&
        flex_goes_past(device, (uint64_t)run.in.count * run.size))
        run.past = flex_move_kernels(device);
    pieces = run.in.count / run.n / run.inner;
    grain = FLEX_GRAIN_CHEAP / 4 / run.n; /* each waits for the one before */
    if (run.inner > 1) {
        pieces *= (run.inner + CHUNK - 1) / CHUNK;
        grain /= run.inner < CHUNK ? run.inner : CHUNK;
    }
    flex_parallel(device, pieces, grain < 1 ? 1 : grain,
                  run.inner > 1 ? columns_piece : rows_piece, &run);
    return HOB_OK;
}

static hob_status execute_cumsum(void *device, struct hob_call *call)
{
    return run_scan(device, call, FLEX_SCAN_SUM);
}

static hob_status execute_cumprod(void *device, struct hob_call *call)
{
    return run_scan(device, call, FLEX_SCAN_PROD);
}

static hob_status execute_cummax(void *device, struct hob_call *call)
{
    return run_scan(device, call, FLEX_SCAN_MAX);
}

static hob_status execute_cummin(void *device, struct hob_call *call)
{
    return run_scan(device, call, FLEX_SCAN_MIN);
}

static const uint32_t num_mask[] = {HOB_MASK_NUM};

static const struct hob_entry entries[] = {
    {
        .op = "cumsum",
        .signature = "(x: Num, dim: i64) -> x",
        .dtypes = num_mask,
        .dtype_count = 1,
        .execute = execute_cumsum,
    },
    {
        .op = "cumprod",
        .signature = "(x: Num, dim: i64) -> x",
        .dtypes = num_mask,
        .dtype_count = 1,
        .execute = execute_cumprod,
    },
    {
        .op = "cummax",
        .signature = "(x: Num, dim: i64) -> x",
        .dtypes = num_mask,
        .dtype_count = 1,
        .execute = execute_cummax,
    },
    {
        .op = "cummin",
        .signature = "(x: Num, dim: i64) -> x",
        .dtypes = num_mask,
        .dtype_count = 1,
        .execute = execute_cummin,
    },
};

const struct flex_entries flex_scan_entries = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
};

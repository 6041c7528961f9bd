/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_blas.c - OpenBLAS, opened at run time.
 *
 * Without the device option "gemm" it is used where flex's own kernels are
 * not known to be as good: below x86-64-v3 and on other processors. Measured
 * on Zen 5 (one thread, sgemm of 512, GFLOP/s): AVX-512 249 against 234 of
 * OpenBLAS's best kernel set, and OPENBLAS_CORETYPE has no say in them.
 *
 * The library is one a process. It is set to one thread for good; flex
 * splits the work over the host's threads, by size.
 */
#include "gemm.h"

#include "options.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* From cblas.h; the plugin must not link the library, so no header either. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *,
                         int, const float *, int, float, float *, int);
typedef void (*dgemm_fn)(int, int, int, int, int, int, double, const double *,
                         int, const double *, int, double, double *, int);

struct flex_openblas {
    sgemm_fn sgemm;
    dgemm_fn dgemm;
    const char *core_name;
};

/* log_write's severities. */
enum { SEVERITY_DEBUG = 0, SEVERITY_WARNING = 2 };

enum { BLOCK_ROWS = 128, LARGE_ROWS = 1024, LARGE_BLOCK_ROWS = 256 };

/* Object pointers to function pointers, as POSIX allows. */
static void *find(void *library, const char *name)
{
    return dlsym(library, name);
}

/* process_shared's make: once a process, never freed. */
static void *make_library(void)
{
    void (*set_threads)(int);
    char *(*get_core_name)(void);
    struct flex_openblas *blas = calloc(1, sizeof(*blas));
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);

    if (!library || !blas)
        goto out;
    *(void **)&blas->sgemm = find(library, "cblas_sgemm");
    *(void **)&blas->dgemm = find(library, "cblas_dgemm");
    *(void **)&set_threads = find(library, "openblas_set_num_threads");
    *(void **)&get_core_name = find(library, "openblas_get_corename");
    if (!blas->sgemm || !blas->dgemm || !set_threads)
        goto out;
    set_threads(1);
    blas->core_name = get_core_name ? get_core_name() : "unknown";
    return blas;
out:
    /* A library that was opened stays: others may hold it. */
    if (blas)
        memset(blas, 0, sizeof(*blas));
    return blas;
}

const struct flex_openblas *flex_openblas_find(struct flex_device *device)
{
    const struct hob_host *host = device->host;
    const struct flex_openblas *blas;

    if (device->gemm == FLEX_GEMM_OWN ||
        (device->gemm == FLEX_GEMM_AUTO && device->isa >= FLEX_ISA_V3) ||
        !host->process_shared)
        return NULL;
    blas = host->process_shared("openblas", make_library);
    if (blas && blas->sgemm) {
        if (host->log_write)
            host->log_write(host, SEVERITY_DEBUG,
                            "flex: matrix products by OpenBLAS, kernels %s",
                            blas->core_name);
        return blas;
    }
    if (host->log_write)
        host->log_write(host, SEVERITY_WARNING,
                        "flex: libopenblas.so.0 cannot be opened; matrix "
                        "products use flex's own kernels (install "
                        "libopenblas0-pthread to speed them up)");
    return NULL;
}

/* A leading dimension and transposition for strides ROW and COLUMN of a
 * ROWS x COLUMNS operand; 0 if there is none. */
static int leading(int64_t row, int64_t column, int64_t rows, int64_t columns,
                   int *out_trans)
{
    int64_t ld = 0;

    *out_trans = NO_TRANS;
    if (column == 1 && (row >= columns || rows == 1))
        ld = rows == 1 ? columns : row;
    else if (row == 1 && (column >= rows || columns == 1)) {
        *out_trans = TRANS;
        ld = columns == 1 ? rows : column;
    }
    return ld <= INT32_MAX ? (int)ld : 0;
}

int flex_openblas_serves(const struct flex_openblas *library,
                         const struct flex_gemm *gemm)
{
    int trans;

    return library && gemm->k > 0 &&
           (gemm->dtype == HOB_DTYPE_F32 || gemm->dtype == HOB_DTYPE_F64) &&
           gemm->m <= INT32_MAX && gemm->n <= INT32_MAX &&
           gemm->k <= INT32_MAX && gemm->ldc <= INT32_MAX &&
           leading(gemm->a_row, gemm->a_column, gemm->m, gemm->k, &trans) &&
           leading(gemm->b_row, gemm->b_column, gemm->k, gemm->n, &trans);
}

struct blas_job {
    const struct flex_openblas *library;
    const struct flex_gemm *gemm;
    int is_rows; /* blocks of rows, else of columns */
    int64_t block;
};

static void epilogue(const struct flex_gemm *gemm, char *c, int64_t row,
                     int64_t rows, int64_t column, int64_t columns)
{
    const int is_f32 = gemm->dtype == HOB_DTYPE_F32;
    const float *bias32 = gemm->bias;
    const double *bias64 = gemm->bias;

    for (int64_t i = 0; i < rows && (gemm->bias || gemm->relu); i++) {
        float *c32 = (float *)(void *)c + i * gemm->ldc;
        double *c64 = (double *)(void *)c + i * gemm->ldc;
        for (int64_t j = 0; j < columns; j++) {
            if (is_f32) {
                c32[j] += bias32 ? bias32[column + j] : 0;
                c32[j] = gemm->relu && c32[j] <= 0 ? 0 : c32[j];
            } else {
                c64[j] += bias64 ? bias64[column + j] : 0;
                c64[j] = gemm->relu && c64[j] <= 0 ? 0 : c64[j];
            }
        }
    }
    if (gemm->epilogue)
        gemm->epilogue(gemm->epilogue_context, c, row, rows, column, columns,
                       gemm->ldc);
}

static void blas_block(const struct blas_job *job, int64_t index)
{
    const struct flex_gemm *gemm = job->gemm;
    const int size = (int)hob_dtype_size(gemm->dtype);
    const int64_t total = job->is_rows ? gemm->m : gemm->n;
    const int64_t first = index * job->block;
    const int64_t count =
        total - first < job->block ? total - first : job->block;
    const int64_t row = job->is_rows ? first : 0;
    const int64_t column = job->is_rows ? 0 : first;
    const int m = (int)(job->is_rows ? count : gemm->m);
    const int n = (int)(job->is_rows ? gemm->n : count);
    int trans_a, trans_b;
    const int lda =
        leading(gemm->a_row, gemm->a_column, gemm->m, gemm->k, &trans_a);
    const int ldb =
        leading(gemm->b_row, gemm->b_column, gemm->k, gemm->n, &trans_b);
    const char *a = (const char *)gemm->a + row * gemm->a_row * size;
    const char *b = (const char *)gemm->b + column * gemm->b_column * size;
    char *c = (char *)gemm->c + (row * gemm->ldc + column) * size;

    if (gemm->dtype == HOB_DTYPE_F32)
        job->library->sgemm(
            ROW_MAJOR, trans_a, trans_b, m, n, (int)gemm->k, (float)gemm->alpha,
            (const float *)(const void *)a, lda, (const float *)(const void *)b,
            ldb, (float)gemm->beta, (float *)(void *)c, (int)gemm->ldc);
    else
        job->library->dgemm(ROW_MAJOR, trans_a, trans_b, m, n, (int)gemm->k,
                            gemm->alpha, (const double *)(const void *)a, lda,
                            (const double *)(const void *)b, ldb, gemm->beta,
                            (double *)(void *)c, (int)gemm->ldc);
    epilogue(gemm, c, row, m, column, n);
}

static void blas_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    (void)worker;
    for (int64_t i = first; i < last; i++)
        blas_block(context, i);
}

void flex_openblas_run(struct flex_device *device,
                       const struct flex_openblas *library,
                       const struct flex_gemm *gemm)
{
    struct blas_job job = {.library = library, .gemm = gemm};
    const double flops =
        2.0 * (double)gemm->m * (double)gemm->n * (double)gemm->k;
    int64_t longer;

    job.is_rows = gemm->m >= gemm->n;
    longer = job.is_rows ? gemm->m : gemm->n;
    job.block = longer >= LARGE_ROWS ? LARGE_BLOCK_ROWS : BLOCK_ROWS;
    if (flops < 1e6)
        job.block = longer;
    flex_parallel(device, (longer + job.block - 1) / job.block, 1, blas_range,
                  &job);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.c - flex_gemm(): checks, dtypes that are computed in another type, and
 * the choice between the ways of gemm.h.
 */
#include "gemm.h"

#include <string.h>

/* A matrix being converted to the type it is computed in, or back. */
struct conversion {
    const char *in;
    char *out;
    int64_t in_row, in_column; /* in elements */
    int64_t columns, out_row;  /* columns of out are contiguous */
    uint32_t in_size, out_size;
    flex_cast_fn cast;
};

static void convert_range(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    const struct conversion *job = context;
    char block[FLEX_BLOCK * 4];

    (void)worker;
    for (int64_t i = first; i < last; i++)
        for (int64_t j = 0; j < job->columns; j += FLEX_BLOCK) {
            int64_t count =
                job->columns - j < FLEX_BLOCK ? job->columns - j : FLEX_BLOCK;
            const char *in =
                job->in + (i * job->in_row + j * job->in_column) * job->in_size;
            if (job->in_column != 1) {
                flex_copy_strided(block, 1, in, job->in_column, count,
                                  job->in_size);
                in = block;
            }
            job->cast(job->out + (i * job->out_row + j) * job->out_size, in,
                      count);
        }
}

static void convert(struct flex_device *device, struct conversion *job,
                    int64_t rows)
{
    flex_parallel(device, rows, 1 + FLEX_GRAIN_CHEAP / (job->columns + 1),
                  convert_range, job);
}

/* The casts between DTYPE, which is not native, and what it is computed in. */
static void find_casts(const struct flex_kernels *kernels, uint32_t dtype,
                       flex_cast_fn *out_load, flex_cast_fn *out_store)
{
    if (dtype == HOB_DTYPE_F16 || dtype == HOB_DTYPE_BF16) {
        *out_load = kernels->load_f32[dtype];
        *out_store = kernels->store_f32[dtype];
    } else {
        *out_load = kernels->cast[HOB_DTYPE_U32][dtype];
        *out_store = kernels->cast[dtype][HOB_DTYPE_U32];
    }
}

hob_status flex_gemm_in_scratch(struct flex_device *device,
                                const struct flex_gemm *gemm,
                                flex_gemm_run_fn run)
{
    const uint64_t bytes =
        (uint64_t)(gemm->m * gemm->n) * hob_dtype_size(gemm->dtype);
    struct flex_gemm whole = *gemm;
    hob_status st;

    whole.c = flex_scratch_take(device, bytes);
    whole.ldc = whole.n;
    if (!whole.c)
        return HOB_ERR_MEMORY;
    st = run(device, &whole);
    flex_scratch_give(device, whole.c, bytes);
    return st;
}

static hob_status run_native(struct flex_device *device,
                             const struct flex_gemm *gemm);

/* C is NULL: of the ways for which it has memory, the one that gives the same
 * bits. */
static hob_status run_without(struct flex_device *device,
                              const struct flex_gemm *gemm)
{
    const struct flex_gemm_kernels *kernels =
        &device->blas->kernels[flex_gemm_type_of(gemm->dtype)];

    if (flex_gemm_is_skinny(gemm) ||
        flex_openblas_serves(device->blas->library, gemm))
        return flex_gemm_in_scratch(device, gemm, run_native);
    if (!flex_gemm_has_strips(gemm, kernels))
        return flex_gemm_blocked(device, gemm);
    flex_gemm_strips(device, gemm, kernels);
    return HOB_OK;
}

static hob_status run_native(struct flex_device *device,
                             const struct flex_gemm *gemm)
{
    const struct flex_gemm_kernels *kernels =
        &device->blas->kernels[flex_gemm_type_of(gemm->dtype)];

    if (!gemm->c)
        return run_without(device, gemm);
    if (flex_gemm_is_skinny(gemm))
        return flex_gemm_skinny(device, gemm);
    if (flex_openblas_serves(device->blas->library, gemm)) {
        flex_openblas_run(device, device->blas->library, gemm);
        return HOB_OK;
    }
    if (flex_gemm_is_small(gemm, kernels)) {
        flex_gemm_small(gemm, kernels);
        return HOB_OK;
    }
    return flex_gemm_blocked(device, gemm);
}

/* MATRIX, of ROWS by COLUMNS that lie *ROW and *COLUMN apart, to JOB's out, and
 * how they lie there: by columns if they did before. */
static void convert_operand(struct flex_device *device, struct conversion *job,
                            const void *matrix, int64_t rows, int64_t columns,
                            int64_t *row, int64_t *column)
{
    const int is_turned = *row == 1 && *column != 1;

    job->in = matrix;
    job->in_row = is_turned ? *column : *row;
    job->in_column = is_turned ? 1 : *column;
    job->columns = job->out_row = is_turned ? rows : columns;
    convert(device, job, is_turned ? columns : rows);
    *row = is_turned ? 1 : columns;
    *column = is_turned ? rows : 1;
}

/*
 * f16, bf16 and narrow integers: A, B and the bias are converted as wholes
 * (which costs little beside the product), C at the end, rounded once.
 */
static hob_status run_converted(struct flex_device *device,
                                const struct flex_gemm *gemm)
{
    const uint32_t size = hob_dtype_size(gemm->dtype);
    const int is_half = hob_dtype_size(gemm->dtype) == 2 &&
                        flex_gemm_type_of(gemm->dtype) == FLEX_GEMM_F32;
    const uint64_t a_count = (uint64_t)(gemm->m * gemm->k);
    const uint64_t b_count = (uint64_t)(gemm->k * gemm->n);
    const uint64_t c_count = (uint64_t)(gemm->m * gemm->n);
    const uint64_t bytes =
        4 * (a_count + b_count + c_count + (uint64_t)gemm->n);
    char *scratch = flex_scratch_take(device, bytes);
    struct flex_gemm wide = *gemm;
    struct conversion job = {.in_size = size, .out_size = 4};
    flex_cast_fn load, store;
    hob_status st;

    if (!scratch)
        return HOB_ERR_MEMORY;
    find_casts(device->kernels, gemm->dtype, &load, &store);
    wide.dtype = is_half ? HOB_DTYPE_F32 : HOB_DTYPE_U32;
    wide.epilogue = NULL;
    job.cast = load;
    job.out = scratch;
    convert_operand(device, &job, gemm->a, gemm->m, gemm->k, &wide.a_row,
                    &wide.a_column);
    wide.a = job.out;
    job.out += 4 * a_count;
    convert_operand(device, &job, gemm->b, gemm->k, gemm->n, &wide.b_row,
                    &wide.b_column);
    wide.b = job.out;
    job.out += 4 * b_count;
    wide.c = job.out;
    wide.ldc = gemm->n;
    job.in_column = 1;
    job.columns = job.out_row = gemm->n;
    if (gemm->beta != 0) {
        job.in = gemm->c;
        job.in_row = gemm->ldc;
        convert(device, &job, gemm->m);
    }
    if (gemm->bias) {
        job.in = gemm->bias;
        job.out += 4 * c_count;
        convert(device, &job, 1);
        wide.bias = job.out;
    }

    st = run_native(device, &wide);
    if (!st) {
        job = (struct conversion){.in = wide.c,
                                  .out = gemm->c,
                                  .in_row = gemm->n,
                                  .in_column = 1,
                                  .columns = gemm->n,
                                  .out_row = gemm->ldc,
                                  .in_size = 4,
                                  .out_size = size,
                                  .cast = store};
        convert(device, &job, gemm->m);
        if (gemm->epilogue)
            gemm->epilogue(gemm->epilogue_context, gemm->c, 0, gemm->m, 0,
                           gemm->n, gemm->ldc);
    }
    flex_scratch_give(device, scratch, bytes);
    return st;
}

/* c *= beta, for the rare beta that is neither 0 nor 1. */
static void scale(const struct flex_gemm *gemm)
{
    for (int64_t i = 0; i < gemm->m; i++)
        for (int64_t j = 0; j < gemm->n; j++) {
            if (gemm->dtype == HOB_DTYPE_F32)
                ((float *)gemm->c)[i * gemm->ldc + j] *= (float)gemm->beta;
            else
                ((double *)gemm->c)[i * gemm->ldc + j] *= gemm->beta;
        }
}

hob_status flex_gemm(struct flex_device *device, const struct flex_gemm *gemm)
{
    const int is_float =
        gemm->dtype == HOB_DTYPE_F32 || gemm->dtype == HOB_DTYPE_F64;
    struct flex_gemm changed;

    if (gemm->struct_size < sizeof(*gemm) || gemm->m < 0 || gemm->n < 0 ||
        gemm->k < 0 || (gemm->c && gemm->ldc < gemm->n) ||
        (!gemm->c && (!gemm->epilogue || gemm->beta != 0 || !is_float)) ||
        !(HOB_MASK_NUM & HOB_DTYPE_BIT(gemm->dtype)) ||
        (!is_float && (gemm->beta != 0 && gemm->beta != 1)))
        return HOB_ERR_ARGUMENT;
    if (gemm->m == 0 || gemm->n == 0)
        return HOB_OK;
    if (gemm->beta != 0 && gemm->beta != 1) {
        scale(gemm);
        changed = *gemm;
        changed.beta = 1;
        gemm = &changed;
    }
    return flex_gemm_native(gemm->dtype) ? run_native(device, gemm)
                                         : run_converted(device, gemm);
}

hob_status flex_blas_open(struct flex_device *device)
{
    struct flex_blas *blas =
        device->host->mem_alloc(device->host, sizeof(*blas));

    if (!blas)
        return HOB_ERR_MEMORY;
    blas->kernels = FLEX_BY_ISA(device->isa, flex_gemm_kernels);
    device->blas = blas;
    blas->library = flex_openblas_find(device);
    return HOB_OK;
}

void flex_blas_close(struct flex_device *device)
{
    if (device->blas)
        device->host->mem_free(device->host, device->blas);
    device->blas = NULL;
}

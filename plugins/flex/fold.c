/* SPDX-License-Identifier: Apache-2.0 */
#include "fold.h"

#include <string.h>

void flex_reduction_init(struct flex_reduction *reduction,
                         const struct flex_kernels *kernels,
                         enum flex_fold kind, int mean, uint32_t dtype,
                         uint32_t out_dtype)
{
    uint32_t computed = kernels->load_f32[dtype] ? HOB_DTYPE_F32 : dtype;
    int is_float = (HOB_DTYPE_BIT(computed) & HOB_MASK_FLOAT) != 0;

    memset(reduction, 0, sizeof(*reduction));
    reduction->kind = kind;
    reduction->mean = mean;
    reduction->dtype = dtype;
    reduction->out_dtype = out_dtype;
    reduction->load = kernels->load_f32[dtype];
    reduction->fold = kernels->fold[kind][computed];
    reduction->rows = kernels->fold_rows[kind][computed];
    if (kind == FLEX_FOLD_ANY || kind == FLEX_FOLD_ALL)
        reduction->acc_dtype = HOB_DTYPE_BOOL;
    else if (kind == FLEX_FOLD_MAX || kind == FLEX_FOLD_MIN)
        reduction->acc_dtype = computed;
    else
        reduction->acc_dtype = is_float ? HOB_DTYPE_F64 : HOB_DTYPE_U64;
    reduction->acc_size = hob_dtype_size(reduction->acc_dtype);
    reduction->combine = kernels->fold_rows[kind][reduction->acc_dtype];
    reduction->join = kernels->fold[kind][reduction->acc_dtype];
    reduction->finish = kernels->cast[out_dtype][reduction->acc_dtype];
}

void flex_reduction_identity(const struct flex_reduction *reduction,
                             union flex_cell *out)
{
    out->u64 = 0;
    if (reduction->kind == FLEX_FOLD_PROD) {
        if (reduction->acc_dtype == HOB_DTYPE_F64)
            out->f64 = 1;
        else
            out->u64 = 1;
    } else if (reduction->kind == FLEX_FOLD_ALL) {
        out->bytes[0] = 1;
    }
}

static void mean_cells(const struct flex_reduction *reduction, void *cells,
                       int64_t count, int64_t n)
{
    if (reduction->acc_dtype == HOB_DTYPE_F64) {
        double *acc = cells;

        for (int64_t i = 0; i < count; i++)
            acc[i] /= (double)n;
    } else if (HOB_DTYPE_BIT(reduction->dtype) & HOB_MASK_SIGNED) {
        int64_t *acc = cells;

        for (int64_t i = 0; i < count; i++)
            acc[i] /= n;
    } else {
        uint64_t *acc = cells;

        for (int64_t i = 0; i < count; i++)
            acc[i] /= (uint64_t)n;
    }
}

void flex_reduction_finish(const struct flex_reduction *reduction, void *out,
                           void *cells, int64_t count, int64_t n)
{
    if (reduction->mean && n > 0)
        mean_cells(reduction, cells, count, n);
    reduction->finish(out, cells, count);
}

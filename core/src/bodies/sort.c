/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.c - bodies of what follows from sort_with_indices.
 */
#include "bodies.h"
#include "util.h"

/* The first K along DIM. */
static hob_tensor *first_of(hob_scope *scope, hob_tensor *x, uint32_t axis,
                            int64_t k)
{
    int64_t starts[HOB_MAX_RANK] = {0}, ends[HOB_MAX_RANK];

    for (uint32_t i = 0; i < axis; i++)
        ends[i] = INT64_MAX;
    ends[axis] = k;
    return hob_slice(scope, x, starts, axis + 1, ends, axis + 1, NULL, 0);
}

hob_tensor *hob__body_sort(hob_scope *scope, hob_tensor *x, int64_t dim,
                           int descending)
{
    hob_tensor *values = NULL, *indices = NULL;
    int64_t count = hob_tensor_shape(x)[hob__part_axis(x, dim)];

    /* A failure shows in the values: they are the error tensor. */
    (void)hob_sort_with_indices(scope, x, dim, descending,
                                hob__part_index_dtype(count), &values,
                                &indices);
    return values;
}

hob_tensor *hob__body_argsort(hob_scope *scope, hob_tensor *x, int64_t dim,
                              int descending, hob_dtype index_dtype)
{
    hob_tensor *values = NULL, *indices = NULL;

    (void)hob_sort_with_indices(scope, x, dim, descending, index_dtype, &values,
                                &indices);
    return indices;
}

hob_status hob__body_topk_with_indices(hob_scope *scope, hob_tensor *x,
                                       int64_t k, int64_t dim,
                                       hob_dtype index_dtype,
                                       hob_tensor **out_0, hob_tensor **out_1)
{
    uint32_t axis = hob__part_axis(x, dim);
    hob_tensor *values = NULL, *indices = NULL;
    hob_status st =
        hob_sort_with_indices(scope, x, dim, 1, index_dtype, &values, &indices);

    if (st)
        return st;
    *out_0 = first_of(scope, values, axis, k);
    *out_1 = first_of(scope, indices, axis, k);
    return hob_scope_host(scope)->scope_status(scope);
}

hob_tensor *hob__body_topk(hob_scope *scope, hob_tensor *x, int64_t k,
                           int64_t dim)
{
    return first_of(scope, hob_sort(scope, x, dim, 1), hob__part_axis(x, dim),
                    k);
}

hob_tensor *hob__body_argtopk(hob_scope *scope, hob_tensor *x, int64_t k,
                              int64_t dim, hob_dtype index_dtype)
{
    return first_of(scope, hob_argsort(scope, x, dim, 1, index_dtype),
                    hob__part_axis(x, dim), k);
}

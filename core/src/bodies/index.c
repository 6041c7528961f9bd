/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - bodies of the ops that pick and add whole slices.
 */
#include "bodies.h"
#include "util.h"

#include <string.h>

/* INDICES [count] as positions along DIM for every place of x's others. */
static hob_tensor *spread_indices(hob_scope *scope, hob_tensor *x,
                                  hob_tensor *indices, int64_t dim)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    uint32_t axis = hob__part_axis(x, dim);
    int64_t shape[HOB_MAX_RANK], line[HOB_MAX_RANK];

    memcpy(shape, hob_tensor_shape(x), rank * sizeof(shape[0]));
    for (uint32_t i = 0; i < rank; i++)
        line[i] = 1;
    line[axis] = shape[axis] = hob_tensor_shape(indices)[0];
    return hob_expand(scope, hob_reshape(scope, indices, line, rank), shape,
                      rank);
}

hob_tensor *hob__body_select(hob_scope *scope, hob_tensor *x,
                             hob_tensor *indices, int64_t dim)
{
    return hob_gather(scope, x, spread_indices(scope, x, indices, dim), dim);
}

hob_tensor *hob__body_select_add(hob_scope *scope, hob_tensor *x,
                                 hob_tensor *indices, hob_tensor *value,
                                 int64_t dim)
{
    return hob_scatter_add(scope, x, spread_indices(scope, x, indices, dim),
                           value, dim);
}

hob_tensor *hob__body_embedding(hob_scope *scope, hob_tensor *weight,
                                hob_tensor *indices)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(indices);
    int64_t shape[HOB_MAX_RANK];
    hob_tensor *rows =
        hob_select(scope, weight, hob__part_flat(scope, indices), 0);

    memcpy(shape, hob_tensor_shape(indices), rank * sizeof(shape[0]));
    shape[rank] = hob_tensor_shape(weight)[1];
    return hob_reshape(scope, rows, shape, rank + 1);
}

hob_tensor *hob__body_embedding_backward(hob_scope *scope, hob_tensor *weight,
                                         hob_tensor *indices, hob_tensor *grad)
{
    hob_dtype dtype = hob_tensor_dtype(weight);
    hob_tensor *zeros;
    int64_t shape[2];

    /* Many rows may be added in one place: not in 11 or 8 bits. */
    grad = hob__part_up(scope, grad);
    zeros =
        hob__part_full(scope, grad, hob_tensor_shape(weight), 2, hob_i64(0));
    shape[0] = hob_tensor_count(indices);
    shape[1] = hob_tensor_shape(weight)[1];
    return hob__part_down(scope,
                          hob_select_add(scope, zeros,
                                         hob__part_flat(scope, indices),
                                         hob_reshape(scope, grad, shape, 2), 0),
                          dtype);
}

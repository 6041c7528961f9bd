/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c - bodies of the ops that put tensors together, and of linear.
 */
#include "bodies.h"
#include "util.h"

#include <string.h>

/* Written piece by piece into zeros. The infer function checked the sizes. */
hob_tensor *hob__body_cat(hob_scope *scope, hob_tensor *const *tensors,
                          uint32_t tensors_count, int64_t dim)
{
    hob_tensor *first = tensors[0], *y;
    uint32_t rank = (uint32_t)hob_tensor_rank(first);
    uint32_t axis = hob__part_axis(first, dim);
    int64_t shape[HOB_MAX_RANK], starts[HOB_MAX_RANK] = {0};
    int64_t ends[HOB_MAX_RANK];

    memcpy(shape, hob_tensor_shape(first), rank * sizeof(shape[0]));
    memcpy(ends, shape, rank * sizeof(shape[0]));
    for (uint32_t i = 1; i < tensors_count; i++)
        shape[axis] += hob_tensor_shape(tensors[i])[axis];
    y = hob__part_full(scope, first, shape, rank, hob_i64(0));
    for (uint32_t i = 0; i < tensors_count; i++) {
        ends[axis] = starts[axis] + hob_tensor_shape(tensors[i])[axis];
        y = hob_slice_assign(scope, hob_move(scope, y), tensors[i], starts,
                             rank, ends, rank, NULL, 0);
        starts[axis] = ends[axis];
    }
    return y;
}

hob_tensor *hob__body_stack(hob_scope *scope, hob_tensor *const *tensors,
                            uint32_t tensors_count, int64_t dim)
{
    const struct hob_host *host = hob_scope_host(scope);
    uint64_t bytes = (uint64_t)tensors_count * sizeof(*tensors);
    hob_tensor **rows = host->mem_alloc(host, bytes), *y;

    if (!rows)
        return host->scope_fail(scope, HOB_ERR_MEMORY,
                                "stack: no memory for a list of %u tensors",
                                (unsigned)tensors_count);
    /* Before the new dimension is there, a negative one counts one less. */
    for (uint32_t i = 0; i < tensors_count; i++)
        rows[i] = hob_unsqueeze(scope, tensors[i], dim);
    y = hob_cat(scope, rows, tensors_count, dim);
    host->mem_free(host, rows);
    return y;
}

/* As [before, 1, rest], so that a tensor of the greatest rank can grow too. */
hob_tensor *hob__body_repeat_dim(hob_scope *scope, hob_tensor *x, int64_t dim,
                                 int64_t times)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    uint32_t axis = hob__part_axis(x, dim);
    int64_t shape[HOB_MAX_RANK], folded[3];
    hob_tensor *y;

    memcpy(shape, hob_tensor_shape(x), rank * sizeof(shape[0]));
    folded[0] = hob__part_product(shape, axis);
    folded[1] = 1;
    folded[2] = hob__part_product(shape + axis, rank - axis);
    y = hob_reshape(scope, x, folded, 3);
    folded[1] = times;
    y = hob_expand(scope, y, folded, 3);
    shape[axis] *= times;
    return hob_reshape(scope, y, shape, rank);
}

hob_tensor *hob__body_linear(hob_scope *scope, hob_tensor *x,
                             hob_tensor *weight, hob_tensor *bias)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t shape[HOB_MAX_RANK], rows[2];
    hob_tensor *y;

    memcpy(shape, hob_tensor_shape(x), rank * sizeof(shape[0]));
    rows[0] = hob__part_product(shape, rank - 1);
    rows[1] = shape[rank - 1];
    y = hob_matmul(scope, hob_reshape(scope, x, rows, 2), weight);
    if (bias)
        y = hob_add(scope, y, bias);
    shape[rank - 1] = hob_tensor_shape(weight)[1];
    return hob_reshape(scope, y, shape, rank);
}

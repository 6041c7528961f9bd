/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - bodies of the ops whose results are a list.
 */
#include "bodies.h"
#include "util.h"

static hob_status pieces(hob_scope *scope, hob_tensor *x, uint32_t axis,
                         int64_t size, hob_tensor **out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] =
            hob__part_range(scope, x, axis, i * size, (i + INT64_C(1)) * size);
    return hob_scope_host(scope)->scope_status(scope);
}

hob_status hob__body_split(hob_scope *scope, hob_tensor *x, int64_t size,
                           int64_t dim, hob_tensor **out, uint32_t out_count)
{
    return pieces(scope, x, hob__part_axis(x, dim), size, out, out_count);
}

hob_status hob__body_chunk(hob_scope *scope, hob_tensor *x, int64_t chunks,
                           int64_t dim, hob_tensor **out, uint32_t out_count)
{
    uint32_t axis = hob__part_axis(x, dim);
    int64_t whole = hob_tensor_shape(x)[axis];

    return pieces(scope, x, axis, whole ? (whole - 1) / chunks + 1 : 1, out,
                  out_count);
}

hob_status hob__body_split_sizes(hob_scope *scope, hob_tensor *x,
                                 const int64_t *sizes, uint32_t sizes_count,
                                 int64_t dim, hob_tensor **out,
                                 uint32_t out_count)
{
    uint32_t axis = hob__part_axis(x, dim);
    int64_t start = 0;

    (void)sizes_count; /* that of the results */
    for (uint32_t i = 0; i < out_count; i++) {
        out[i] = hob__part_range(scope, x, axis, start, start + sizes[i]);
        start += sizes[i];
    }
    return hob_scope_host(scope)->scope_status(scope);
}

hob_status hob__body_meshgrid(hob_scope *scope, hob_tensor *const *tensors,
                              uint32_t tensors_count,
                              enum hob_meshgrid_indexing indexing, int sparse,
                              hob_tensor **out, uint32_t out_count)
{
    int is_xy = indexing == HOB_MESHGRID_INDEXING_XY && tensors_count > 1;
    int64_t whole[HOB_MAX_RANK];

    (void)out_count; /* that of the tensors */
    for (uint32_t k = 0; k < tensors_count; k++)
        whole[is_xy && k < 2 ? 1 - k : k] = hob_tensor_count(tensors[k]);
    for (uint32_t i = 0; i < tensors_count; i++) {
        uint32_t at = is_xy && i < 2 ? 1 - i : i;
        int64_t line[HOB_MAX_RANK];

        for (uint32_t k = 0; k < tensors_count; k++)
            line[k] = k == at ? whole[at] : 1;
        out[i] = hob_reshape(scope, tensors[i], line, tensors_count);
        if (!sparse)
            out[i] = hob_expand(scope, out[i], whole, tensors_count);
    }
    return hob_scope_host(scope)->scope_status(scope);
}

hob_tensor *hob__body_meshgrid_stack(hob_scope *scope,
                                     hob_tensor *const *tensors,
                                     uint32_t tensors_count,
                                     enum hob_meshgrid_stack_at at)
{
    hob_tensor *grids[HOB_MAX_RANK] = {NULL};
    uint32_t count;

    /* A failure shows in the grids: all are the error tensor. */
    (void)hob_meshgrid(scope, tensors, tensors_count, HOB_MESHGRID_INDEXING_IJ,
                       0, grids, HOB_MAX_RANK, &count);
    return hob_stack(scope, grids, tensors_count,
                     at == HOB_MESHGRID_STACK_AT_FIRST ? 0 : -1);
}

hob_tensor *hob__body_cartesian_grid(hob_scope *scope, const int64_t *shape,
                                     uint32_t shape_count, hob_device *device,
                                     hob_dtype dtype)
{
    hob_tensor *lines[HOB_MAX_RANK];

    for (uint32_t i = 0; i < shape_count; i++)
        lines[i] = hob_arange(scope, 0, shape[i], 1, device, dtype);
    return hob_meshgrid_stack(scope, lines, shape_count,
                              HOB_MESHGRID_STACK_AT_LAST);
}

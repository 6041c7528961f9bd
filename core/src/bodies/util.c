/* SPDX-License-Identifier: Apache-2.0 */
#include "util.h"

hob_tensor *hob__part_full(hob_scope *scope, hob_tensor *x,
                           const int64_t *shape, uint32_t rank,
                           hob_scalar value)
{
    hob_device *device = hob_scope_host(scope)->tensor_device(x);

    return hob_full(scope, shape, rank, value, device, hob_tensor_dtype(x));
}

hob_tensor *hob__part_constant(hob_scope *scope, hob_tensor *x,
                               hob_scalar value)
{
    return hob__part_full(scope, x, NULL, 0, value);
}

hob_tensor *hob__part_up(hob_scope *scope, hob_tensor *x)
{
    hob_dtype dtype = hob_tensor_dtype(x);

    if (dtype != HOB_DTYPE_F16 && dtype != HOB_DTYPE_BF16)
        return x;
    return hob_cast(scope, x, HOB_DTYPE_F32);
}

hob_tensor *hob__part_down(hob_scope *scope, hob_tensor *y, hob_dtype dtype)
{
    return hob_tensor_dtype(y) == dtype ? y : hob_cast(scope, y, dtype);
}

hob_tensor *hob__part_flat(hob_scope *scope, hob_tensor *x)
{
    int64_t count = hob_tensor_count(x);

    return hob_reshape(scope, x, &count, 1);
}

hob_tensor *hob__part_item(hob_scope *scope, hob_tensor *x)
{
    return hob_reshape(scope, x, NULL, 0);
}

hob_tensor *hob__part_same(hob_scope *scope, hob_tensor *x)
{
    return hob_reshape(scope, x, hob_tensor_shape(x),
                       (uint32_t)hob_tensor_rank(x));
}

hob_tensor *hob__part_range(hob_scope *scope, hob_tensor *x, uint32_t axis,
                            int64_t start, int64_t end)
{
    int64_t starts[HOB_MAX_RANK] = {0}, ends[HOB_MAX_RANK];

    for (uint32_t i = 0; i < axis; i++)
        ends[i] = INT64_MAX;
    starts[axis] = start;
    ends[axis] = end;
    return hob_slice(scope, x, starts, axis + 1, ends, axis + 1, NULL, 0);
}

hob_tensor *hob__part_root(hob_scope *scope, hob_tensor *x, double p)
{
    hob_tensor *is_zero = hob_equal_scalar(scope, x, hob_i64(0));
    hob_tensor *safe =
        hob_where(scope, is_zero, hob__part_constant(scope, x, hob_i64(1)), x);
    hob_tensor *root = p == 2 ? hob_sqrt(scope, safe)
                              : hob_pow_scalar(scope, safe, hob_f64(1 / p));

    return hob_where(scope, is_zero, x, root);
}

uint32_t hob__part_axis(const hob_tensor *x, int64_t dim)
{
    return (uint32_t)(dim < 0 ? dim + hob_tensor_rank(x) : dim);
}

hob_dtype hob__part_index_dtype(int64_t count)
{
    return count > INT32_MAX ? HOB_DTYPE_I64 : HOB_DTYPE_I32;
}

int hob__part_is(hob_dtype dtype, uint32_t mask)
{
    return (HOB_DTYPE_BIT(dtype) & mask) != 0;
}

int64_t hob__part_product(const int64_t *sizes, uint32_t count)
{
    int64_t product = 1;

    for (uint32_t i = 0; i < count; i++)
        product *= sizes[i];
    return product;
}

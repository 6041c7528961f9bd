/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create.c - bodies of the ops that make a tensor from nothing.
 */
#include "bodies.h"

hob_tensor *hob__body_zeros(hob_scope *scope, const int64_t *shape,
                            uint32_t shape_count, hob_device *device,
                            hob_dtype dtype)
{
    return hob_full(scope, shape, shape_count, hob_i64(0), device, dtype);
}

hob_tensor *hob__body_ones(hob_scope *scope, const int64_t *shape,
                           uint32_t shape_count, hob_device *device,
                           hob_dtype dtype)
{
    return hob_full(scope, shape, shape_count, hob_i64(1), device, dtype);
}

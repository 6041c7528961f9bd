/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.h - arithmetic on sizes that may come from a file.
 */
#ifndef HOB__SIZE_H
#define HOB__SIZE_H

#include <hob/status.h>

#include <stdint.h>

/* *OUT_PRODUCT = A * B. Fails with HOB_ERR_SHAPE if it needs over 64 bits. */
HOB_MUST_CHECK static inline hob_status hob__size_mul(uint64_t a, uint64_t b,
                                                      uint64_t *out_product)
{
    if (b && a > UINT64_MAX / b)
        return HOB_ERR_SHAPE;
    *out_product = a * b;
    return HOB_OK;
}

#endif

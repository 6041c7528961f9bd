/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/view.h - a tensor as a kernel sees it.
 *
 * A struct hob_view is the first member of every tensor handle, so a tensor
 * value of the uniform call points at one. The layout is fixed within an ABI
 * major. Programs read shape and dtype through hob/tensor.h; strides and
 * addresses are for plugins.
 */
#ifndef HOB_VIEW_H
#define HOB_VIEW_H

#include <hob/types.h>

HOB_BEGIN_DECLS

struct hob_storage; /* the core's; opaque */

enum hob_view_flags {
    HOB_VIEW_CONTIGUOUS = 1, /* row-major without gaps; size-1 dims aside */
    HOB_VIEW_INJECTIVE = 2,  /* no two indices share an element */
    HOB_VIEW_READ_ONLY = 4   /* mapped or borrowed memory */
};

struct hob_view {
    void *data; /* host pointer or device address, the offset applied */
    struct hob_storage *storage;
    uint8_t dtype; /* hob_dtype */
    uint8_t rank;
    uint16_t flags;  /* enum hob_view_flags */
    uint32_t scheme; /* as in struct hob_meta */
    int64_t shape[HOB_MAX_RANK];
    int64_t strides[HOB_MAX_RANK]; /* in elements; zero or negative allowed */
};

/* Return the elements of VIEW: the product of its shape, 1 for rank 0. */
static inline int64_t hob_view_count(const struct hob_view *view)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < view->rank; i++)
        count *= view->shape[i];
    return count;
}

/* The view of a tensor handle; never NULL for a non-NULL handle. */
static inline struct hob_view *hob_tensor_view(hob_tensor *tensor)
{
    return (struct hob_view *)(void *)tensor;
}

HOB_END_DECLS

#endif

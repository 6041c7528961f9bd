/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_data.h - elements between tensors and host memory, for what reads and
 * writes files and exchanges data.
 */
#ifndef HOB__HOST_DATA_H
#define HOB__HOST_DATA_H

#include <hob/types.h>

/* A tensor's elements in host memory, row-major. */
struct hob__elements {
    const void *data; /* NULL only if there are none */
    uint64_t bytes;
    struct hob_meta meta;
    hob_tensor *hold; /* the handle whose memory DATA is; or NULL */
    void *buffer;     /* a copy; or NULL */
};

/*
 * Get TENSOR's elements, without a copy where they are row-major in host
 * memory already. Waits. End with hob__elements_release(), also after a
 * failure. Fails with the first cause if TENSOR is an error tensor.
 */
HOB_MUST_CHECK hob_status hob__elements_get(hob_tensor *tensor,
                                            struct hob__elements *out_elements,
                                            hob_error *error);
void hob__elements_release(struct hob__elements *elements);

/*
 * Make a tensor of META on DEVICE, owned by SCOPE, from row-major elements.
 * Bytes of a bool that are not 0 become 1. On failure *OUT_TENSOR is NULL and
 * SCOPE knows nothing of it.
 */
HOB_MUST_CHECK hob_status hob__elements_put(
    hob_scope *scope, hob_device *device, const struct hob_meta *meta,
    const void *data, hob_tensor **out_tensor, hob_error *error);

/* Say whether a byte among COUNT is neither 0 nor 1. */
int hob__bools_are_loose(const void *data, uint64_t count);

#endif

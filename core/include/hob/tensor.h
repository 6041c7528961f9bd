/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/tensor.h - tensors from and to host memory, and their life cycle.
 *
 * Tensors are immutable and counted. Rank 0 to 8. The accessors for dtype,
 * rank, shape and count are in hob/host.h. A tensor made here is owned by the
 * scope that is passed.
 */
#ifndef HOB_TENSOR_H
#define HOB_TENSOR_H

#include <hob/host.h>

HOB_BEGIN_DECLS

/*
 * Copy elements from host memory: row-major, of DTYPE, as many as SHAPE says
 * (RANK sizes). Returns SCOPE's error tensor on failure.
 */
HOB_API hob_tensor *hob_from_data(hob_scope *scope, hob_device *device,
                                  hob_dtype dtype, const void *data,
                                  const int64_t *shape, int32_t rank);
HOB_API hob_tensor *hob_from_f32(hob_scope *scope, hob_device *device,
                                 const float *data, const int64_t *shape,
                                 int32_t rank);
HOB_API hob_tensor *hob_from_f64(hob_scope *scope, hob_device *device,
                                 const double *data, const int64_t *shape,
                                 int32_t rank);
HOB_API hob_tensor *hob_from_i32(hob_scope *scope, hob_device *device,
                                 const int32_t *data, const int64_t *shape,
                                 int32_t rank);
HOB_API hob_tensor *hob_from_i64(hob_scope *scope, hob_device *device,
                                 const int64_t *data, const int64_t *shape,
                                 int32_t rank);

/*
 * Copy TENSOR's elements to host memory of BYTES bytes, row-major, in its own
 * dtype. Waits. Fails with HOB_ERR_ARGUMENT if BYTES is not the right size,
 * or with the first cause if TENSOR is an error tensor.
 */
HOB_API HOB_MUST_CHECK hob_status hob_read(hob_tensor *tensor, void *out_data,
                                           uint64_t bytes, hob_error *error);
/* Read into COUNT floats or doubles or i64, whatever TENSOR's dtype. */
HOB_API HOB_MUST_CHECK hob_status hob_read_f32(hob_tensor *tensor,
                                               float *out_data, int64_t count,
                                               hob_error *error);
HOB_API HOB_MUST_CHECK hob_status hob_read_f64(hob_tensor *tensor,
                                               double *out_data, int64_t count,
                                               hob_error *error);
HOB_API HOB_MUST_CHECK hob_status hob_read_i64(hob_tensor *tensor,
                                               int64_t *out_data, int64_t count,
                                               hob_error *error);
/* The only element of TENSOR as a double. Waits. */
HOB_API HOB_MUST_CHECK hob_status hob_item(hob_tensor *tensor,
                                           double *out_value, hob_error *error);

/*
 * Bring TENSOR to DEVICE. Within one base this lifts or strips decorators
 * without a copy (a lifted tensor is a constant there); between bases the
 * elements are copied, differentiably where both sides track.
 */
HOB_API hob_tensor *hob_to_device(hob_scope *scope, hob_tensor *tensor,
                                  hob_device *device);

/* The device of TENSOR, borrowed; NULL for an error tensor. */
HOB_API hob_device *hob_tensor_device(const hob_tensor *tensor);

/* HOB_OK, or the first cause if TENSOR is an error tensor or was moved. */
HOB_API hob_status hob_tensor_status(const hob_tensor *tensor,
                                     hob_error *error);

/* Hold a tensor by hand, beside the scopes that own it. */
HOB_API void hob_tensor_ref(hob_tensor *tensor);
HOB_API void hob_tensor_unref(hob_tensor *tensor); /* accepts NULL */

HOB_END_DECLS

#endif

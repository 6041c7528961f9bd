/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/kernel.h - elements of views, for kernels on the CPU.
 *
 *     const float *x = hob_view_f32(call.x);
 *
 *     if (!x)
 *         return host->fail(call, HOB_ERR_DTYPE, "f32 only");
 *     y = x[hob_offset2(call.x, row, column)];
 *
 * - Views may have any strides, zero and negative ones too. Offsets are in
 *   elements, from the element at index 0, 0, ..; only hob_view_f32() and its
 *   like turn a view into a pointer.
 * - Indices are not checked: 0 <= i < shape.
 * - "Rows" are the innermost dimension; a view of rank 0 is one row of one
 *   element. A loop over rows and one inside serves every layout:
 *
 *     int64_t step = hob_row_stride(call.x);
 *
 *     for (int64_t row = 0; row < hob_row_count(call.x); row++) {
 *         const float *at = x + hob_row_offset(call.x, row);
 *         for (int64_t i = 0; i < hob_row_length(call.x); i++)
 *             sum += at[i * step];
 *     }
 */
#ifndef HOB_EXT_KERNEL_H
#define HOB_EXT_KERNEL_H

#include <hob/ext/plugin.h>

HOB_BEGIN_DECLS

/* ---- typed pointers: NULL where VIEW is absent or of another dtype ---- */

static inline void *hob_view_as(const struct hob_view *view, uint32_t dtype)
{
    return view && view->dtype == dtype ? view->data : NULL;
}

static inline double *hob_view_f64(const struct hob_view *view)
{
    return (double *)hob_view_as(view, HOB_DTYPE_F64);
}

static inline float *hob_view_f32(const struct hob_view *view)
{
    return (float *)hob_view_as(view, HOB_DTYPE_F32);
}

static inline int64_t *hob_view_i64(const struct hob_view *view)
{
    return (int64_t *)hob_view_as(view, HOB_DTYPE_I64);
}

static inline int32_t *hob_view_i32(const struct hob_view *view)
{
    return (int32_t *)hob_view_as(view, HOB_DTYPE_I32);
}

static inline int16_t *hob_view_i16(const struct hob_view *view)
{
    return (int16_t *)hob_view_as(view, HOB_DTYPE_I16);
}

static inline int8_t *hob_view_i8(const struct hob_view *view)
{
    return (int8_t *)hob_view_as(view, HOB_DTYPE_I8);
}

static inline uint64_t *hob_view_u64(const struct hob_view *view)
{
    return (uint64_t *)hob_view_as(view, HOB_DTYPE_U64);
}

static inline uint32_t *hob_view_u32(const struct hob_view *view)
{
    return (uint32_t *)hob_view_as(view, HOB_DTYPE_U32);
}

static inline uint16_t *hob_view_u16(const struct hob_view *view)
{
    return (uint16_t *)hob_view_as(view, HOB_DTYPE_U16);
}

static inline uint8_t *hob_view_u8(const struct hob_view *view)
{
    return (uint8_t *)hob_view_as(view, HOB_DTYPE_U8);
}

/* One byte an element, 0 or 1. */
static inline uint8_t *hob_view_bool(const struct hob_view *view)
{
    return (uint8_t *)hob_view_as(view, HOB_DTYPE_BOOL);
}

/* The bits of f16 and bf16: C has no type for them. */
static inline uint16_t *hob_view_f16(const struct hob_view *view)
{
    return (uint16_t *)hob_view_as(view, HOB_DTYPE_F16);
}

static inline uint16_t *hob_view_bf16(const struct hob_view *view)
{
    return (uint16_t *)hob_view_as(view, HOB_DTYPE_BF16);
}

/* ---- offsets ---- */

static inline int64_t hob_offset1(const struct hob_view *view, int64_t i)
{
    return i * view->strides[0];
}

static inline int64_t hob_offset2(const struct hob_view *view, int64_t i,
                                  int64_t j)
{
    return i * view->strides[0] + j * view->strides[1];
}

static inline int64_t hob_offset3(const struct hob_view *view, int64_t i,
                                  int64_t j, int64_t k)
{
    return i * view->strides[0] + j * view->strides[1] + k * view->strides[2];
}

static inline int64_t hob_offset4(const struct hob_view *view, int64_t i,
                                  int64_t j, int64_t k, int64_t l)
{
    return i * view->strides[0] + j * view->strides[1] + k * view->strides[2] +
           l * view->strides[3];
}

/* The offset of element NUMBER in row-major order, over dimensions
 * 0..RANK-1. */
static inline int64_t hob_offset_of(const struct hob_view *view, uint32_t rank,
                                    int64_t number)
{
    int64_t offset = 0;

    for (uint32_t d = rank; d-- > 0;) {
        offset += number % view->shape[d] * view->strides[d];
        number /= view->shape[d];
    }
    return offset;
}

/* Element i, j.. of a view whose dtype is known to be the one named. */
static inline float hob_f32_at(const struct hob_view *view, int64_t i)
{
    return ((const float *)view->data)[hob_offset1(view, i)];
}

static inline float hob_f32_at2(const struct hob_view *view, int64_t i,
                                int64_t j)
{
    return ((const float *)view->data)[hob_offset2(view, i, j)];
}

static inline double hob_f64_at(const struct hob_view *view, int64_t i)
{
    return ((const double *)view->data)[hob_offset1(view, i)];
}

static inline double hob_f64_at2(const struct hob_view *view, int64_t i,
                                 int64_t j)
{
    return ((const double *)view->data)[hob_offset2(view, i, j)];
}

/* Element at OFFSET of a view of any integer dtype or bool. U64 beyond
 * INT64_MAX wraps. */
static inline int64_t hob_int_at(const struct hob_view *view, int64_t offset)
{
    switch (view->dtype) {
    case HOB_DTYPE_I64:
        return ((const int64_t *)view->data)[offset];
    case HOB_DTYPE_I32:
        return ((const int32_t *)view->data)[offset];
    case HOB_DTYPE_I16:
        return ((const int16_t *)view->data)[offset];
    case HOB_DTYPE_I8:
        return ((const int8_t *)view->data)[offset];
    case HOB_DTYPE_U64:
        return (int64_t)((const uint64_t *)view->data)[offset];
    case HOB_DTYPE_U32:
        return ((const uint32_t *)view->data)[offset];
    case HOB_DTYPE_U16:
        return ((const uint16_t *)view->data)[offset];
    default:
        return ((const uint8_t *)view->data)[offset];
    }
}

/* ---- rows ---- */

static inline int64_t hob_row_length(const struct hob_view *view)
{
    return view->rank ? view->shape[view->rank - 1] : 1;
}

static inline int64_t hob_row_stride(const struct hob_view *view)
{
    return view->rank ? view->strides[view->rank - 1] : 1;
}

static inline int64_t hob_row_count(const struct hob_view *view)
{
    int64_t count = 1;

    for (uint32_t d = 0; d + 1 < view->rank; d++)
        count *= view->shape[d];
    return count;
}

/* Where row number ROW begins. */
static inline int64_t hob_row_offset(const struct hob_view *view, int64_t row)
{
    return view->rank < 2 ? 0 : hob_offset_of(view, view->rank - 1u, row);
}

HOB_END_DECLS

#endif

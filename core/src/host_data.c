/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "host_data.h"

#include "device.h"
#include "dispatch.h"
#include "error.h"
#include "half.h"
#include "lazy.h"
#include "range.h"
#include "runtime.h"
#include "scope.h"
#include "size.h"
#include "tensor.h"

#include <hob/ext/quant.h>
#include <hob/tensor.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- elements ---- */

static bool in_host_memory(const hob_device *device)
{
    return (device->at[0]->backend->flags & HOB_BACKEND_HOST_MEMORY) != 0;
}

/* Borrow the memory of TENSOR, or of a row-major copy on its base. */
static hob_status elements_borrow(hob_tensor *tensor,
                                  struct hob__elements *elements,
                                  hob_error *error)
{
    const hob_device *base = tensor->device->at[0];
    hob_status st = hob__contiguous(tensor, &elements->hold, error);

    if (st)
        return st;
    if (base->backend->sync)
        st = base->backend->sync(base->instance);
    if (st)
        return hob_error_set(error, st, "earlier work on %s failed",
                             base->name);
    elements->data = elements->hold->view.data;
    return HOB_OK;
}

/* Start OUT_ELEMENTS with what TENSOR's elements are, without getting them. */
static hob_status elements_measure(hob_tensor *tensor,
                                   struct hob__elements *out_elements,
                                   hob_error *error)
{
    hob_status st;

    memset(out_elements, 0, sizeof(*out_elements));
    st = hob__tensor_settle(tensor, 0, error);
    if (!st)
        st = hob__tensor_check(tensor, error);
    if (st)
        return st;
    out_elements->meta = hob__tensor_meta(tensor);
    st = hob__meta_bytes(&out_elements->meta, &out_elements->bytes);
    return st ? hob_error_set(error, st, "the tensor's size overflows") : st;
}

/* The rest of hob__elements_get(), which can take a copy. */
static hob_status elements_fetch(hob_tensor *tensor,
                                 struct hob__elements *out_elements,
                                 hob_error *error)
{
    if (!out_elements->bytes)
        return HOB_OK;
    if (in_host_memory(tensor->device))
        return elements_borrow(tensor, out_elements, error);
    out_elements->buffer = malloc((size_t)out_elements->bytes);
    if (!out_elements->buffer)
        return hob_error_set(error, HOB_ERR_MEMORY,
                             "no host memory for %" PRIu64 " bytes",
                             out_elements->bytes);
    out_elements->data = out_elements->buffer;
    return hob__tensor_download(tensor, out_elements->buffer,
                                out_elements->bytes, error);
}

/* A quantized tensor is parts, not elements of its dtype. */
static hob_status refuse_quantized(const struct hob__elements *elements,
                                   hob_error *error)
{
    char text[HOB__META_TEXT];

    if (elements->meta.dtype != HOB_DTYPE_QUANT)
        return HOB_OK;
    return hob_error_set(error, HOB_ERR_DTYPE,
                         "the tensor %s is quantized: take its numbers with "
                         "hob_dequantize(), its parts with "
                         "hob_quantized_values() and hob_quantized_scales()",
                         hob__meta_text(&elements->meta, text, sizeof(text)));
}

hob_status hob__elements_get(hob_tensor *tensor,
                             struct hob__elements *out_elements,
                             hob_error *error)
{
    hob_status st = elements_measure(tensor, out_elements, error);

    if (!st)
        st = refuse_quantized(out_elements, error);

    return st ? st : elements_fetch(tensor, out_elements, error);
}

void hob__elements_release(struct hob__elements *elements)
{
    hob__tensor_unref(elements->hold);
    free(elements->buffer);
    memset(elements, 0, sizeof(*elements));
}

int hob__bools_are_loose(const void *data, uint64_t count)
{
    const unsigned char *bytes = data;
    unsigned all = 0;

    for (uint64_t i = 0; i < count; i++)
        all |= bytes[i];
    return all > 1;
}

/* Upload BYTES bytes of bools, of which some are neither 0 nor 1. */
static hob_status upload_bools(hob_tensor *tensor, const unsigned char *data,
                               uint64_t bytes, hob_error *error)
{
    unsigned char *clean = malloc((size_t)bytes);
    hob_status st;

    if (!clean)
        return hob_error_set(error, HOB_ERR_MEMORY,
                             "no host memory for %" PRIu64 " bytes", bytes);
    for (uint64_t i = 0; i < bytes; i++)
        clean[i] = data[i] != 0;
    st = hob__tensor_upload(tensor, clean, bytes, error);
    free(clean);
    return st;
}

hob_status hob__elements_put(hob_scope *scope, hob_device *device,
                             const struct hob_meta *meta, const void *data,
                             hob_tensor **out_tensor, hob_error *error)
{
    char text[HOB__META_TEXT], refusal[HOB__REFUSAL_TEXT];
    hob_tensor *tensor = NULL;
    uint64_t bytes = 0;
    hob_status st = HOB_OK;

    *out_tensor = NULL;
    if (!device)
        return hob_error_set(error, HOB_ERR_ARGUMENT,
                             "no device is given: that of an error tensor is "
                             "NULL");
    if (device->runtime != scope->runtime)
        return hob_error_set(error, HOB_ERR_DEVICE,
                             "device %s belongs to another runtime than the "
                             "scope: open it in this one",
                             device->name);
    if (hob__meta_bytes(meta, &bytes))
        return hob_error_set(error, HOB_ERR_SHAPE,
                             "a tensor %s is larger than any memory",
                             hob__meta_text(meta, text, sizeof(text)));
    st = hob__tensor_alloc(device, meta, bytes, &tensor);
    if (st)
        return hob_error_set(
            error, st, "%s",
            hob__storage_refusal(device->at[0],
                                 hob__meta_text(meta, text, sizeof(text)),
                                 bytes, refusal));
    if (meta->dtype == HOB_DTYPE_BOOL && hob__bools_are_loose(data, bytes))
        st = upload_bools(tensor, data, bytes, error);
    else
        st = hob__tensor_upload(tensor, data, bytes, error);
    if (st) {
        hob__tensor_unref(tensor);
        return st;
    }
    /* Where the elements can be read at any time nobody asks. */
    if (bytes && !in_host_memory(device) &&
        HOB_DTYPE_BIT(meta->dtype) & HOB_MASK_INT)
        tensor->view.storage->range = hob__range_of(
            meta->dtype, data, bytes / hob_dtype_size(meta->dtype));
    if (hob__scope_adopt(scope, tensor))
        return hob_error_set(error, HOB_ERR_MEMORY, "out of memory");
    *out_tensor = tensor;
    return HOB_OK;
}

/* ---- conversions ---- */

/* Element INDEX of DATA as a double; i64 and u64 may be rounded. */
static double element_f64(uint32_t dtype, const void *data, uint64_t index)
{
    switch (dtype) {
    case HOB_DTYPE_F64:
        return ((const double *)data)[index];
    case HOB_DTYPE_F32:
        return (double)((const float *)data)[index];
    case HOB_DTYPE_F16:
        return (double)hob__f32_of_f16(((const uint16_t *)data)[index]);
    case HOB_DTYPE_BF16:
        return (double)hob__f32_of_bf16(((const uint16_t *)data)[index]);
    case HOB_DTYPE_I64:
        return (double)((const int64_t *)data)[index];
    case HOB_DTYPE_I32:
        return (double)((const int32_t *)data)[index];
    case HOB_DTYPE_I16:
        return (double)((const int16_t *)data)[index];
    case HOB_DTYPE_I8:
        return (double)((const int8_t *)data)[index];
    case HOB_DTYPE_U64:
        return (double)((const uint64_t *)data)[index];
    case HOB_DTYPE_U32:
        return (double)((const uint32_t *)data)[index];
    case HOB_DTYPE_U16:
        return (double)((const uint16_t *)data)[index];
    default: /* u8 and bool */
        return (double)((const uint8_t *)data)[index];
    }
}

static float element_f32(uint32_t dtype, const void *data, uint64_t index)
{
    /* Not by way of a double: that would round these two twice. */
    if (dtype == HOB_DTYPE_I64)
        return (float)((const int64_t *)data)[index];
    if (dtype == HOB_DTYPE_U64)
        return (float)((const uint64_t *)data)[index];
    return (float)element_f64(dtype, data, index);
}

/* The same as an i64, fractions cut off; false if it does not fit. */
static bool element_i64(uint32_t dtype, const void *data, uint64_t index,
                        int64_t *out_number)
{
    double number;

    if (dtype == HOB_DTYPE_I64) {
        *out_number = ((const int64_t *)data)[index];
        return true;
    }
    if (dtype == HOB_DTYPE_U64) {
        uint64_t wide = ((const uint64_t *)data)[index];

        *out_number = (int64_t)wide;
        return wide <= INT64_MAX;
    }
    number = element_f64(dtype, data, index);
    /* NaN fails both comparisons; 2^63 itself does not fit. */
    if (!(number >= -0x1p63 && number < 0x1p63))
        return false;
    *out_number = (int64_t)number;
    return true;
}

/* Make the parts of a quantized tensor that ELEMENTS hold f32. */
static hob_status elements_dequantize(struct hob__elements *elements,
                                      hob_error *error)
{
    uint32_t scheme = elements->meta.scheme;
    uint32_t dtype = hob_quant_scale_dtype(scheme);
    const struct hob_quant_format *format =
        hob_quant_format_of(hob_quant_value_of(scheme));
    const char *data = elements->data;
    struct hob_meta meta = elements->meta;
    struct hob_quant_layout layout;
    float global = 1;
    float *out;

    if (!hob_quant_layout_of(scheme, elements->meta.rank, elements->meta.shape,
                             &layout))
        return hob_error_set(error, HOB_ERR_SHAPE,
                             "the tensor's size overflows");
    out = malloc((size_t)layout.count * sizeof(float) + 1);
    if (!out)
        return hob_error_set(
            error, HOB_ERR_MEMORY,
            "no host memory to dequantize %" PRId64 " elements", layout.count);
    if (scheme & HOB_QUANT_GLOBAL)
        memcpy(&global, data + layout.global_at, sizeof(global));
    for (int64_t i = 0, run; i < layout.count; i += run) {
        int64_t scale = hob_quant_scale_at(&layout, i, &run);
        float factor =
            element_f32(dtype, data + layout.scales_at, (uint64_t)scale);

        factor *= global;
        for (int64_t k = i; k < i + run; k++)
            out[k] = hob_quant_decode(format,
                                      hob_quant_code_get((const uint8_t *)data,
                                                         format->bits, k)) *
                     factor;
    }
    hob__elements_release(elements);
    elements->meta = meta;
    elements->buffer = out;
    elements->data = out;
    elements->meta.dtype = HOB_DTYPE_F32;
    elements->bytes = (uint64_t)layout.count * sizeof(float);
    return HOB_OK;
}

/* Get TENSOR's elements if they are COUNT. */
static hob_status get_counted(hob_tensor *tensor, int64_t count,
                              struct hob__elements *elements, hob_error *error)
{
    char text[HOB__META_TEXT];
    hob_status st = elements_measure(tensor, elements, error);
    uint64_t have;

    if (st)
        return st;
    have = (uint64_t)hob_tensor_count(tensor);
    if (count >= 0 && have == (uint64_t)count) {
        st = elements_fetch(tensor, elements, error);
        if (!st && elements->meta.dtype == HOB_DTYPE_QUANT)
            st = elements_dequantize(elements, error);
        return st;
    }
    return hob_error_set(
        error, HOB_ERR_ARGUMENT,
        "the tensor %s has %" PRIu64 " elements, the buffer is for %" PRId64,
        hob__meta_text(&elements->meta, text, sizeof(text)), have, count);
}

/* ---- public ---- */

/* Fill META from the arguments of hob_from_data(), or say what is wrong. */
static hob_status meta_make(hob_dtype dtype, const int64_t *shape, int32_t rank,
                            struct hob_meta *meta, hob_error *error)
{
    uint64_t bytes = hob_dtype_size(dtype);

    memset(meta, 0, sizeof(*meta));
    if (!bytes)
        return hob_error_set(error, HOB_ERR_DTYPE,
                             "from_data: dtype %s (%d) has no host elements%s",
                             hob_dtype_name(dtype), (int)dtype,
                             dtype == HOB_DTYPE_QUANT
                                 ? ": make it with hob_quantize_dynamic(), or "
                                   "of its parts with hob_quantized_from()"
                                 : "");
    if (rank < 0 || rank > HOB_MAX_RANK)
        return hob_error_set(error, HOB_ERR_SHAPE,
                             "from_data: rank %" PRId32 " is not in 0..%d",
                             rank, HOB_MAX_RANK);
    meta->dtype = (uint8_t)dtype;
    meta->rank = (uint8_t)rank;
    for (int32_t i = 0; i < rank; i++) {
        meta->shape[i] = shape[i];
        if (shape[i] < 0)
            return hob_error_set(error, HOB_ERR_SHAPE,
                                 "from_data: size %" PRId64
                                 " of dimension %" PRId32 " is negative",
                                 shape[i], i);
        /* Other sizes of an empty tensor count too: strides use them. */
        if (hob__size_mul(bytes, shape[i] ? (uint64_t)shape[i] : 1, &bytes) ||
            bytes > INT64_MAX)
            return hob_error_set(error, HOB_ERR_SHAPE,
                                 "from_data: size %" PRId64
                                 " of dimension %" PRId32
                                 " makes the tensor larger than any memory",
                                 shape[i], i);
    }
    return HOB_OK;
}

hob_tensor *hob_from_data(hob_scope *scope, hob_device *device, hob_dtype dtype,
                          const void *data, const int64_t *shape, int32_t rank)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *tensor = NULL;
    struct hob_meta meta;
    hob_status st = meta_make(dtype, shape, rank, &meta, &error);

    if (!st)
        st = hob__elements_put(scope, device, &meta, data, &tensor, &error);
    if (st)
        tensor = hob__scope_fail(scope, st, "%s", hob__error_text(&error));
    hob_error_release(&error);
    return tensor;
}

hob_tensor *hob_from_f32(hob_scope *scope, hob_device *device,
                         const float *data, const int64_t *shape, int32_t rank)
{
    return hob_from_data(scope, device, HOB_DTYPE_F32, data, shape, rank);
}

hob_tensor *hob_from_f64(hob_scope *scope, hob_device *device,
                         const double *data, const int64_t *shape, int32_t rank)
{
    return hob_from_data(scope, device, HOB_DTYPE_F64, data, shape, rank);
}

hob_tensor *hob_from_i32(hob_scope *scope, hob_device *device,
                         const int32_t *data, const int64_t *shape,
                         int32_t rank)
{
    return hob_from_data(scope, device, HOB_DTYPE_I32, data, shape, rank);
}

hob_tensor *hob_from_i64(hob_scope *scope, hob_device *device,
                         const int64_t *data, const int64_t *shape,
                         int32_t rank)
{
    return hob_from_data(scope, device, HOB_DTYPE_I64, data, shape, rank);
}

hob_status hob_read(hob_tensor *tensor, void *out_data, uint64_t bytes,
                    hob_error *error)
{
    struct hob__elements elements;
    hob_status st = elements_measure(tensor, &elements, error);

    if (!st)
        st = refuse_quantized(&elements, error);
    if (!st && elements.bytes != bytes)
        st = hob_error_set(error, HOB_ERR_ARGUMENT,
                           "the tensor has %" PRIu64
                           " bytes of elements, the buffer %" PRIu64,
                           elements.bytes, bytes);
    if (st)
        return st;
    /* Straight to where they are wanted: new memory for a copy of them would
     * be cleared page by page first. */
    if (!in_host_memory(tensor->device))
        return hob__tensor_download(tensor, out_data, bytes, error);
    st = elements_fetch(tensor, &elements, error);
    if (!st && bytes)
        memcpy(out_data, elements.data, (size_t)bytes);
    hob__elements_release(&elements);
    return st;
}

hob_status hob_read_f32(hob_tensor *tensor, float *out_data, int64_t count,
                        hob_error *error)
{
    struct hob__elements elements;
    hob_status st = hob__tensor_check(tensor, error);

    if (st)
        return st;
    if (tensor->view.dtype == HOB_DTYPE_F32 && count >= 0 &&
        hob_tensor_count(tensor) == count)
        return hob_read(tensor, out_data, (uint64_t)count * sizeof(float),
                        error);
    st = get_counted(tensor, count, &elements, error);
    if (!st && count && elements.meta.dtype == HOB_DTYPE_F32)
        memcpy(out_data, elements.data, (size_t)elements.bytes);
    else
        for (int64_t i = 0; i < count && !st; i++)
            out_data[i] =
                element_f32(elements.meta.dtype, elements.data, (uint64_t)i);
    hob__elements_release(&elements);
    return st;
}

hob_status hob_read_f64(hob_tensor *tensor, double *out_data, int64_t count,
                        hob_error *error)
{
    struct hob__elements elements;
    hob_status st = get_counted(tensor, count, &elements, error);

    for (int64_t i = 0; i < count && !st; i++)
        out_data[i] =
            element_f64(elements.meta.dtype, elements.data, (uint64_t)i);
    hob__elements_release(&elements);
    return st;
}

hob_status hob_read_i64(hob_tensor *tensor, int64_t *out_data, int64_t count,
                        hob_error *error)
{
    struct hob__elements elements;
    hob_status st = get_counted(tensor, count, &elements, error);

    for (int64_t i = 0; i < count && !st; i++)
        if (!element_i64(elements.meta.dtype, elements.data, (uint64_t)i,
                         &out_data[i]))
            st = hob_error_set(
                error, HOB_ERR_RANGE, "element %" PRId64 ", %g, is no i64", i,
                element_f64(elements.meta.dtype, elements.data, (uint64_t)i));
    hob__elements_release(&elements);
    return st;
}

hob_status hob_item(hob_tensor *tensor, double *out_value, hob_error *error)
{
    return hob_read_f64(tensor, out_value, 1, error);
}

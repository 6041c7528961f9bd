/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "convert.h"

#include <string.h>

const struct flex_row_kernels *
flex_row_kernels(const struct flex_device *device, uint32_t dtype)
{
    static const struct flex_row_kernels *const tables[FLEX_ISA_COUNT_] = {
        [FLEX_ISA_BASE] = flex_row_kernels_base,
#if defined(__x86_64__)
        [FLEX_ISA_V2] = flex_row_kernels_v2,
        [FLEX_ISA_V3] = flex_row_kernels_v3,
        [FLEX_ISA_V4] = flex_row_kernels_v4,
#endif
    };
    const struct flex_row_kernels *table =
        tables[device->isa] ? tables[device->isa] : flex_row_kernels_base;

    return &table[dtype == HOB_DTYPE_F64 ? FLEX_ROW_F64 : FLEX_ROW_F32];
}

void flex_rows_init(struct flex_rows *rows, const struct flex_device *device,
                    const struct hob_view *view, uint32_t dim)
{
    rows->device = device;
    rows->dtype = view->dtype;
    rows->size = flex_row_size(view->dtype);
    rows->n = view->rank ? view->shape[dim] : 1;
    rows->stride = view->rank ? view->strides[dim] : 1;
    if (rows->n == 1) /* a size-1 dimension may have any stride */
        rows->stride = 1;
    if (view->rank)
        flex_loop_without(&rows->outer, view, dim);
    else
        flex_loop_init(&rows->outer, view);
}

void flex_rows_broadcast(struct flex_rows *rows,
                         const struct flex_device *device,
                         const struct hob_view *view,
                         const struct hob_view *out, uint32_t dim)
{
    struct hob_view wide = *out;
    uint32_t missing = (uint32_t)(out->rank - view->rank);

    wide.data = view->data;
    wide.dtype = view->dtype;
    for (uint32_t i = 0; i < out->rank; i++)
        wide.strides[i] = i < missing || view->shape[i - missing] == 1
                              ? 0
                              : view->strides[i - missing];
    flex_rows_init(rows, device, &wide, dim);
}

/* Row INDEX where it lies. */
static char *row_at(const struct flex_rows *rows, int64_t index)
{
    return rows->outer.data +
           flex_loop_offset(&rows->outer, index) * (int64_t)rows->outer.size;
}

static int is_half(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F16 || dtype == HOB_DTYPE_BF16;
}

const void *flex_rows_get(const struct flex_rows *rows, int64_t index,
                          void *buffer)
{
    const char *row = row_at(rows, index);
    const uint32_t size = rows->outer.size;

    if (!is_half(rows->dtype)) {
        if (rows->stride == 1)
            return row;
        flex_copy_strided(buffer, 1, row, rows->stride, rows->n, size);
        return buffer;
    }
    if (rows->stride != 1) { /* gathered behind what it is converted to */
        char *raw = (char *)buffer + rows->n * 4;
        flex_copy_strided(raw, 1, row, rows->stride, rows->n, size);
        row = raw;
    }
    rows->device->kernels->load_f32[rows->dtype](buffer, row, rows->n);
    return buffer;
}

void *flex_rows_target(const struct flex_rows *rows, int64_t index,
                       void *buffer)
{
    if (!is_half(rows->dtype) && rows->stride == 1)
        return row_at(rows, index);
    return buffer;
}

void flex_rows_put(const struct flex_rows *rows, int64_t index,
                   const void *target)
{
    char *row = row_at(rows, index);
    const uint32_t size = rows->outer.size;
    char raw[FLEX_BLOCK * 2];

    if (!is_half(rows->dtype)) {
        if (rows->stride != 1)
            flex_copy_strided(row, rows->stride, target, 1, rows->n, size);
        return;
    }
    for (int64_t i = 0; i < rows->n; i += FLEX_BLOCK) {
        int64_t count = rows->n - i < FLEX_BLOCK ? rows->n - i : FLEX_BLOCK;
        rows->device->kernels->store_f32[rows->dtype](
            raw, (const float *)target + i, count);
        flex_copy_strided(row + i * rows->stride * (int64_t)size, rows->stride,
                          raw, 1, count, size);
    }
}

void *flex_vector_take(struct flex_device *device, const struct hob_view *view,
                       uint64_t *out_bytes)
{
    struct flex_rows rows;
    const void *row;
    void *copy;

    flex_rows_init(&rows, device, view, 0);
    *out_bytes = flex_rows_buffer_bytes(&rows);
    copy = flex_scratch_take(device, *out_bytes);
    if (!copy)
        return NULL;
    row = flex_rows_get(&rows, 0, copy);
    if (row != copy)
        memcpy(copy, row, (size_t)rows.n * rows.size);
    return copy;
}

double flex_float_load(const struct hob_view *view)
{
    switch (view->dtype) {
    case HOB_DTYPE_F64:
        return *(const double *)view->data;
    case HOB_DTYPE_F32:
        return (double)*(const float *)view->data;
    case HOB_DTYPE_F16:
        return (double)flex_f32_of_f16(*(const uint16_t *)view->data);
    default:
        return (double)flex_f32_of_bf16(*(const uint16_t *)view->data);
    }
}

void flex_float_store(const struct hob_view *view, double value)
{
    switch (view->dtype) {
    case HOB_DTYPE_F64:
        *(double *)view->data = value;
        break;
    case HOB_DTYPE_F32:
        *(float *)view->data = (float)value;
        break;
    case HOB_DTYPE_F16:
        *(uint16_t *)view->data = flex_f16_of_f64(value);
        break;
    default:
        *(uint16_t *)view->data = flex_bf16_of_f64(value);
        break;
    }
}

static void rows_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct flex_rows_job *job = context;
    _Alignas(FLEX_ALIGN) char stack[8192];
    char *buffers = stack;

    (void)worker;
    if (job->buffer_bytes > sizeof(stack)) {
        buffers = flex_scratch_take(job->device, job->buffer_bytes);
        if (!buffers) {
            __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    for (int64_t i = first; i < last; i++)
        job->fn(job, i, buffers);
    if (buffers != stack)
        flex_scratch_give(job->device, buffers, job->buffer_bytes);
}

hob_status flex_rows_run(struct flex_rows_job *job, int64_t count,
                         int64_t row_elements)
{
    job->failed = 0;
    flex_parallel(job->device, count, 1 + FLEX_GRAIN_DEAR / (row_elements + 1),
                  rows_range, job);
    return job->failed ? HOB_ERR_MEMORY : HOB_OK;
}
